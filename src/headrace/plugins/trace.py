"""Every call into plugins and creators, recorded while a `Tracer` is open.

    with Tracer() as tracer:
        ...
    print(tracer.table())

Source: tensorrt-plugins spec 3 (phases).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headrace._core.text import shortened

Phase = Literal["register", "parse", "build", "save", "load", "run", "destroy"]
Call = tuple[Phase, str, object, str, tuple[object, ...]]
"""Phase, layer, object, method or attribute, arguments."""
MAX_TEXT = 80


@dataclass(frozen=True, slots=True)
class PluginCall:
    """One call, or one attribute that was read.

    Attributes:
        number: order of the calls, from 1.
        phase: of the life cycle.
        layer: name of the node; empty for calls of no layer.
        object: number of the object within this trace, from 1.
        cls: class of the object; of standard plugins the name they are known by.
        method: name of the method, or of the attribute.
        arguments, result: in short.
        seconds: time it took.
        error: what it raised, empty if nothing.
        made: number of the object that it returned (clone, create_plugin …), 0 if none.
    """

    number: int
    phase: Phase
    layer: str
    object: int
    cls: str
    method: str
    arguments: str
    result: str
    seconds: float
    error: str = ""
    made: int = 0

    def __str__(self) -> str:
        text = f"{self.phase:<8} {self.cls}#{self.object}.{self.method}({self.arguments})"
        if self.error:
            return f"{text} !! {self.error}"
        return f"{text} -> {self.result}" if self.result else text


class Tracer:
    """Records calls of all threads from `__enter__` to `__exit__`; several may be open.

    Args:
        most: calls that are kept; later ones are counted only.
        journal: called for each call when it begins and when it is over: for code that may end
            the process.

    Attributes:
        calls: what happened, in order.
        dropped: how many calls came after `most`.
    """

    def __init__(
        self, most: int = 100_000, journal: Callable[[PluginCall, bool], None] | None = None
    ) -> None:
        self._journal = journal
        self.calls: list[PluginCall] = []
        self.dropped = 0
        self._most = most
        self._lock = threading.RLock()  # the collector may end a plugin while a call is recorded
        self._known: dict[int, tuple[object, int]] = {}
        self._objects = 0

    def __enter__(self) -> Tracer:
        with _lock:
            _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _open.remove(self)

    @property
    def failures(self) -> list[PluginCall]:
        """The calls that raised."""
        return [call for call in self.calls if call.error]

    def sequence(self, *phases: Phase) -> list[tuple[str, str]]:
        """(object, method) of each call, objects named `Class#number`; of some phases, or all."""
        return [
            (f"{c.cls}#{c.object}", c.method) for c in self.calls if not phases or c.phase in phases
        ]

    def counts(self) -> Mapping[str, int]:
        """How often each method was called."""
        return Counter(call.method for call in self.calls)

    def table(self) -> str:
        """The calls as text, a line each."""
        return "\n".join(str(call) for call in self.calls)

    def add(self, call: Call, result: object, seconds: float, error: str, creates: bool) -> None:
        """Record one call; see `record`."""
        phase, layer, target, method, arguments = call
        with self._lock:
            if len(self.calls) >= self._most:
                self.dropped += 1
                return
            done = PluginCall(
                number=len(self.calls) + 1,
                phase=phase,
                layer=layer,
                object=self._number(target),
                cls=label(target),
                method=method,
                arguments=", ".join(map(self._text, arguments)),
                made=self._number(result) if creates and result is not None else 0,
                result="" if result is None or error else self._text(result),
                seconds=seconds,
                error=error,
            )
            self.calls.append(done)
        if self._journal is not None:
            self._journal(done, True)

    def begin(self, call: Call) -> None:
        """A call begins; see `begin`."""
        if self._journal is None:
            return
        phase, layer, target, method, arguments = call
        with self._lock:
            number, known = len(self.calls) + 1, self._number(target)
            words = ", ".join(map(self._text, arguments))
        self._journal(
            PluginCall(number, phase, layer, known, label(target), method, words, "", 0.0), False
        )

    def _text(self, value: object) -> str:
        """A value in short; objects that this trace knows by their numbers."""
        if getattr(type(value), "__repr__", None) == object.__repr__:  # says only an address
            known = self._alive(value)
            return f"{label(value)}#{known}" if known else label(value)
        return _short(value)

    def _alive(self, target: object) -> int:
        """The number of an object, 0 if it has none yet."""
        known = self._known.get(id(target))
        if known is None:
            return 0
        alive = known[0]() if isinstance(known[0], weakref.ref) else known[0]
        return known[1] if alive is target else 0

    def _number(self, target: object) -> int:
        known = self._alive(target)
        if known:
            return known
        try:
            handle: object = weakref.ref(target)
        except TypeError:
            handle = target
        self._objects += 1
        self._known[id(target)] = handle, self._objects
        return self._objects

    def __iter__(self) -> Iterator[PluginCall]:
        return iter(self.calls)

    def __repr__(self) -> str:
        return f"Tracer({len(self.calls)} calls, {len(self.failures)} failed)"


_lock = threading.Lock()
_open: list[Tracer] = []


def label(target: Any) -> str:
    """Name an object: its class, or `headrace_label` of classes that stand for many."""
    if hasattr(type(target), "headrace_label"):
        return str(target.headrace_label)
    return type(target).__name__


def active() -> bool:
    """Whether a tracer is open."""
    return bool(_open)


def begin(call: Call) -> None:
    """Report the begin of a call to every open tracer."""
    for tracer in tuple(_open):
        tracer.begin(call)


def record(
    call: Call, result: object, started: float, error: str = "", *, creates: bool = False
) -> None:
    """Report a call to every open tracer; it began at `started` (`time.perf_counter`)."""
    seconds = time.perf_counter() - started
    for tracer in tuple(_open):
        tracer.add(call, result, seconds, error, creates)


def _short(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    try:
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            marks = "[]" if isinstance(value, list) else "()"
            text = f"{marks[0]}{', '.join(map(_short, value))}{marks[1]}"
        elif isinstance(getattr(value, "op_type", None), str):  # a node
            text = f"{value.op_type} {value.name!r}" if value.name else value.op_type
        elif hasattr(value, "name") and hasattr(value, "value"):
            text = value.name
        else:
            text = repr(value)
        text = " ".join(str(text).split())
    except Exception as error:  # a user's repr
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    return shortened(text, MAX_TEXT)
