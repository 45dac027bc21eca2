"""The threads of a run: their start, their errors, and how long a stop waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from headrace._core.findings import Finding
from headrace._core.threads import start_thread
from headrace.infer.batch import Batch
from headrace.pipeline.channel import Channel, ChannelClosedError

SIGNALS_S = 0.5  # the longest that a signal waits for its handler


class RunThreads:
    """Those of the stages and of the outputs, and the channels between them."""

    def __init__(self) -> None:
        self._threads: dict[threading.Thread, str] = {}
        self._channels: list[Channel[Batch]] = []
        self._end_by = float("inf")
        self.left: list[str] = []  # what did not come back after a stop

    def channel(self, size: int) -> Channel[Batch]:
        """Make a channel between two of them."""
        channel = Channel[Batch](size)
        self._channels.append(channel)
        return channel

    def start(
        self,
        name: str,
        does: str,
        work: Callable[[], None],
        failed: Callable[[BaseException], None],
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        """Start one; it ends when a neighbour is gone.

        Args:
            name: of the thread.
            does: what it does, for people.
            work: all of it.
            failed: called there with its error.
            leave: tells the neighbours, however it ended.

        Raises:
            HeadraceError: the system gives no further thread.
        """

        def guarded() -> None:
            with suppress(ChannelClosedError):
                work()
            leave()

        def lost(error: BaseException) -> None:
            failed(error)
            leave()

        self._threads[start_thread(guarded, name=name, failed=lost)] = does

    def limit(self, within_s: float) -> None:
        """Wait so long for them from now on, unless an earlier end is set."""
        self._end_by = min(self._end_by, monotonic() + within_s)

    @property
    def limited(self) -> bool:
        """Whether an end is set."""
        return self._end_by < float("inf")

    def do(
        self,
        name: str,
        does: str,
        work: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> list[Finding]:
        """Work at the end of a run; once an end is set, in a thread that can be left as others."""
        if not self.limited:
            work()
            return []
        self.start(name, does, work, failed)
        self.join()
        return self.leave()

    @property
    def remaining_s(self) -> float:
        """Time until the end that was set, and at least that of a signal."""
        return max(SIGNALS_S, self._end_by - monotonic())

    def join(self) -> None:
        """Wait for them, after a stop with a limit no longer than that."""
        for thread in self._threads:
            while thread.is_alive() and monotonic() < self._end_by:
                thread.join(SIGNALS_S)  # a signal that reaches another thread wakes no join

    def close_channels(self) -> None:
        """End and abandon every channel: who waits for a neighbour waits no more."""
        for channel in self._channels:
            channel.abandon()
            channel.end()

    def leave(self) -> list[Finding]:
        """Go on without those that do not come back; returns a warning for each."""
        self.close_channels()
        end = monotonic() + SIGNALS_S
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))
        self.left = [does for thread, does in self._threads.items() if thread.is_alive()]
        text = "{part} did not come back after the stop, and was left: what it had begun is lost"
        return [Finding("thread-left", "warning", text, data={"part": n}) for n in self.left]

    @property
    def alive(self) -> bool:
        """Whether one works."""
        return any(thread.is_alive() for thread in self._threads)
