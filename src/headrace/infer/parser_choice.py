"""Which parser decodes the outputs of a model, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import field

from headrace._core.errors import ConfigError, CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.near import did_you_mean
from headrace._core.plain_record import PlainRecord
from headrace.config.enums import NetworkType
from headrace.config.model_files import missing_file
from headrace.infer.parsers import (
    WELL_KNOWN,
    WELL_KNOWN_CLASSIFIERS,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
    parse_coverage_bbox,
)
from headrace.infer.parsers.class_maps import Segmenter

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.custom import CustomLibrary
    from headrace.custom.guard import GuardMode


class Choice(PlainRecord):
    """A parser, its origin, and decisions on the way.

    Attributes:
        parser: of the kind of the network; None is the built-in classifier parser, which takes
            whole batches: `headrace.infer.classify`.
    """

    parser: Any
    source: str
    library: CustomLibrary | None = None
    notices: list[Finding] = field(default_factory=list)

    def all_notices(self) -> list[Finding]:
        """Return the notices so far, those of the library and of the parser included."""
        of_library = [] if self.library is None else self.library.decisions
        of_parser = getattr(self.parser, "notices", [])  # built-in ones are plain functions
        return [*self.notices, *of_library, *of_parser]

    def close(self) -> None:
        """End the worker process of the library, if it has one."""
        if self.library is not None:
            self.library.close()


class _Kind(PlainRecord, frozen=True):
    """Differences between the network types in choosing a parser.

    Attributes:
        field: the config's name of the function.
        entry: what `headrace.binary.entry_points` calls such a function.
        finder: the method of `CustomLibrary` that gives it.
        known: headrace's own parsers by name.
        builtin: what the parser without a name is called; None if there is none.
    """

    field: str
    entry: str
    finder: str
    known: Mapping[str, object]
    builtin: str | None = None

    @property
    def key(self) -> str:
        return self.field.replace("_", "-")

    def did_you_mean(self, name: str) -> str:
        """Suggest headrace's own parsers with names like this one, in brackets; empty if none.

        One of another kind is suggested with the network type that it is for.
        """
        for network_type, kind in KINDS.items():
            if kind is not self and name in kind.known:
                keys = f"network-type={network_type.value} with {kind.key}={name}"
                return f" (it is a parser of the kind {kind.entry}: {keys})"
        from headrace.binary.symbol_names import near_functions

        hint = did_you_mean(*list(near_functions(name, self.known))[:2])
        return f" ({hint})" if hint else ""


KINDS = {
    NetworkType.DETECTOR: _Kind(
        "parse_bbox_func_name", "detector", "bbox_parser", WELL_KNOWN, "coverage/bbox grid"
    ),
    NetworkType.CLASSIFIER: _Kind(
        "parse_classifier_func_name",
        "classifier",
        "classifier_parser",
        WELL_KNOWN_CLASSIFIERS,
        "classifier",
    ),
    NetworkType.SEGMENTATION: _Kind(
        "parse_segmentation_func_name",
        "segmentation",
        "segmentation_parser",
        WELL_KNOWN_SEGMENTATIONS,
        "segmentation",
    ),
    NetworkType.INSTANCE_SEGMENTATION: _Kind(
        "parse_bbox_instance_mask_func_name",
        "instance segmentation",
        "instance_parser",
        WELL_KNOWN_INSTANCES,
    ),
}


def choose_parser(
    cfg: ModelConfig,
    *,
    abi: str | None = None,
    generation: Literal["6.2", "9.1"] = "9.1",
    guard: GuardMode | None = None,
    function: Callable[..., object] | None = None,
) -> Choice | None:
    """The parser that `parse-*-func-name` and `custom-lib-path` ask for; None for type 100.

    A name is looked up in the custom library. Where that file is missing or cannot be loaded on
    this machine and the name is a well-known one, headrace's own parser of that name is used, with
    a warning. Without a name, a built-in parser decodes, as in the original; whether the coverage
    and box grid can, `require_grid_outputs` tells. Instance segmentation has none. Source: spec
    C.1.

    Args:
        cfg: the config.
        abi: layout of a C++ detector parser's boxes, `auto`, `24` or `28`; None takes the config's.
        generation: whose rules the built-in segmentation parser follows.
        guard: whether the library runs in a worker process; None takes the config's.
        function: the program's own parser, which is called instead.

    Raises:
        ConfigError: the library is missing, and headrace has no parser of that name; no name, and
            there is no parser without one; a function, and the network type parses nothing.
        CustomLibraryError: the library cannot be loaded, or lacks the function.
    """
    kind = KINDS.get(cfg.network_type)
    if function is not None:
        return _from_function(cfg, kind, function)
    if kind is None:
        return None
    name: str | None = getattr(cfg, kind.field)
    if name and cfg.custom_lib_path:
        own_abi = abi if cfg.network_type is NetworkType.DETECTOR else None
        return _from_library(cfg, kind, name, cfg.custom_lib_path, own_abi, guard, generation)
    where = str(cfg.origin(kind.field))
    if name and name in kind.known:
        text = f"no custom-lib-path: headrace's built-in parser {name} decodes the outputs"
        said = cfg.origin(kind.field).kind == "model"  # by the lines about the model
        notices = [] if said else [Finding("parser-built-in", "info", text, where)]
        return Choice(kind.known[name], f"built-in {name}", notices=notices)
    effect = f"{kind.key}={name} has no effect without custom-lib-path"
    if kind.builtin is None:
        raise ConfigError(
            f"{effect}{kind.did_you_mean(name)}" if name else f"network-type=3 without {kind.key}",
            where=where if name else str(cfg.path),
            expected=f"{kind.key} with custom-lib-path, or one of headrace's own: "
            + ", ".join(sorted(kind.known)),
            fix="instance segmentation has no parser of its own: the original refuses to start, "
            "too",
            code="parser-missing",
        )
    choice = Choice(_without_name(cfg, generation), f"built-in {kind.builtin}")
    if name:
        text = (
            f"{effect}, and headrace has no built-in parser of that name{kind.did_you_mean(name)}"
        )
        text += f"; the {kind.builtin} parser is used, as in the original"
        choice.notices.append(Finding("function-without-library", "warning", text, where))
    unlabelled = not (cfg.labelfile_path or cfg.labels or cfg.output_tensor_meta)
    if cfg.network_type is NetworkType.CLASSIFIER and unlabelled:
        text = "labelfile-path is not given: the built-in classifier attaches only what has a label"
        text += ", so nothing"
        choice.notices.append(Finding("labels-needed", "warning", text, str(cfg.path)))
    return choice


def _without_name(cfg: ModelConfig, generation: Literal["6.2", "9.1"]) -> Any:
    match cfg.network_type:
        case NetworkType.DETECTOR:
            return parse_coverage_bbox
        case NetworkType.SEGMENTATION:
            return Segmenter(generation)
        case _:
            return None


def skipped_files(cfg: ModelConfig) -> tuple[str, ...]:
    """Files that `check_files` leaves to others: a parser's library may have a replacement."""
    kind = KINDS.get(cfg.network_type)
    return ("custom-lib-path",) if kind and getattr(cfg, kind.field) else ()


def custom_library(
    cfg: ModelConfig, path: Path, *, abi: str | None = None, guard: GuardMode | None = None
) -> CustomLibrary:
    """Open `custom-lib-path` with the config's options, or those that override them.

    Raises:
        CustomLibraryError: see `headrace.custom.open_library`.
    """
    from headrace.custom import open_library
    from headrace.custom.guard import GuardOptions

    return open_library(
        path,
        abi=abi or cfg.custom_lib_abi,
        rotation=cfg.rotated_boxes or None,  # without the key, the function's name decides
        guard=guard or cfg.custom_lib_guard,
        guard_options=GuardOptions.of(cfg),
    )


def library_for_inputs(
    cfg: ModelConfig, choice: Choice | None, *, abi: str | None, guard: GuardMode | None
) -> CustomLibrary | None:
    """The custom library, loaded for its parser already or for its other functions now.

    Raises:
        CustomLibraryError: see `headrace.custom.open_library`.
    """
    if choice is not None and choice.library is not None:
        return choice.library
    if cfg.custom_lib_path is None:
        return None
    return custom_library(cfg, cfg.custom_lib_path, abi=abi, guard=guard)


def _from_function(cfg: ModelConfig, kind: _Kind | None, function: Callable[..., object]) -> Choice:
    from headrace.custom.python_library import FunctionLibrary

    if kind is None:
        raise ConfigError(
            f"parser={function!r} is not called: network-type {cfg.network_type} parses nothing",
            where=cfg.origin("network_type").where or str(cfg.path),
            expected="0 (detector), 1 (classifier), 2 or 3 (segmentation)",
        )
    library = FunctionLibrary(function)
    notices = []
    name = getattr(cfg, kind.field)
    if name and cfg.origin(kind.field).option != "parser":
        text = f"{kind.key}={name} is not called: the program's parser {library.name} is"
        notices.append(Finding("parser-of-program", "info", text, str(cfg.origin(kind.field))))
    parser = getattr(library, kind.finder)(library.name)
    return Choice(parser, f"{library.name} of the program", notices=notices)


def _from_library(
    cfg: ModelConfig,
    kind: _Kind,
    name: str,
    path: Path,
    abi: str | None,
    guard: GuardMode | None,
    generation: Literal["6.2", "9.1"],
) -> Choice:
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
        replaced = error.finding.changed(
            code="library-replaced", level="warning", where=where,
            suffix=f"; headrace's built-in parser {name} decodes the outputs instead",
        )  # fmt: skip
        return Choice(kind.known[name], f"built-in {name}", notices=[replaced])
    try:
        parser = getattr(library, kind.finder)(name)
    except CustomLibraryError as failure:
        from headrace.custom.load_errors import named_at

        refusal = named_at(failure, cfg.origin(kind.field))
        if name in kind.known:
            hint = f"without custom-lib-path, headrace's built-in parser {name} decodes the outputs"
        elif any(refusal.data.get(names, True) for names in ("meant", "others")):
            raise refusal from failure.__cause__
        elif near := kind.did_you_mean(name):
            hint = f"headrace's own parsers need no custom-lib-path{near}"
        else:
            raise refusal from failure.__cause__
        raise _with_hints(refusal, [hint]) from failure
    if kind is KINDS[NetworkType.INSTANCE_SEGMENTATION] and cfg.mask_content != "auto":
        from headrace.custom.mask_keypoints import MaskContent

        parser = MaskContent(parser, cfg.mask_content)
    if library.kind == "cpp" and cfg.custom_lib_int64 != "int64":
        from headrace.custom.narrowed import NarrowedOutputs, older_tensorrt

        reason = "custom-lib-int64=int32" if cfg.custom_lib_int64 == "int32" else ""
        reason = reason or ("generation 6.2 had no INT64" if generation == "6.2" else "")
        if not reason and (linked := older_tensorrt(path)):
            reason = f"the library is linked against {linked}, which had no INT64"
        if reason:
            parser = NarrowedOutputs(parser, reason)
    return Choice(parser, f"{name} in {path.name}", library)


def _no_other_hints(path: Path, kind: _Kind, name: str) -> list[str]:
    """Hints on a name that headrace has no parser for, its library being of no use."""
    from headrace.binary.elf import ElfError, ElfFile
    from headrace.custom.load_errors import missing_hints

    none = f"headrace has no built-in parser {name} to use instead"
    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        return [none + kind.did_you_mean(name)]
    if name in elf.exported():  # that is what was meant
        return [none]
    hints = missing_hints(elf, name, kind.entry).hints
    return [f"it has no function {name!r} either", *hints, none + kind.did_you_mean(name)]


def _with_hints(error: HeadraceError, hints: list[str]) -> HeadraceError:
    return type(error)(error.finding, fix=hints)
