"""Errors of calls from C++ into Python: the code sees null or false, the user the reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from noria._core.errors import NoriaError
from noria._core.text import error_text

MOST = 100
log = logging.getLogger("noria.host")


@dataclass
class CallbackErrors:
    """Errors and log messages, collected while C++ code runs.

    Attributes:
        failures: of calls that failed, in order; the first is usually the cause of the others.
        hints: how to put them right.
        log: messages to the logger: (severity as TensorRT counts it, text).
    """

    failures: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    log: list[tuple[int, str]] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """The first failures with the first errors of the logger, in one line."""
        errors = [text for severity, text in self.log if severity <= 1]
        return "; ".join(dict.fromkeys([*self.failures[:3], *errors[:3]]))


_collecting: list[CallbackErrors] = []
_lock = threading.Lock()


@contextmanager
def collected_errors() -> Iterator[CallbackErrors]:
    """Collect the errors of all threads inside the block."""
    collected = CallbackErrors()
    with _lock:
        _collecting.append(collected)
    try:
        yield collected
    finally:
        with _lock:
            _collecting.remove(collected)


def report_failure(method: str, error: BaseException | str) -> None:
    """Add a call that failed to all open collections."""
    if isinstance(error, NoriaError):
        text = f"{error.where}: {error.found}" if error.where else error.found
    else:
        text = error if isinstance(error, str) else error_text(error)
    message = f"{method}: {text}"
    log.debug("%s", message, exc_info=error if isinstance(error, BaseException) else None)
    with _lock:
        for collected in _collecting:
            if len(collected.failures) < MOST:
                collected.failures.append(message)
                collected.hints += error.fix if isinstance(error, NoriaError) else []


def report_log(severity: int, text: str) -> None:
    """Add a message to the logger to all open collections."""
    with _lock:
        for collected in _collecting:
            if len(collected.log) < MOST:
                collected.log.append((severity, text))
