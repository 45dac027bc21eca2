"""Which parser decodes the outputs of a detector, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from noria.errors import ConfigError, CustomLibraryError, ParserError
from noria.infer.parsers import WELL_KNOWN, parse_coverage_bbox, suggest
from noria.meta import BoxParser
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.custom import CustomLibrary
    from noria.engine.session import TensorSpec

__all__ = ["ParserChoice", "choose_bbox_parser"]


@dataclass(slots=True)
class ParserChoice:
    """A detector parser, where it comes from, and what was decided on the way."""

    parser: BoxParser
    source: str
    library: CustomLibrary | None = None
    notices: list[Notice] = field(default_factory=list)


def choose_bbox_parser(
    cfg: ModelConfig, outputs: Sequence[TensorSpec], *, abi: str | None = None
) -> ParserChoice:
    """The parser that `parse-bbox-func-name` and `custom-lib-path` ask for.

    A name is looked up in the custom library. Where that file is missing or cannot be loaded on
    this machine and the name is a well-known one, noria's own parser of that name is used, with a
    warning. Without a name, the coverage/bbox grid parser decodes, as in the original.

    Args:
        outputs: the network's outputs, to say early when the grid parser cannot work.
        abi: layout of a C++ parser's boxes, `auto`, `24` or `28`; None takes the config's.

    Raises:
        ConfigError: no parser can be found for these outputs.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
    """
    name, path = cfg.parse_bbox_func_name, cfg.custom_lib_path
    if name and path:
        return _from_library(cfg, name, abi)
    if name and name in WELL_KNOWN:
        note = Notice(
            "info",
            f"no custom-lib-path: noria's built-in parser {name} decodes the outputs",
            where=str(cfg.origin("parse_bbox_func_name")),
        )
        return ParserChoice(WELL_KNOWN[name], f"built-in {name}", notices=[note])
    notices = []
    if name:
        notices.append(
            Notice(
                "warning",
                f"parse-bbox-func-name={name} has no effect without custom-lib-path; "
                "the built-in coverage/bbox grid parser is used, as in the original",
                where=str(cfg.origin("parse_bbox_func_name")),
            )
        )
    _require_grid_layers(cfg, outputs)
    return ParserChoice(parse_coverage_bbox, "built-in coverage/bbox grid", notices=notices)


def _from_library(cfg: ModelConfig, name: str, abi: str | None) -> ParserChoice:
    from noria.custom import open_library

    path = cfg.custom_lib_path
    assert path is not None
    where = str(cfg.origin("custom_lib_path"))
    try:
        if not path.exists():
            raise ConfigError(
                f"custom-lib-path={path} does not exist",
                where=where,
                expected="a C++ shared library (.so) or a Python file (.py)",
                fix="paths are relative to the folder of the config file",
            )
        library = open_library(path, abi=abi or cfg.custom_lib_abi)
    except (ConfigError, CustomLibraryError) as error:
        # A Python file that fails is the user's own code at hand: never replaced.
        if name not in WELL_KNOWN or path.suffix == ".py":
            raise
        note = Notice(
            "warning",
            f"{error.found}; noria's built-in parser {name} decodes the outputs instead",
            where=where,
        )
        return ParserChoice(WELL_KNOWN[name], f"built-in {name}", notices=[note])
    parser = library.bbox_parser(name)
    return ParserChoice(parser, f"{name} in {path.name}", library)


def _require_grid_layers(cfg: ModelConfig, outputs: Sequence[TensorSpec]) -> None:
    """The grid parser needs two outputs named *cov* and *bbox*; say so before the first frame."""
    names = [o.name for o in outputs]
    missing = [part for part in ("cov", "bbox") if not any(part in n for n in names)]
    if not missing:
        return
    fits = suggest(outputs)
    hints = [f"the outputs look like {fit}: set parse-bbox-func-name={fit}" for fit in fits]
    hints.append("or name your own parser: parse-bbox-func-name and custom-lib-path=my_parser.py")
    name = cfg.parse_bbox_func_name
    unset = "no parse-bbox-func-name is set"
    if name:
        unset = f"parse-bbox-func-name={name} has no effect without custom-lib-path"
    raise ParserError(
        f"{unset}, and the built-in grid parser does not fit: no output "
        f"has {' or '.join(repr(m) for m in missing)} in its name",
        where=str(cfg.path),
        expected="outputs of a DetectNet-style model, or a parser for these: "
        + ", ".join(str(o) for o in outputs),
        fix=hints,
    )
