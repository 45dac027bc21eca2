"""A user's library in a worker process; a `CustomLibrary` like one in this process."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._core.errors import CustomLibraryError, ParserError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.types import Array, Message
from headrace.custom.cpp_parsers import called_in_call
from headrace.custom.guard import ipc
from headrace.custom.guard.answers import LoadedAnswer, OpenedAnswer
from headrace.custom.guard.arena import OutputArena
from headrace.custom.guard.call_args import (
    InputsArgs,
    LoadArgs,
    Params,
    ParserArgs,
    network_json,
    params_json,
)
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.ipc import RESULT_READERS, notices_from
from headrace.custom.guard.options import GuardMode, GuardOptions
from headrace.custom.guard.process import SERVE, GuardedProcess
from headrace.custom.guard.repro import CaseSaver, FatalCall
from headrace.custom.guard.trust import TrustStore, content_hash
from headrace.custom.user_calls import INPUT_INITIALIZER, InputInitializer, ParserKind
from headrace.custom.validate import CustomLibrary, UserParser
from headrace.meta import Layer, NetworkInfo

Tensors: TypeAlias = "dict[str, Array]"


class GuardedLibrary(CustomLibrary):
    """The library that `custom-lib-path` names, loaded into a worker process.

    Attributes:
        process: the worker; `process.deaths` counts its faults.
        guard: `auto` or `always`, the mode that the user wants.
        prepared: the parser that the worker is prepared for.
        cases: saves calls that end the worker.
    """

    def __init__(
        self,
        path: Path,
        kind: Literal["cpp", "python"],
        *,
        abi: str,
        rotation: bool | None,
        guard: GuardMode,
        options: GuardOptions,
    ) -> None:
        self.path = path
        self.kind = kind
        self.guard = guard
        self.options = options
        self.decisions: list[Finding] = []
        self.sha256 = content_hash(path)
        self._abi, self._rotation = abi, rotation
        self._parsers: list[weakref.ref[GuardedParser]] = []
        self._symbols: list[str] = []
        self._has_initializer = False
        self._noticed: set[Finding] = set()
        self.prepared: weakref.ref[GuardedParser] | None = None
        self._clean = 0
        self.cases = CaseSaver(path, self.sha256, abi, rotation)
        me = weakref.ref(self)  # no cycle: the worker ends with the last reference to the library

        def set_up() -> None:
            if library := me():
                library._set_up()

        def on_news(side: Message) -> None:
            if library := me():
                library._add_news(side)

        def on_death() -> None:
            if library := me():
                library._count_death()

        self.process = GuardedProcess(
            str(path),
            options,
            python=kind == "python",
            setup=set_up,
            on_news=on_news,
            on_death=on_death,
        )
        note_once(self.decisions, Finding("guard-used", "info", self._why(), str(path)))
        with self.process.lock:
            try:
                self.process.started(str(path))
            except LibraryDiedError as error:
                load = FatalCall("load", "loading", LoadArgs(), options.load_timeout_s)
                error = self.cases.with_hint(error, options, lambda: load)
                raise error.while_loading(path) from error

    def __repr__(self) -> str:
        return f"GuardedLibrary({str(self.path)!r}, pid {self.process.pid})"

    @property
    def output_memory(self) -> OutputArena:
        """Memory for an engine's outputs: parsers read them there, uncopied."""
        return self.process.arena

    def close(self) -> None:
        """End the worker. It is started again if a parser is called nevertheless."""
        self.process.close()

    def symbols(self) -> list[str]:
        """List names in it that may be parsers, sorted."""
        return list(self._symbols)

    def input_initializer(self) -> InputInitializer | None:
        """Get the function as `CustomLibrary` does."""
        return self._initialize if self._has_initializer else None

    def _parser(self, kind: ParserKind, name: str) -> UserParser:
        function = GuardedParser(self, kind, name, f"{self.path}: {name}")
        with self.process.lock:
            self.process.started(function.where)
            function.open()
            self._parsers.append(weakref.ref(function))
        return function, function.where, None, function.notices

    def _count_death(self) -> None:
        if (restarts := self.process.restarts_notice()) is not None:
            self.decisions[:] = [d for d in self.decisions if d.code != restarts.code] + [restarts]

    def _set_up(self) -> None:
        payload = {"path": str(self.path), "abi": self._abi, "rotation": self._rotation}
        for notice in self.process.notices:
            note_once(self.decisions, notice)
        answer, _ = self.process.invoke(
            f"{SERVE}:load_library", payload, what=str(self.path), answer=LoadedAnswer
        )
        self._symbols = answer.symbols
        self._has_initializer = answer.initializer
        self.prepared = None
        for reference in self._parsers:
            if function := reference():
                function.open()

    def _initialize(self, layers: dict[str, Array], network: NetworkInfo, max_batch: int) -> None:
        payload = {
            "names": list(layers),
            "network": network_json(network),
            "max_batch": max_batch,
        }
        what = f"{self.path}: {INPUT_INITIALIZER}"
        with self.process.lock:
            self.prepared = None
            try:
                _, filled = self.process.invoke(
                    f"{SERVE}:initialize", payload, list(layers.values()), what=what
                )
                kinds = [(a.dtype, a.shape) for a in filled]
                if kinds != [(a.dtype, a.shape) for a in layers.values()]:
                    raise self.process.nonsense(what)
            except LibraryDiedError as error:
                args, limit = InputsArgs(network, max_batch), self.options.load_timeout_s
                call = FatalCall("inputs", INPUT_INITIALIZER, args, limit, layers)
                raise self.cases.with_hint(error, self.options, lambda: call) from None
            for array, values in zip(layers.values(), filled, strict=True):
                np.copyto(array, values)

    def _add_news(self, side: Message) -> None:
        for key in ("decisions", "notices"):
            for notice in notices_from(side.get(key, ())):
                if notice in self._noticed:
                    continue
                self._noticed.add(notice)
                function = self.prepared() if self.prepared else None
                if key == "notices" and function is not None:
                    function.notices.append(notice)
                else:
                    self.decisions.append(notice)

    def count_clean(self) -> None:
        """Count a call without a fault; trust the library after enough of them."""
        if self.guard != "auto":
            return
        self._clean += 1
        if self._clean != self.options.clean_calls or self.process.deaths:
            return
        try:
            TrustStore().add(self.sha256, self.path, f"{self._clean} calls without a fault")
        except CustomLibraryError as error:
            text = f"it stays guarded: {error:brief}"
        else:
            text = f"{self._clean} calls without a fault: from the next start on it is trusted"
            text += " and runs in the application's process; headrace trust --remove undoes this"
        note_once(self.decisions, Finding("guard-trust", "info", text, str(self.path)))

    def with_limit(self, error: ParserError) -> ParserError:
        """Name the worker's limit in an error for memory that ran out."""
        limit = self.options.memory_mib
        if limit and error.data.get("exception") in ("std::bad_alloc", "MemoryError"):
            more = f"its worker may take {limit} MiB (custom-lib-guard-memory); 0 sets no limit"
            return type(error)(error.finding, fix=more)
        return error

    def _why(self) -> str:
        if self.guard == "always":
            return "it runs in a worker process of its own (guard=always)"
        return (
            "it runs in a worker process of its own, because it is not trusted yet: it is after "
            f"{self.options.clean_calls} calls without a fault, or by: headrace trust {self.path}"
        )


class GuardedParser:
    """One parser in the worker."""

    def __init__(self, library: GuardedLibrary, kind: ParserKind, name: str, where: str) -> None:
        self.kind = kind
        self.name = name
        self.where = where
        self._offsets: list[int] = []
        self._sizes: list[int] = []  # bytes of each tensor
        self.notices: list[Finding] = []
        self._in_place = False  # it decodes in place: tensors are copied for it
        self.reference = weakref.ref(self)
        self._library = library
        self._number = -1
        self._layout: list[tuple[str, npt.DTypeLike, tuple[int, ...]]] = []
        self._network: NetworkInfo | None = None
        self._params: Params | None = None

    def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: Any) -> Any:
        """Call the parser in the worker, once.

        Returns:
            The result, its numbers still to be checked.

        Raises:
            LibraryDiedError: the worker died, or did not return in time, or is given up.
            ParserError: as the parser itself raises.
        """
        library, process = self._library, self._library.process
        lock = process.lock
        with lock:
            if lock.inside:
                raise called_in_call(self.where)
            lock.inside = True
            try:
                process.started(self.where)
                parsed = self._call(dict(layers), network, params)
            except LibraryDiedError as error:
                library.prepared = None
                if error.death is None:
                    raise
                # A write into a shared tensor is a fault which the worker mends, unless the library
                # handles signals itself.
                self._in_place = True
                saved = partial(self._call_to_save, layers, network, params)
                raise library.cases.with_hint(error, library.options, saved) from None
            except ParserError as error:
                raise library.with_limit(error) from None
            else:
                library.count_clean()
                return parsed
            finally:
                lock.inside = False

    def _call(self, layers: dict[str, Layer], network: NetworkInfo, params: Params) -> Any:
        # views: other code cannot give them another shape
        arrays = {name: np.ascontiguousarray(x.data).view() for name, x in layers.items()}
        library = self._library
        if library.prepared is not self.reference or not self._fits(arrays, network, params):
            library.prepared = None
            self._prepare(arrays, network, params)
            library.prepared = self.reference
        parsed, wrote = library.process.call(
            list(arrays.values()),
            self._offsets,
            self._sizes,
            RESULT_READERS[self.kind],
            self.where,
            shared=not self._in_place,
        )
        self._in_place |= wrote
        return parsed

    def _call_to_save(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: Params
    ) -> FatalCall:
        return FatalCall(
            self.kind,
            self.name,
            ParserArgs(network, params),
            self._library.options.timeout_s,
            {name: layer.data for name, layer in layers.items()},
        )

    def open(self) -> None:
        """Get the parser from the library in the worker.

        Raises:
            CustomLibraryError: it is not there, or is none of this kind.
        """
        answer, _ = self._library.process.invoke(
            f"{SERVE}:open_parser",
            {"kind": self.kind, "name": self.name},
            what=self.where,
            answer=OpenedAnswer,
        )
        self._number = answer.parser
        self._params = None

    def _fits(self, arrays: Tensors, network: NetworkInfo, params: Params) -> bool:
        """Return whether the worker is prepared for a call with these."""
        return (
            params is self._params
            and (network is self._network or network == self._network)
            and self._layout == [(n, x.dtype, x.shape) for n, x in arrays.items()]
        )

    def _prepare(self, arrays: Tensors, network: NetworkInfo, params: Params) -> None:
        """Send the worker the places of tensors, and the parameters.

        Each tensor ends where a page ends (its start is a multiple of 64 bytes): the worker makes
        the page behind it one that cannot be written.
        """
        described, offsets = [], []
        end = ipc.page_ceil(4096 + len(repr(params_json(params))) + 256 * len(arrays))
        for data in arrays.values():
            room = ipc.page_ceil(max(data.nbytes, 1))
            start = end + room - (-(-data.nbytes // 64) * 64)
            offsets.append(start)
            described.append([data.dtype.str, list(data.shape), start])
            end += room + ipc.PAGE + ipc.GAP
        process = self._library.process
        process.grow_inputs(end, self.where)
        payload = {
            "parser": self._number,
            "names": list(arrays),
            "network": network_json(network),
            "params": params_json(params),
            "_arrays": described,
        }
        process.invoke(f"{SERVE}:LibraryWorker.prepare", payload, what=self.where)
        self._offsets, self._sizes = offsets, [x.nbytes for x in arrays.values()]
        self._layout = [(n, x.dtype, x.shape) for n, x in arrays.items()]
        self._network, self._params = network, params
