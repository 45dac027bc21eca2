"""Which parser decodes the outputs of a detector, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from noria.config.files import missing_file
from noria.errors import ConfigError, CustomLibraryError, ParserError
from noria.infer.parsers import WELL_KNOWN, parse_coverage_bbox, suggest
from noria.meta import BoxParser
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.custom import CustomLibrary
    from noria.engine.session import TensorSpec

__all__ = ["ParserChoice", "choose_bbox_parser", "require_grid_outputs"]


@dataclass(slots=True)
class ParserChoice:
    """A detector parser, where it comes from, and what was decided on the way."""

    parser: BoxParser
    source: str
    library: CustomLibrary | None = None
    notices: list[Notice] = field(default_factory=list)


def choose_bbox_parser(cfg: ModelConfig, *, abi: str | None = None) -> ParserChoice:
    """The parser that `parse-bbox-func-name` and `custom-lib-path` ask for.

    A name is looked up in the custom library. Where that file is missing or cannot be loaded on
    this machine and the name is a well-known one, noria's own parser of that name is used, with a
    warning. Without a name, the coverage/bbox grid parser decodes, as in the original; whether it
    can, `require_grid_outputs` tells.

    Args:
        abi: layout of a C++ parser's boxes, `auto`, `24` or `28`; None takes the config's.

    Raises:
        ConfigError: the library is missing, and noria has no parser of that name.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
    """
    name, path = cfg.parse_bbox_func_name, cfg.custom_lib_path
    if name and path:
        return _from_library(cfg, name, path, abi)
    where = str(cfg.origin("parse_bbox_func_name"))
    if name and name in WELL_KNOWN:
        text = f"no custom-lib-path: noria's built-in parser {name} decodes the outputs"
        return ParserChoice(
            WELL_KNOWN[name], f"built-in {name}", notices=[Notice("info", text, where)]
        )
    notices = []
    if name:
        text = f"parse-bbox-func-name={name} has no effect without custom-lib-path"
        text += ", and noria has no built-in parser of that name" + _did_you_mean(name)
        text += "; the coverage/bbox grid parser is used, as in the original"
        notices.append(Notice("warning", text, where))
    return ParserChoice(parse_coverage_bbox, "built-in coverage/bbox grid", notices=notices)


def _from_library(cfg: ModelConfig, name: str, path: Path, abi: str | None) -> ParserChoice:
    from noria.custom import open_library

    where = str(cfg.origin("custom_lib_path"))
    try:
        if not path.is_file():
            raise missing_file(cfg, "custom-lib-path", path)
        library = open_library(path, abi=abi or cfg.custom_lib_abi)
    except (ConfigError, CustomLibraryError) as error:
        # A Python file that fails is the user's own code at hand: never replaced.
        if path.suffix == ".py":
            raise
        if name not in WELL_KNOWN:
            hint = f"noria has no built-in parser {name} to use instead{_did_you_mean(name)}"
            raise type(error)(
                error.found, where=error.where, expected=error.expected, fix=[*error.fix, hint]
            ) from error
        text = f"{error.found}; noria's built-in parser {name} decodes the outputs instead"
        return ParserChoice(
            WELL_KNOWN[name], f"built-in {name}", notices=[Notice("warning", text, where)]
        )
    parser = library.bbox_parser(name)
    return ParserChoice(parser, f"{name} in {path.name}", library)


def _did_you_mean(name: str) -> str:
    near = get_close_matches(name, WELL_KNOWN, n=2, cutoff=0.75)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def require_grid_outputs(cfg: ModelConfig, outputs: Sequence[TensorSpec]) -> None:
    """The grid parser needs two outputs named *cov* and *bbox*; say so before the first frame.

    Raises:
        ParserError: they are not there; names the built-in parsers that fit the outputs.
    """
    missing = [p for p in ("cov", "bbox") if not any(p in o.name for o in outputs)]
    if not missing:
        return
    name = cfg.parse_bbox_func_name
    unset = "no parse-bbox-func-name is set"
    if name:
        unset = f"parse-bbox-func-name={name} has no effect without custom-lib-path"
        unset += _did_you_mean(name)
    hints = []
    if fits := suggest(outputs):
        hints.append(f"the outputs look like {', '.join(fits)}: set parse-bbox-func-name to it")
    hints.append("or name your own parser: parse-bbox-func-name and custom-lib-path=my_parser.py")
    raise ParserError(
        f"{unset}, and the built-in grid parser does not fit: no output "
        f"has {' or '.join(repr(m) for m in missing)} in its name",
        where=str(cfg.origin("parse_bbox_func_name")) if name else str(cfg.path),
        expected="outputs of a DetectNet-style model, or a parser for these: "
        + ", ".join(str(o) for o in outputs),
        fix=hints,
    )
