"""Opens a camera's address again when it fails, ends, or gives no more images."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import NamedTuple

from headrace._core.text import error_text
from headrace._core.threads import start_thread

_POLL_S = 0.1
_JOIN_S = 10.0


class Patience(NamedTuple):
    """How long a camera may be silent; the interval stays the same, as that of the original does.

    Attributes:
        interval_s: without an image before the address is opened again; 0: for ever.
        first_interval_s: the same before the first image, and only after an error.
        attempts: that may fail one after the other; negative: any number.
    """

    interval_s: float
    first_interval_s: float
    attempts: int


class Reconnector:
    """Watches a source from a thread of its own.

    Args:
        patience: when to open it again.
        reopen: opens it.
        give_up: is called when the attempts are used up.
    """

    def __init__(
        self, patience: Patience, reopen: Callable[[str], None], give_up: Callable[[str], None]
    ) -> None:
        self._patience, self._reopen, self._give_up = patience, reopen, give_up
        self._seen = self._failed = self._over = False
        self._attempts = 0
        self._since_s = time.monotonic()
        self._problem = ""
        self._closing = Event()
        self._thread = start_thread(self._run, name="headrace-reconnect", failed=self._fail)

    def image(self) -> None:
        """Tell that an image came."""
        self._seen, self._failed, self._attempts = True, False, 0
        self._since_s = time.monotonic()

    def problem(self, text: str) -> bool:
        """Tell that the source failed or ended; False if it is not opened again."""
        if self._over or not self._interval_s():
            return False
        self._problem, self._failed = text, True
        return True

    def close(self) -> None:
        """End the watch."""
        self._closing.set()
        self._thread.join(_JOIN_S)

    def _interval_s(self) -> float:
        return self._patience.interval_s if self._seen else self._patience.first_interval_s

    def _fail(self, error: BaseException) -> None:
        self._over = True
        self._give_up(error_text(error))

    def _run(self) -> None:
        while not self._closing.wait(_POLL_S):
            interval_s = self._interval_s()
            waited_s = time.monotonic() - self._since_s
            if not interval_s or waited_s < interval_s or not (self._seen or self._failed):
                continue
            problem = self._problem or f"no image for {waited_s:.0f} s"
            self._problem, self._failed = "", False
            self._attempts += 1
            if 0 <= self._patience.attempts < self._attempts:
                self._over = True
                self._give_up(problem)
                return
            self._since_s = time.monotonic()
            self._reopen(problem)
