"""Which parser decodes the outputs of a model, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from noria._core.errors import ConfigError, CustomLibraryError, NoriaError, ParserError
from noria._core.notices import Notice
from noria.config.model_files import missing_file
from noria.infer.parsers import (
    WELL_KNOWN,
    WELL_KNOWN_CLASSIFIERS,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
    BuiltinParser,
    better_than,
    parse_coverage_bbox,
    renaming,
    suggest,
)
from noria.infer.segment import Segmenter
from noria.meta import BoxParser, ClassifierParser, NetworkInfo, SegmentationParser

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.custom import CustomLibrary
    from noria.custom.guard import GuardMode
    from noria.network.tensor_spec import TensorSpec

P = TypeVar("P")


@dataclass(slots=True)
class Choice(Generic[P]):
    """A parser, its origin, and decisions on the way."""

    parser: P
    source: str
    library: CustomLibrary | None = None
    notices: list[Notice] = field(default_factory=list)


ParserChoice = Choice[BoxParser]
ClassifierChoice = Choice[ClassifierParser | None]
SegmentationChoice = Choice[SegmentationParser]


@dataclass(frozen=True, slots=True)
class _Kind(Generic[P]):
    """Differences between the network types in choosing a parser.

    Attributes:
        entry: what `noria.binary.entry_points` calls such a function.
    """

    field: str
    entry: str
    known: Mapping[str, P]
    find: Callable[[CustomLibrary, str], P]

    @property
    def key(self) -> str:
        return self.field.replace("_", "-")

    def did_you_mean(self, name: str) -> str:
        from noria.binary.symbol_names import alternatives, near_names

        near = list(near_names(name, self.known))[:2]
        return f" (did you mean {alternatives(near)}?)" if near else ""


_BBOX: _Kind[BoxParser] = _Kind(
    "parse_bbox_func_name",
    "detector",
    WELL_KNOWN,
    lambda library, name: library.bbox_parser(name),
)
_CLASSIFIER: _Kind[ClassifierParser] = _Kind(
    "parse_classifier_func_name",
    "classifier",
    WELL_KNOWN_CLASSIFIERS,
    lambda library, name: library.classifier_parser(name),
)
_SEGMENTATION: _Kind[SegmentationParser] = _Kind(
    "parse_segmentation_func_name",
    "segmentation",
    WELL_KNOWN_SEGMENTATIONS,
    lambda library, name: library.segmentation_parser(name),
)
_INSTANCE: _Kind[BoxParser] = _Kind(
    "parse_bbox_instance_mask_func_name",
    "instance segmentation",
    WELL_KNOWN_INSTANCES,
    lambda library, name: library.instance_parser(name),
)


def choose_bbox_parser(
    cfg: ModelConfig, *, abi: str | None = None, guard: GuardMode | None = None
) -> ParserChoice:
    """The parser that `parse-bbox-func-name` and `custom-lib-path` ask for.

    A name is looked up in the custom library. Where that file is missing or cannot be loaded on
    this machine and the name is a well-known one, noria's own parser of that name is used, with a
    warning. Without a name, the coverage/bbox grid parser decodes, as in the original; whether it
    can, `require_grid_outputs` tells.

    Args:
        cfg: the config.
        abi: layout of a C++ parser's boxes, `auto`, `24` or `28`; None takes the config's.
        guard: whether the library runs in a worker process; None takes the config's.

    Raises:
        ConfigError: the library is missing, and noria has no parser of that name.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
    """
    builtin = "coverage/bbox grid"
    return _named(cfg, _BBOX, abi, guard) or Choice(
        parse_coverage_bbox, f"built-in {builtin}", notices=_without_effect(cfg, _BBOX, builtin)
    )


def choose_classifier_parser(
    cfg: ModelConfig, *, guard: GuardMode | None = None
) -> ClassifierChoice:
    """The parser that `parse-classifier-func-name` and `custom-lib-path` ask for.

    As `choose_bbox_parser`. A parser of None is the built-in one, which takes whole batches:
    `noria.infer.classify.classify`. After any other, `complete_labels` applies.

    Raises:
        ConfigError, CustomLibraryError: as `choose_bbox_parser`.
    """
    builtin = "classifier"
    if choice := _named(cfg, _CLASSIFIER, guard=guard):
        return Choice(choice.parser, choice.source, choice.library, choice.notices)
    notices = _without_effect(cfg, _CLASSIFIER, builtin)
    if cfg.labelfile_path is None and not cfg.output_tensor_meta:
        text = "labelfile-path is not given: the built-in classifier attaches only what has a label"
        notices.append(Notice("warning", f"{text}, so nothing", str(cfg.path)))
    return Choice(None, f"built-in {builtin}", notices=notices)


def choose_segmentation_parser(
    cfg: ModelConfig,
    *,
    generation: Literal["6.2", "9.1"] = "9.1",
    guard: GuardMode | None = None,
) -> SegmentationChoice:
    """The parser that `parse-segmentation-func-name` and `custom-lib-path` ask for.

    As `choose_bbox_parser`; without a name, the built-in parser of `noria.infer.segment`.

    Args:
        cfg: the config.
        generation: whose rules the built-in parser follows.
        guard: whether the library runs in a worker process; None takes the config's.

    Raises:
        ConfigError, CustomLibraryError: as `choose_bbox_parser`.
    """
    builtin = "segmentation"
    return _named(cfg, _SEGMENTATION, guard=guard) or Choice(
        Segmenter(generation),
        f"built-in {builtin}",
        notices=_without_effect(cfg, _SEGMENTATION, builtin),
    )


def choose_instance_parser(cfg: ModelConfig, *, guard: GuardMode | None = None) -> ParserChoice:
    """The parser that `parse-bbox-instance-mask-func-name` and `custom-lib-path` ask for.

    As `choose_bbox_parser`, but there is none without a name. Source: spec C.1.

    Raises:
        ConfigError: no name, or no library and noria has no parser of that name.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
    """
    if choice := _named(cfg, _INSTANCE, guard=guard):
        return choice
    name, key = getattr(cfg, _INSTANCE.field), _INSTANCE.key
    raise ConfigError(
        f"{key}={name} has no effect without custom-lib-path{_INSTANCE.did_you_mean(name)}"
        if name
        else f"network-type=3 without {key}",
        where=str(cfg.origin(_INSTANCE.field)) if name else str(cfg.path),
        expected=f"{key} with custom-lib-path, or one of noria's own: "
        + ", ".join(sorted(WELL_KNOWN_INSTANCES)),
        fix="instance segmentation has no parser of its own: the original refuses to start, too",
    )


def custom_library(
    cfg: ModelConfig, path: Path, *, abi: str | None = None, guard: GuardMode | None = None
) -> CustomLibrary:
    """Open `custom-lib-path` with the config's options, or those that override them.

    Raises:
        CustomLibraryError: see `noria.custom.open_library`.
    """
    from noria.custom import open_library
    from noria.custom.guard import GuardOptions

    return open_library(
        path,
        abi=abi or cfg.custom_lib_abi,
        guard=guard or cfg.custom_lib_guard,
        guard_options=GuardOptions(
            timeout_s=cfg.custom_lib_guard_timeout,
            memory_mib=cfg.custom_lib_guard_memory,
            restarts=cfg.custom_lib_guard_restarts,
        ),
    )


def _named(
    cfg: ModelConfig, kind: _Kind[P], abi: str | None = None, guard: GuardMode | None = None
) -> Choice[P] | None:
    """The parser of a configured name, from the library or noria's own; None: neither."""
    name: str | None = getattr(cfg, kind.field)
    if not name:
        return None
    if cfg.custom_lib_path:
        return _from_library(cfg, kind, name, cfg.custom_lib_path, abi, guard)
    if name not in kind.known:
        return None
    text = f"no custom-lib-path: noria's built-in parser {name} decodes the outputs"
    return Choice(
        kind.known[name],
        f"built-in {name}",
        notices=[Notice("info", text, str(cfg.origin(kind.field)))],
    )


def _without_effect(cfg: ModelConfig, kind: _Kind[Any], builtin: str) -> list[Notice]:
    """A warning if a name is configured that `_named` did not find."""
    name = getattr(cfg, kind.field)
    if not name:
        return []
    text = f"{kind.key}={name} has no effect without custom-lib-path"
    text += f", and noria has no built-in parser of that name{kind.did_you_mean(name)}"
    text += f"; the {builtin} parser is used, as in the original"
    return [Notice("warning", text, str(cfg.origin(kind.field)))]


def _from_library(
    cfg: ModelConfig,
    kind: _Kind[P],
    name: str,
    path: Path,
    abi: str | None,
    guard: GuardMode | None,
) -> Choice[P]:
    where = str(cfg.origin("custom_lib_path"))
    try:
        if not path.is_file():
            raise missing_file(cfg, "custom-lib-path", path)
        library = custom_library(cfg, path, abi=abi, guard=guard)
    except (ConfigError, CustomLibraryError) as error:
        # A Python file that fails is the user's own code at hand: never replaced.
        if path.suffix == ".py":
            raise
        if name not in kind.known:
            raise _with_hints(error, _no_other_hints(path, kind, name)) from error
        found = error.found.removesuffix(".")
        text = f"{found}; noria's built-in parser {name} decodes the outputs instead"
        if isinstance(error, CustomLibraryError):  # it is there: how to have it after all
            text += "".join(f"\n  {hint}" for hint in error.fix)
        return Choice(
            kind.known[name], f"built-in {name}", notices=[Notice("warning", text, where)]
        )
    try:
        parser = kind.find(library, name)
    except CustomLibraryError as failure:
        from noria.custom.load_errors import named_at

        refusal = named_at(failure, cfg.origin(kind.field))
        if name in kind.known:
            hint = f"without custom-lib-path, noria's built-in parser {name} decodes the outputs"
        elif "no function" not in refusal.found or any("did you mean" in h for h in refusal.fix):
            raise refusal from failure.__cause__
        elif near := kind.did_you_mean(name):
            hint = f"noria's own parsers need no custom-lib-path{near}"
        else:
            raise refusal from failure.__cause__
        raise _with_hints(refusal, [hint]) from failure
    return Choice(parser, f"{name} in {path.name}", library)


def _no_other_hints(path: Path, kind: _Kind[Any], name: str) -> list[str]:
    """Hints on a name that noria has no parser for, its library being of no use."""
    from noria.binary.elf import ElfError, ElfFile
    from noria.custom.load_errors import missing_hints

    none = f"noria has no built-in parser {name} to use instead"
    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        return [none + kind.did_you_mean(name)]
    if name in elf.exported():  # that is what was meant
        return [none]
    hints = missing_hints(elf, name, kind.entry)
    return [f"it has no function {name!r} either", *hints, none + kind.did_you_mean(name)]


def _with_hints(error: NoriaError, hints: list[str]) -> NoriaError:
    return type(error)(
        error.found, where=error.where, expected=error.expected, fix=[*error.fix, *hints]
    )


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
        unset += _BBOX.did_you_mean(name)
    hints = []
    if not name and cfg.custom_lib_path and (own := _parsers_in(cfg.custom_lib_path)):
        functions = f"{', '.join(own[:5])}{' …' if own[5:] else ''}"
        hints.append(
            f"{cfg.custom_lib_path.name} has {functions}: set parse-bbox-func-name to "
            f"{'one of them' if own[1:] else 'it'}"
        )
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


def _parsers_in(path: Path) -> list[str]:
    """Functions of a library that are detector parsers, as far as they can be recognised."""
    from noria.binary.elf import ElfError, ElfFile
    from noria.binary.entry_points import entry_points
    from noria.binary.symbol_names import shown
    from noria.custom.python_library import PythonLibrary
    from noria.plugins.loading import PYTHON_SUFFIXES

    try:
        if path.suffix.lower() in PYTHON_SUFFIXES:
            return PythonLibrary(path).symbols()
        points = entry_points(ElfFile.read(path))
    except (CustomLibraryError, ElfError, OSError):
        return []  # it is no help
    return [shown(p.name) for p in points if p.kind == "detector" and not p.device]


def misfit_notices(
    cfg: ModelConfig, parser: object, outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> list[Notice]:
    """A warning if `parser` is a built-in one and others fit the outputs better.

    Args:
        cfg: the config.
        parser: of its choice.
        outputs: of the model.
        network: size of the network input, None where it is not known.
    """
    if not isinstance(parser, BuiltinParser) or not cfg.num_detected_classes:
        return []
    head = parser.head
    better = better_than(head, outputs, network, cfg.num_detected_classes)
    if not better:
        return []
    text = f"{head.key}={head.name} does not fit the model's outputs "
    text += f"({', '.join(map(str, outputs))}; num-detected-classes={cfg.num_detected_classes})"
    names = renaming(head, outputs, network)
    text += f": it finds them by name, and {names};" if names else ":"
    text += f" {' or '.join(better[:3])} would"
    where = cfg.origin(head.key.replace("-", "_"))
    return [Notice("warning", text, str(where))]
