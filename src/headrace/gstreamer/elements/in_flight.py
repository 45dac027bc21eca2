"""Buffers on their way through an engine: while it works on one, the next is prepared."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar

from headrace._core.threads import start_thread
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import refusal

W = TypeVar("W")  # work that was begun on a buffer

_POLL_S = 0.2  # how late an end may be seen
_JOIN_S = 10.0


class InFlight(Generic[W]):
    """Completes work in order, in a thread of its own, and pushes the buffers that wait for it.

    Args:
        src: the pad that buffers go to.
        complete: ends the work on a buffer; it waits for the engine.
        failed: gets the exception of `complete`, and the refusal of a buffer that was pushed.
        most: buffers that may be on their way.
    """

    def __init__(
        self,
        src: Gst.Pad,
        complete: Callable[[W], None],
        failed: Callable[[BaseException], None],
        most: int,
    ) -> None:
        self._src, self._complete, self._failed, self._most = src, complete, failed, most
        self._waiting: deque[tuple[Gst.Buffer, W]] = deque()
        self._changed = Condition()
        self._under_way = 0
        self._closing = self._broken = False
        self._flow: Gst.FlowReturn = Gst.FlowReturn.OK
        self._thread = start_thread(self._run, name="headrace-nvinfer", failed=self._break)

    def room(self) -> Gst.FlowReturn:
        """Wait until one more buffer may come; returns the flow of the last one downstream."""
        with self._changed:
            while self._under_way >= self._most and not (self._closing or self._broken):
                self._changed.wait(_POLL_S)
            if self._broken:
                return Gst.FlowReturn.ERROR
            return Gst.FlowReturn.FLUSHING if self._closing else self._flow

    def add(self, buffer: Gst.Buffer, work: W) -> None:
        """Add a buffer and the work that was begun on it."""
        with self._changed:
            if self._broken:
                return
            self._under_way += 1
            self._waiting.append((buffer, work))
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until every buffer has been pushed: an event must not overtake them."""
        with self._changed:
            while self._under_way and not (self._closing or self._broken):
                self._changed.wait(_POLL_S)

    def restart(self) -> None:
        """Forget the flow downstream, after a flush."""
        with self._changed:
            self._flow = Gst.FlowReturn.OK

    def close(self) -> None:
        """End the thread; buffers that still wait are not pushed."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    def _break(self, error: BaseException) -> None:
        """Tell the error, and let no buffer wait any more."""
        try:
            self._failed(error)  # first: the elements before this one would tell of a refusal alone
        finally:
            with self._changed:
                self._broken = True
                self._waiting.clear()
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._closing):
                    self._changed.wait()
                if not self._waiting:
                    return
                buffer, work = self._waiting.popleft()
            flow = self._ended(buffer, work)
            del buffer, work  # the next wait may be long
            with self._changed:
                self._under_way -= 1
                if self._flow == Gst.FlowReturn.OK:
                    self._flow = flow
                self._changed.notify_all()

    def _ended(self, buffer: Gst.Buffer, work: W) -> Gst.FlowReturn:
        try:
            self._complete(work)
        except Exception as error:  # of a thread: nobody else reports it
            self._failed(error)
            return Gst.FlowReturn.ERROR
        if self._closing:
            return Gst.FlowReturn.FLUSHING
        flow = self._src.push(buffer)
        if (refused := refusal(flow, self._src)) is not None:
            self._failed(refused)
        return flow
