"""A saved call once more, in a worker or in this very process: the same operations in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import CustomLibraryError, HeadraceError, ParserError
from headrace._core.files import os_reason
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import FAULT_HINT, why_lost
from headrace._core.text import error_text
from headrace._core.types import Array, Arrays
from headrace.binary.elf import ElfError, ElfFile
from headrace.custom.guard.answers import read_answer
from headrace.custom.guard.call_args import InputsArgs, LoadArgs, ParserArgs
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.repro import Case
from headrace.custom.in_process import limited
from headrace.custom.library import open_library
from headrace.engine.plugin_graph.plugin_saving import spec_of
from headrace.infer.model.guarded_cases import BuildArgs, NetworkArgs, PluginArgs
from headrace.meta import Layer

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.custom.validate import CustomLibrary
    from headrace.infer.model.guarded_engines import GuardedEngines


@dataclass(slots=True)
class _How:
    """Where a call is repeated, and for how long; 0 sets no limit."""

    path: Path
    guard: bool
    limit: float
    options: GuardOptions

    def limited(self, what: str) -> Any:
        return limited(0 if self.guard else self.limit, f"{self.path}: {what}")

    def loading(self) -> Any:
        """For the time before the call itself."""
        seconds = 0 if self.guard or not self.limit else self.options.load_timeout_s
        return limited(seconds, str(self.path))


@dataclass(slots=True)
class _Here:
    """This process in a worker's place: see `Keeping`, and `GuardedEngines.ask`."""

    kept: dict[int, Any] = field(default_factory=dict)

    def ask(
        self,
        operation: str,
        payload: Mapping[str, object],
        where: str,
        arrays: Sequence[object] = (),
        **_: object,
    ) -> tuple[Any, list[Any]]:
        from headrace.infer.model import guarded_operations
        from headrace.infer.model.guarded_worker import ANSWERS

        function = getattr(guarded_operations, operation)
        try:
            answer, results = function(self, dict(payload), list(arrays))
        except HeadraceError:
            raise
        except Exception as error:  # as a worker tells it
            raise CustomLibraryError(error_text(error), where=where) from error
        return read_answer(answer, ANSWERS[operation]), results


def title(case: Case) -> str:
    """The call, in words."""
    args = case.args
    if isinstance(args, PluginArgs):
        assert args.record is not None
        return f"plugin {case.name}, layer {args.record.node!r}"
    if isinstance(args, BuildArgs):
        return f"plugins of {args.request['where']}"
    return case.name


def repeat(
    case: Case, arrays: Arrays, path: Path, *, guard: bool, timeout_s: float
) -> tuple[str, list[Finding]]:
    """Repeat the call of a case.

    Args:
        case: the saved call.
        arrays: its inputs.
        path: the library, or another build of it.
        guard: in a worker process.
        timeout_s: limit of the call; 0 sets none.

    Returns:
        The outcome in words, and notices.

    Raises:
        HeadraceError: what the call raised; LibraryDiedError and its like, if it ended its worker.
    """
    limit = timeout_s or 1e9
    options = GuardOptions(
        timeout_s=limit,
        load_timeout_s=limit if case.kind in ("inputs", "load") else GuardOptions().load_timeout_s,
        build_timeout_s=limit,
        memory_mib=case.memory_mib,
        restarts=0,
        once=True,
    )
    how = _How(path, guard, timeout_s, options)
    args = case.args
    if isinstance(args, LoadArgs) and args.config is not None:
        return _with_engines(case, args, args.config, list(arrays.values()), how)
    return _with_library(case, arrays, how)


def _with_library(case: Case, arrays: Arrays, how: _How) -> tuple[str, list[Finding]]:
    args = case.args
    if isinstance(args, LoadArgs):
        with how.limited(case.name):
            return "the library was loaded", _open(case, how).decisions
    with how.loading():
        library = _open(case, how)
        if isinstance(args, ParserArgs):
            parser: Any = getattr(library, f"{case.kind}_parser")(case.name)
        else:
            fill = library.input_initializer()
    if isinstance(args, InputsArgs):
        if fill is None:
            raise CustomLibraryError(f"the library has no {case.name}", where=str(how.path))
        filled = dict(arrays)
        with how.limited(case.name):
            fill(filled, args.network, args.max_batch)
        return f"the function filled {_arrays(filled)}", library.decisions
    assert isinstance(args, ParserArgs)
    layers = {name: Layer(name, _placed(data, library)) for name, data in arrays.items()}
    with how.limited(case.name):
        try:
            parsed = parser(layers, args.network, args.params)
        except ParserError as error:
            if (lost := why_lost()) and not how.guard:
                text = f"the function left the GPU unusable: {lost}"
                raise ParserError(text, where=error.where, fix=FAULT_HINT) from error
            raise
    return f"the function returned {parsed!r}", [*library.decisions, *parser.notices]


def _placed(data: Array, library: CustomLibrary) -> Array:
    """Where an engine would have made it: the same memory lies behind it there."""
    if not isinstance(library, GuardedLibrary):
        return data
    target = library.output_memory.take(data.dtype, data.shape)
    if target is None:
        return data
    np.copyto(target, data)
    return target


def _open(case: Case, how: _How) -> CustomLibrary:
    return open_library(
        how.path,
        abi=case.abi,
        rotation=case.rotation,
        guard="always" if how.guard else "never",
        guard_options=how.options,
    )


def _with_engines(
    case: Case,
    args: LoadArgs,
    config: ModelConfig,
    arrays: list[Array],
    how: _How,
) -> tuple[str, list[Finding]]:
    cfg = config.with_overrides(custom_lib_path=how.path)
    loading = how.loading() if type(args) is not LoadArgs else how.limited(case.name)
    with loading:
        asked, notices = _engines(cfg, how)
    if isinstance(args, PluginArgs):
        return _plugin(args, arrays, asked, how), notices
    number = 0
    text = "the library was loaded"
    if isinstance(args, NetworkArgs) and args.function:
        where = f"{how.path}: {args.function}"
        with how.limited(args.function):
            answer, blobs = asked.ask(
                "make_network", {"function": args.function}, where, limit=how.options.timeout_s
            )
        number = answer.network
        nodes = ", ".join(answer.plugins)
        text = f"the function made a network of {blobs[0].nbytes:,} bytes"
        text += f" with the plugins {nodes}" if nodes else ""
        notices += answer.notices
    if isinstance(args, BuildArgs):
        where = title(case)
        with how.limited(where):
            answer, _ = asked.ask(
                "build_layers",
                {**args.request, "network": number},
                f"{how.path}: {where}",
                arrays,
                limit=how.options.timeout_s,
            )
        text = f"{len(answer.records)} plugin layer(s) were built"
        notices += answer.notices
    return text, notices


def _plugin(args: PluginArgs, arrays: list[Array], asked: GuardedEngines | _Here, how: _How) -> str:
    record = args.record
    assert record is not None
    where = f"plugin {spec_of(record).name}, layer {record.node!r}"
    blobs, called = arrays[: len(record.blobs)], arrays[len(record.blobs) :]

    def ask(operation: str, payload: dict[str, object], arrays: Sequence[object] = ()) -> Any:
        return asked.ask(
            operation, payload, where, arrays, limit=how.options.timeout_s, plugin=True
        )

    with how.limited(where):
        payload: dict[str, object] = {"record": record.to_json().decode(), "where": args.place}
        answer, _ = ask("load_layer", payload, blobs)
        layer = answer.layer
        answer, _ = ask("open_layer", {"layer": layer})
        numbers = [answer.context, layer]
        outputs = []
        if args.inputs is not None:
            payload = {"context": numbers[0], "inputs": args.inputs, "fresh": None}
            outputs = [np.array(a) for a in ask("call_layer", payload, called)[1]]
        for number in numbers:
            ask("close", {"number": number})
    if args.inputs is None:
        return "the plugin was loaded"
    names = record.outputs if len(set(record.outputs)) == len(outputs) else map(str, range(64))
    return f"the plugin gave {_arrays(dict(zip(names, outputs, strict=False)))}"


def _engines(cfg: ModelConfig, how: _How) -> tuple[GuardedEngines | _Here, list[Finding]]:
    from headrace.infer.model.guarded_engines import GuardedEngines
    from headrace.infer.model.guarded_worker import pickled_config

    try:
        ElfFile.read(how.path)
    except (ElfError, OSError) as error:
        raise CustomLibraryError(
            f"the library cannot be loaded: {os_reason(error)}",
            where=str(how.path),
            fix="--library names another build of it, or where it is now",
        ) from error
    if how.guard:
        engines = GuardedEngines(cfg, how.path, how.options)
        return engines, engines.decisions
    here = _Here()
    payload = {"config": pickled_config(cfg), "path": str(how.path)}
    answer, _ = here.ask("open_engines", payload, str(how.path))
    return here, answer.notices


def _arrays(arrays: Arrays) -> str:
    return ", ".join(
        f"{name} {a.dtype.name} {a.shape}{_range(a)}" for name, a in list(arrays.items())[:16]
    )


def _range(array: Array) -> str:
    return f" from {float(array.min()):g} to {float(array.max()):g}" if array.size else ""
