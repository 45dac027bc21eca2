"""A user's library in a worker process, with the face of any other `CustomLibrary`."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import CustomLibraryError, ParserError
from noria._core.notices import Notice, note_once
from noria.custom.cpp_function import nested
from noria.custom.guard import wire
from noria.custom.guard.arena import OutputArena
from noria.custom.guard.call_args import InputsGiven, LoadGiven, ParserGiven
from noria.custom.guard.call_json import Params, ParserKind, network_json, params_json
from noria.custom.guard.errors import LibraryDied
from noria.custom.guard.messages import notices_from
from noria.custom.guard.options import GuardMode, GuardOptions
from noria.custom.guard.process import GuardedProcess
from noria.custom.guard.repro import Call, CaseSaver
from noria.custom.guard.results import READERS
from noria.custom.guard.trust import TrustStore, content_hash
from noria.custom.inputs import INPUT_INITIALIZER, InputInitializer
from noria.custom.validate import CheckedParser
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation
from noria.meta import DetectionParams, Detections, Layer, NetworkInfo

_HERE = "noria.custom.guard.operations"

Tensors = dict[str, npt.NDArray[Any]]


class GuardedLibrary:
    """The library that `custom-lib-path` names, loaded into a worker process.

    Attributes:
        process: the worker; `process.deaths` counts its faults.
        guard: `auto` or `always`, as asked for.
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
        self.decisions: list[Notice] = []
        self.sha256 = content_hash(path)
        self._abi, self._rotation = abi, rotation
        self._parsers: list[weakref.ref[_Function]] = []
        self._symbols: list[str] = []
        self._has_initializer = False
        self._said: set[Notice] = set()
        self._prepared: weakref.ref[_Function] | None = None
        self._clean = 0
        self._cases = CaseSaver(path, self.sha256, abi, rotation)
        me = weakref.ref(self)  # without a cycle, the worker ends when nobody has the library

        def set_up() -> None:
            if library := me():
                library._set_up()

        def on_news(side: dict[str, Any]) -> None:
            if library := me():
                library._take_news(side)

        self.process = GuardedProcess(
            str(path), options, python=kind == "python", setup=set_up, on_news=on_news
        )
        note_once(self.decisions, "info", self._why(), str(path))
        with self.process.lock:
            try:
                self.process.running(str(path))
            except LibraryDied as error:
                load = Call("load", "loading", LoadGiven(), options.load_timeout_s)
                error = self._cases.told(error, options, lambda: load)
                raise CustomLibraryError(
                    error.found.replace("the function", "the library", 1).partition(";")[0]
                    + " while it was loaded",
                    where=str(path),
                    fix=error.fix,
                ) from error

    def __repr__(self) -> str:
        return f"GuardedLibrary({str(self.path)!r}, pid {self.process.pid})"

    @property
    def output_memory(self) -> OutputArena:
        """Where an engine had better make its outputs: parsers read them there, uncopied."""
        return self.process.arena

    def close(self) -> None:
        """End the worker. It is started again if a parser is called nevertheless."""
        self.process.close()

    def symbols(self) -> list[str]:
        """Names in it that may be parsers, sorted."""
        return list(self._symbols)

    def bbox_parser(self, name: str) -> CheckedParser:
        """See `CustomLibrary.bbox_parser`."""
        return self._boxes("bbox", name)

    def instance_parser(self, name: str) -> CheckedParser:
        """See `CustomLibrary.instance_parser`."""
        return self._boxes("instance", name)

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """See `CustomLibrary.classifier_parser`."""
        function = self._function("classifier", name)
        checked = CheckedClassifier(function, function.where)
        function.notices = checked.notices
        return checked

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """See `CustomLibrary.segmentation_parser`."""
        function = self._function("segmentation", name)
        checked = CheckedSegmentation(function, function.where)
        function.notices = checked.notices
        return checked

    def input_initializer(self) -> InputInitializer | None:
        """See `CustomLibrary.input_initializer`."""
        return self._initialize if self._has_initializer else None

    def _boxes(self, kind: ParserKind, name: str) -> CheckedParser:
        function = self._function(kind, name)
        checked = _CheckedBoxes(function, function.where)
        function.notices = checked.notices
        if kind == "bbox":
            checked.set_quick(function.quick)
        return checked

    def _function(self, kind: ParserKind, name: str) -> _Function:
        where = f"{self.path}: {name}"
        function = _Function(self, kind, name, where)
        with self.process.lock:
            self.process.running(where)
            function.open()
            self._parsers.append(weakref.ref(function))
        return function

    def _set_up(self) -> None:
        payload = {"path": str(self.path), "abi": self._abi, "rotation": self._rotation}
        answer, _ = self.process.invoke(f"{_HERE}:open_library", payload, what=str(self.path))
        self._symbols = [str(s) for s in answer.get("symbols", ())]
        self._has_initializer = bool(answer.get("initializer"))
        for text in answer.get("unprotected", ()):
            note_once(
                self.decisions, "warning", f"the worker is not closed off: {text}", str(self.path)
            )
        self._prepared = None
        for reference in self._parsers:
            if function := reference():
                function.open()

    def _initialize(
        self, layers: dict[str, npt.NDArray[Any]], network: NetworkInfo, max_batch: int
    ) -> None:
        payload = {
            "names": list(layers),
            "network": network_json(network),
            "max_batch": max_batch,
        }
        with self.process.lock:
            self._prepared = None
            try:
                _, filled = self.process.invoke(
                    f"{_HERE}:initialize",
                    payload,
                    list(layers.values()),
                    what=f"{self.path}: {INPUT_INITIALIZER}",
                )
            except LibraryDied as error:
                given, limit = InputsGiven(network, max_batch), self.options.load_timeout_s
                call = Call("inputs", INPUT_INITIALIZER, given, limit, layers)
                raise self._cases.told(error, self.options, lambda: call) from None
            for array, values in zip(layers.values(), filled, strict=True):
                np.copyto(array, values)

    def _take_news(self, side: dict[str, Any]) -> None:
        for key in ("decisions", "notices"):
            for notice in notices_from(side.get(key, ())):
                if notice in self._said:
                    continue
                self._said.add(notice)
                function = self._prepared() if self._prepared else None
                if key == "notices" and function is not None:
                    function.notices.append(notice)
                else:
                    self.decisions.append(notice)

    def call(
        self,
        function: _Function,
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: Params,
        asked: str | None = None,
    ) -> Any:
        """One call of a parser in the worker; whose results are still to be checked.

        Args:
            asked: how the call ended, if it was asked for natively; else None.
        """
        process = self.process
        lock = process.lock
        with lock:
            if asked is None and lock.inside:
                raise nested(function.where)
            lock.inside = True
            try:
                if asked is None:
                    process.running(function.where)
                found = self._call(function, layers, network, params, asked)
                if self.guard == "auto":
                    self._count_clean()
                function.learn(layers, network, params, self._before_trust())
                return found
            except LibraryDied as error:
                self._prepared = None
                if error.death is None:
                    raise
                # A write into a tensor that is shared is a fault which the worker mends, unless
                # the library has taken signals for itself.
                function.in_place = True
                raise self._cases.told(
                    error,
                    self.options,
                    lambda: Call(
                        function.kind,
                        function.name,
                        ParserGiven(network, params),
                        self.options.timeout_s,
                        {name: layer.data for name, layer in layers.items()},
                    ),
                ) from None
            except ParserError as error:
                raise self._with_limit(error) from None
            finally:
                lock.inside = False

    def _call(
        self,
        function: _Function,
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: Params,
        asked: str | None,
    ) -> Any:
        arrays = function.arrays(layers)
        if asked is None and (
            self._prepared is not function.reference or not function.fits(arrays, network, params)
        ):
            self._prepared = None
            function.prepare(arrays, network, params)
            self._prepared = function.reference
        found, wrote = self.process.call(
            list(arrays.values()),
            function.offsets,
            function.sizes,
            READERS[function.kind],
            function.where,
            shared=not function.in_place,
            asked=asked,
        )
        function.in_place |= wrote
        return found

    def _before_trust(self) -> int:
        """Calls that can be done without asking `_count_clean`."""
        left = self.options.clean_calls - self._clean - self.process.quick_calls
        return left - 1 if self.guard == "auto" and left > 0 else sys.maxsize

    def _count_clean(self) -> None:
        self._clean += 1
        clean = self._clean + self.process.quick_calls
        if clean != self.options.clean_calls or self.process.deaths:
            return
        try:
            TrustStore().add(self.sha256, self.path, f"{clean} calls without a fault")
        except CustomLibraryError as error:
            text = f"it stays guarded: {error.found}"
        else:
            text = f"{clean} calls without a fault: from the next start on it is trusted"
            text += " and runs in the application's process; noria trust --remove undoes this"
        note_once(self.decisions, "info", text, str(self.path))

    def _with_limit(self, error: ParserError) -> ParserError:
        limit = self.options.memory_mib
        if limit and ("std::bad_alloc" in error.found or "MemoryError" in error.found):
            error.fix.append(
                f"its worker may take {limit} MiB (custom-lib-guard-memory); 0 sets no limit"
            )
            return type(error)(
                error.found, where=error.where, expected=error.expected, fix=error.fix
            )
        return error

    def _why(self) -> str:
        if self.guard == "always":
            return "it runs in a worker process of its own (guard=always)"
        return (
            "it runs in a worker process of its own, because it is not trusted yet: it is after "
            f"{self.options.clean_calls} calls without a fault, or by: noria trust {self.path}"
        )


class _CheckedBoxes(CheckedParser):
    """Of a `_Function`, whose values were looked at while they were read."""

    __slots__ = ("_function",)

    def __init__(self, function: _Function, where: str) -> None:
        super().__init__(function, where)
        self._function = function

    def finish(
        self,
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: DetectionParams,
        asked: str,
    ) -> Detections:
        """A call that was asked for natively and ended as `asked`, see `GuardAsk`."""

        answered = partial(self._function, asked=asked)

        return self.check(self.told(answered, layers, network, params), params)

    def break_off(self) -> None:
        """The wait for a call that was asked for natively was interrupted."""
        self._function.break_off()

    def check(self, returned: Any, params: DetectionParams) -> Detections:
        """See `CheckedParser`; what is returned is (detections, whether they are sound)."""
        detections, sound = returned
        return detections if sound else super().check(detections, params)


class _Function:
    """One parser in the worker."""

    def __init__(self, library: GuardedLibrary, kind: ParserKind, name: str, where: str) -> None:
        self.kind = kind
        self.name = name
        self.where = where
        self.offsets: list[int] = []
        self.sizes: list[int] = []  # bytes of each tensor
        self.notices: list[Notice] = []
        self.in_place = False  # it decodes in place: tensors are copied for it
        self.reference = weakref.ref(self)
        self._library = library
        self._number = -1
        self._layout: list[tuple[str, npt.DTypeLike, tuple[int, ...]]] = []
        self._network: NetworkInfo | None = None
        self._params: Params | None = None
        self.quick = _native.GuardAsk(library.process.lock)

    def __call__(
        self,
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: Any,
        asked: str | None = None,
    ) -> Any:
        return self._library.call(self, layers, network, params, asked)

    def open(self) -> None:
        """Find the function in the worker.

        Raises:
            CustomLibraryError: it is not there, or is none of this kind.
        """
        answer, _ = self._library.process.invoke(
            f"{_HERE}:open_parser", {"kind": self.kind, "name": self.name}, what=self.where
        )
        self._number = int(answer["parser"])
        self._params = None

    def learn(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: Params, calls: int
    ) -> None:
        """Have the next calls like this one done natively, as many, if that can be."""
        if self.kind != "bbox" or self.in_place or type(layers) is not dict:
            return
        places = self.offsets, self.sizes
        self._library.process.learn_boxes(self.quick, layers, places, network, params, calls)

    def break_off(self) -> None:
        """End the worker: the answer would be taken for that of the next call."""
        self._library.process.close()

    def fits(self, arrays: Tensors, network: NetworkInfo, params: Params) -> bool:
        """Whether the worker is prepared for a call with these."""
        return (
            params is self._params
            and (network is self._network or network == self._network)
            and self._layout == [(n, x.dtype, x.shape) for n, x in arrays.items()]
        )

    def arrays(self, layers: Mapping[str, Layer]) -> Tensors:
        """The tensors as they can be copied: views, which nobody else gives another shape."""
        return {name: np.ascontiguousarray(x.data).view() for name, x in layers.items()}

    def prepare(self, arrays: Tensors, network: NetworkInfo, params: Params) -> None:
        """Tell the worker where tensors will be, and the parameters.

        Each tensor ends where a page ends (its start is a multiple of 64 bytes): the worker makes
        the page behind it one that cannot be written.
        """
        described, offsets = [], []
        end = wire.page_ceil(4096 + len(repr(params_json(params))) + 256 * len(arrays))
        for data in arrays.values():
            room = wire.page_ceil(max(data.nbytes, 1))
            start = end + room - (-(-data.nbytes // 64) * 64)
            offsets.append(start)
            described.append([data.dtype.str, list(data.shape), start])
            end += room + wire.PAGE + wire.GAP
        process = self._library.process
        process.grow_inputs(end, self.where)
        payload = {
            "parser": self._number,
            "names": list(arrays),
            "network": network_json(network),
            "params": params_json(params),
            "_arrays": described,
        }
        process.invoke(f"{_HERE}:prepare", payload, what=self.where)
        self.offsets, self.sizes = offsets, [x.nbytes for x in arrays.values()]
        self._layout = [(n, x.dtype, x.shape) for n, x in arrays.items()]
        self._network, self._params = network, params
