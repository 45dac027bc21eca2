"""The sender: a thread that empties a spool into a broker and waits while the broker is away."""

from __future__ import annotations

import threading
import time

from headrace._core.retry import Backoff
from headrace._core.text import error_text
from headrace.media.messages.brokers import Broker
from headrace.media.messages.spool import Spool

_BACKOFF = Backoff(0.1, 5.0)
_MARK = b'"redelivered":true,'


class Sender:
    """Sends messages at least once, in order.

    Args:
        spool: holds them until the broker acknowledges; closed with the sender.
        broker: takes them; closed with the sender.
        mark: write `"redelivered":true` into messages that may have arrived before.

    Attributes:
        sent: messages that the broker acknowledged.
        refused: messages that it refuses for what is in them; the newest lie in `refused.jsonl`
            of the spool's folder, a line each.
        failures: attempts that failed.
        last_error: reason of the latest failure; empty without one.
    """

    def __init__(self, spool: Spool, broker: Broker, *, mark: bool = True) -> None:
        self.sent = self.refused = self.failures = 0
        self.last_error = ""
        self._spool, self._broker, self._mark = spool, broker, mark
        self._more, self._closing = threading.Event(), threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._work, name="headrace-messages", daemon=True)
        self._thread.start()

    def put(self, message: bytes) -> None:
        """Queue a message; waits for the disk alone, never for the broker.

        Raises:
            OSError: the spool cannot take it.
        """
        self._spool.append(message)
        self._more.set()

    def close(self, drain_s: float = 5.0) -> int:
        """Send the messages that wait, at most `drain_s` seconds long.

        Returns:
            How many bytes stay in the spool for the next run.
        """
        self._deadline = time.monotonic() + drain_s
        self._closing.set()
        self._more.set()
        self._thread.join()
        left = self._spool.waiting_bytes
        self._spool.close()
        return left

    def _work(self) -> None:
        attempt = tried = 0
        while time.monotonic() < self._deadline:
            self._more.clear()
            batch = self._spool.peek()
            if not batch:
                if self._closing.is_set():
                    break
                self._more.wait()
                continue
            messages = [
                self._marked(m) if old or i < tried else m for i, (m, old) in enumerate(batch)
            ]
            try:
                refused = self._broker.publish(messages)
                self._spool.set_aside(refused)
            except OSError as error:
                self.failures += 1
                self.last_error = error_text(error, kind=False)
                self._broker.close()
                tried = max(tried, len(batch))
                left_s = self._deadline - time.monotonic()
                self._closing.wait(min(_BACKOFF.delay_s(attempt), max(left_s, 0)))
                if self._closing.is_set():  # waits no longer wake it: keep off a busy loop
                    time.sleep(max(0.0, min(_BACKOFF.first_s, self._deadline - time.monotonic())))
                attempt += 1
                continue
            self._spool.ack()
            self.sent += len(batch) - len(refused)
            self.refused += len(refused)
            attempt = tried = 0
        self._broker.close()

    def _marked(self, message: bytes) -> bytes:
        return b"{" + _MARK + message[1:] if self._mark and message[:1] == b"{" else message
