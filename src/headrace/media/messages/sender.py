"""The sender: a thread that empties a spool into a broker and waits while the broker is away."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from headrace._core.retry import CLOSE_S, Backoff
from headrace._core.text import error_text, shortened
from headrace._core.threads import start_thread
from headrace.media.messages.brokers import Broker
from headrace.media.messages.spool import Spool

_BACKOFF = Backoff(0.1, 5.0)
_LOOK_S = 0.1  # between two tries at the end
_LEAVE_S = 0.5  # for a call of a client's library to come back once its connection is gone
_HELD_BYTES = 1 << 20
_SHOWN = 200
_BATCH = 64
_MARK = b'"redelivered":true,'


class Watches(Protocol):
    """Hears that sending stops, and goes on; `headrace.media.sources.reconnect.Losses` is one."""

    def lost(self, cause: str, at: int) -> None:
        """It stopped after so many messages, or is stopped already."""

    def tried(self, cause: str) -> None:
        """One try was in vain."""

    def back(self) -> None:
        """It goes on."""

    def stopped(self) -> None:
        """The end came before it went on."""


class Sender:
    """Sends messages at least once, in order.

    Whatever happens while it does (the broker is away, the client's library fails, the spool cannot
    be read or written) is a state: the sender reports and counts it, and tries again at growing
    intervals.

    Args:
        spool: holds them until the broker acknowledges; closed with the sender.
        broker: takes them; closed with the sender.
        mark: write `"redelivered":true` into messages that may have arrived before.
        watch: hears when sending stops and goes on, called from several threads, one at a time.
        pause_s: rest after each batch of messages.

    Attributes:
        sent: messages that the broker acknowledged.
        refused: messages that it refuses for what is in them; the newest lie in `refused.jsonl`
            of the spool's folder, a line each.
        failures: attempts that failed.
        last_error: reason of the latest failure; empty without one.
        away: True while the latest attempt failed.
    """

    def __init__(
        self,
        spool: Spool,
        broker: Broker,
        *,
        mark: bool = True,
        watch: Watches | None = None,
        pause_s: float = 0.0,
    ) -> None:
        self.sent = self.refused = self.failures = 0
        self.last_error = ""
        self.away = False
        self._spool, self._broker, self._mark, self._watch = spool, broker, mark, watch
        self._pause_s = pause_s
        self._lock = threading.Lock()  # of what is held, and of the state
        self._held: deque[bytes] = deque()  # that the spool does not take at present
        self._aside: list[bytes] = []  # refused, and not yet written down
        self._held_bytes = self._dropped = self._tried = 0
        self._more, self._closing = threading.Event(), threading.Event()
        self._deadline = float("inf")
        self._left = False  # nobody waits for the broker any more
        self._thread = start_thread(self._work, name="headrace-messages", failed=self._failed)

    @property
    def waiting(self) -> int:
        """Messages that are not acknowledged."""
        return self._spool.waiting + len(self._held)

    @property
    def lost(self) -> int:
        """Messages that no broker will get: damaged, or more than the spool keeps."""
        return self._spool.lost + self._dropped

    def put(self, message: bytes) -> None:
        """Queue a message; waits for the disk alone, never for the broker.

        While the spool cannot take it, it is held in memory, the last MiB of such messages.
        """
        with self._lock:
            self._held.append(message)
            self._held_bytes += len(message)
            try:
                self._store()
            except Exception as error:  # whatever it is, the frames go on
                self._note(error)
                while self._held_bytes > _HELD_BYTES:
                    self._held_bytes -= len(self._held.popleft())
                    self._dropped += 1
        self._more.set()

    def end_by(self, deadline: float) -> None:
        """Send waiting messages until then, a time of `time.monotonic`."""
        self._deadline = min(self._deadline, deadline)
        self._closing.set()
        self._more.set()

    def close(self, drain_s: float = CLOSE_S) -> int:
        """Send the messages that wait, at most `drain_s` seconds long.

        Returns:
            How many messages stay in the spool for the next run.
        """
        self.end_by(time.monotonic() + drain_s)
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        self._left = self._thread.is_alive()
        if self._left:
            self._quietly(self._broker.stop)
        self._thread.join(_LEAVE_S)  # a call that does not come back keeps its thread, no more
        with self._lock:
            self._left = False
            try:
                self._store()
            except Exception as error:
                self._note(error)
            waiting = self._spool.waiting
            self._dropped += len(self._held)
            self._held.clear()
            if self._watch is not None and self.away:
                self._watch.stopped()
        self._spool.close()
        return waiting

    def _store(self) -> None:
        """Give held messages to the spool; the lock is held."""
        while self._held:
            try:
                self._spool.append(self._held[0])
            except ValueError:  # too long for any spool
                self._dropped += 1
            self._held_bytes -= len(self._held.popleft())

    def _note(self, error: BaseException) -> None:
        """Make a state of a failure; the lock is held."""
        if self._left:
            return  # of the end itself
        self.failures += 1
        cause = error_text(error, kind=not isinstance(error, OSError)) or type(error).__name__
        self.last_error = shortened(" ".join(cause.split()), _SHOWN)
        self.away = True
        if self._watch is not None:
            self._watch.lost(self.last_error, self.sent)
            self._watch.tried(self.last_error)

    def _failed(self, error: BaseException) -> None:
        with self._lock:
            self._note(error)

    def _work(self) -> None:
        attempt = 0
        while time.monotonic() < self._deadline:
            self._more.clear()
            try:
                worked = self._step()
            except BaseException as error:  # a client's library may raise anything
                self._failed(error)
                self._quietly(self._broker.close)
                self._pause(attempt)
                attempt += 1
                continue
            attempt = 0
            if worked and self._pause_s:
                self._closing.wait(self._pause_s)
            if not worked:
                if self._closing.is_set():
                    break
                self._more.wait()
        self._quietly(self._broker.close)

    def _step(self) -> bool:
        """Send a batch; False if none waits.

        What the spool does not take goes to the broker from memory, behind all that it has.
        """
        full: Exception | None = None
        with self._lock:
            try:
                self._store()
            except Exception as error:
                full = error
        if self._aside:
            self._spool.set_aside(self._aside)
            self._aside = []
        batch = self._spool.peek()
        held = [] if batch else list(islice(self._held, _BATCH))
        if batch or held:
            old = self._tried
            self._tried = max(old, len(batch or held))
            refused = self._broker.publish(
                [self._marked(m) if again or i < old else m for i, (m, again) in enumerate(batch)]
                or held
            )
            self._tried = 0
            self.sent += len(batch or held) - len(refused)
            self.refused += len(refused)
            self._aside += refused
            if batch:
                self._spool.ack()
            else:
                self._let_go(len(held))
        if full is not None and not held:
            raise full
        self._recovered()
        return bool(batch or held)

    def _let_go(self, count: int) -> None:
        with self._lock:
            for _ in range(min(count, len(self._held))):
                self._held_bytes -= len(self._held.popleft())

    def _recovered(self) -> None:
        with self._lock:
            if self.away:
                self.away = False
                if self._watch is not None:
                    self._watch.back()

    def _pause(self, attempt: int) -> None:
        left_s = max(0.0, self._deadline - time.monotonic())
        self._closing.wait(min(_BACKOFF.delay_s(attempt), left_s))
        if self._closing.is_set():  # waits no longer wake it: keep off a busy loop
            time.sleep(max(0.0, min(_LOOK_S, self._deadline - time.monotonic())))

    def _quietly(self, call: Callable[[], None]) -> None:
        """Call it; an exception becomes the latest error, no more."""
        try:
            call()
        except BaseException as error:
            self.last_error = self.last_error or error_text(error)

    def _marked(self, message: bytes) -> bytes:
        return b"{" + _MARK + message[1:] if self._mark and message[:1] == b"{" else message
