"""The worker's side: it opens one user's library and answers requests for it."""

from __future__ import annotations

import importlib
import json
import mmap
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import CustomLibraryError, ParserError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import why_lost
from headrace._core.types import Message
from headrace.custom.guard import ipc
from headrace.custom.guard.call_args import network_from, params_from
from headrace.custom.guard.ipc import (
    RESULT_WRITERS,
    Arrays,
    ResultTooLargeError,
    SharedRegion,
    Writer,
    arrays_in,
    control_words,
    error_json,
    notices_json,
    put_arrays,
)
from headrace.custom.guard.tensors import MAP_REGION, CannotShareError, Tensors
from headrace.custom.library import open_here
from headrace.custom.user_calls import Checked, ParserKind
from headrace.meta import Layer

if TYPE_CHECKING:
    from headrace.custom.validate import CustomLibrary


Answer: TypeAlias = "tuple[Message, Arrays]"


class LibraryWorker:
    """Serves one application until that has ended.

    Attributes:
        library: the user's library, once it is open.
        parsers: its parsers so far: kind, parser, name for errors.
        kept: further objects that operations keep for the application, by number.
        left: what could not be closed to this process, see `protections.OPEN`, and why.
    """

    def __init__(self, page: int, inputs: int, outputs: int, results: int, link: int) -> None:
        self._channel = _native.GuardChannel(page, link)
        self._words = control_words(page)
        self.inputs, self.outputs = SharedRegion(inputs), SharedRegion(outputs)
        self.library: CustomLibrary | None = None
        self.kept: dict[int, object] = {}
        self.parsers: list[tuple[ParserKind, Checked[Any, Any], str]] = []
        self._tensors = Tensors(results)
        self._call: Callable[[dict[str, Layer]], object] | None = None
        self._kind: ParserKind = "bbox"
        self._function = ""
        self._checked: Checked[Any, Any] | None = None
        self._sent: set[Finding] = set()
        self._looked_at = (0, 0)  # numbers of decisions and notices
        self.left: list[tuple[str, str]] = []

    def serve(self) -> None:
        """Answer requests, one after the other, until the application or the link is gone."""
        while self._channel.next():
            words = self._words
            side: Message = {}
            out = Writer(self.outputs, start=0)
            values: list[int] = []
            words[ipc.STATUS] = words[ipc.WROTE] = 0
            try:
                if words[ipc.OP] == ipc.CALL:
                    values = self._parse(out)
                else:
                    with self._tensors.unprotected():
                        side = self._operation(out)
            except CannotShareError:
                words[ipc.WROTE] = ipc.NOT_SHARED
            except BaseException as error:
                _native.guard_set_function("")
                if lost := why_lost():  # and every other call would fail, too
                    _native.guard_give_up(self._function, lost)
                words[ipc.STATUS] = 1
                side = {"error": error_json(error, self._function)}
                out = Writer(self.outputs, start=0)
            if _native.guard_take_back():
                words[ipc.WROTE] = 1
            if not self._answer(side | self._news(), values, out):
                return

    def _answer(self, side: Message, values: list[int], out: Writer) -> bool:
        words = self._words
        data = json.dumps(side).encode() if side else b""
        if data:
            start = -(-out.end // 64) * 64
            self.outputs.ensure(start + len(data))
            self.outputs.put(start, data)
            words[ipc.SIDE_START] = start
        words[ipc.SIDE_BYTES] = len(data)
        words[ipc.OUTPUT_SIZE] = self.outputs.size
        for i, value in enumerate(values, ipc.VALUES):
            words[i] = value
        return bool(self._channel.answer())

    def _operation(self, out: Writer) -> dict[str, object]:
        self.inputs.follow(self._words[ipc.INPUT_SIZE])
        request = json.loads(self.inputs.take(0, self._words[ipc.MESSAGE_BYTES]))
        module, _, name = request["do"].partition(":")
        function: Operation = attrgetter(name)(importlib.import_module(module))
        arrays = arrays_in(request["arrays"], self.inputs)
        self._function = request["what"]
        _native.guard_set_function(self._function)
        try:
            payload, results = function(self, request["payload"], arrays)
        finally:
            self._channel.leave_if_forked()
        _native.guard_set_function("")
        return {"payload": payload, "arrays": put_arrays(results, out)}

    def prepare(self, payload: Message, arrays: Arrays) -> Answer:
        """Get ready for calls of one parser: its layers are views of the input region."""
        kind, parser, name = self.parsers[payload["parser"]]
        network = network_from(payload["network"])
        params = params_from(kind, payload["params"])
        self._kind, self._function, self._checked = kind, name, parser
        self._looked_at = (-1, -1)
        self._call = lambda layers: parser(layers, network, params)
        self._tensors.prepare(payload["names"], arrays)
        return {}, []

    def _parse(self, out: Writer) -> list[int]:
        assert self._call is not None
        _native.guard_take_back()  # what a thread of the library wrote after its call
        layers = self._tensors.layers(self._words)
        _native.guard_set_function(self._function)
        try:
            parsed = self._call(layers)
        finally:
            self._channel.leave_if_forked()
        _native.guard_set_function("")
        try:
            return RESULT_WRITERS[self._kind](parsed, out)
        except ResultTooLargeError as error:
            raise ParserError(f"the parser returned {error}", where=self._function) from error

    def _news(self) -> Message:
        """Collect decisions and notices that the application does not know."""
        decisions = [] if self.library is None else self.library.decisions
        notices = [] if self._checked is None else self._checked.notices
        if self._looked_at == (len(decisions), len(notices)):
            return {}
        self._looked_at = (len(decisions), len(notices))
        news: Message = {}
        for name, all_of_them in (("decisions", decisions), ("notices", notices)):
            if new := [n for n in all_of_them if n not in self._sent]:
                self._sent.update(new)
                news[name] = notices_json(new)
        return news


Operation: TypeAlias = "Callable[[LibraryWorker, Message, Arrays], Answer]"
"""A function that a request may name: (worker, payload, arrays) -> (payload, arrays)."""


class GuardedMap:
    """Makes class maps that an inaccessible page follows, one at a time."""

    def __init__(self) -> None:
        self._memory: npt.NDArray[np.uint8] | None = None
        self._pages = 0

    def __call__(self, height: int, width: int) -> npt.NDArray[np.int32]:
        """Make a map, (height, width) int32 of -1."""
        size = 4 * height * width
        room = ipc.page_ceil(size)
        if room != self._pages:
            self._memory = np.frombuffer(mmap.mmap(-1, room + ipc.GAP), np.uint8)
            self._pages = room
            start = _native.address_of(self._memory)
            _native.guard_protect(start + room, ipc.GAP, False, False)
            _native.guard_set_region(MAP_REGION, start + room - size, start + room, "the class map")
        assert self._memory is not None
        class_map = self._memory[room - size : room].view(np.int32).reshape(height, width)
        class_map.fill(-1)
        return class_map


def tell_open(worker: LibraryWorker, payload: Message, arrays: Arrays) -> Answer:
    """Name the protections that the kernel refused, before any code of a user runs."""
    return {"left": worker.left}, []


def load_library(worker: LibraryWorker, payload: Message, arrays: Arrays) -> Answer:
    """Load the library in this process."""
    worker.library = library = open_here(
        payload["path"], abi=payload["abi"], rotation=payload["rotation"]
    )
    has_initializer = library.input_initializer() is not None
    symbols = library.symbols()
    return {
        "symbols": symbols,
        "initializer": has_initializer,
    }, []


def open_parser(worker: LibraryWorker, payload: Message, arrays: Arrays) -> Answer:
    """Get a parser of the library: its number."""
    assert worker.library is not None
    kind, name = payload["kind"], payload["name"]
    parser = getattr(worker.library, f"{kind}_parser")(name)
    inner: object = getattr(parser, "_parser", None)
    if hasattr(inner, "new_map"):
        inner.new_map = GuardedMap()
    worker.parsers.append((kind, parser, parser.where))
    return {"parser": len(worker.parsers) - 1}, []


def initialize(worker: LibraryWorker, payload: Message, arrays: Arrays) -> Answer:
    """Fill the inputs beside the image; return the same arrays."""
    assert worker.library is not None
    function = worker.library.input_initializer()
    if function is None:
        raise CustomLibraryError(
            "the library fills no inputs any more", where=str(worker.library.path)
        )
    filled = dict(zip(payload["names"], arrays, strict=True))
    function(filled, network_from(payload["network"]), payload["max_batch"])
    return {}, list(filled.values())
