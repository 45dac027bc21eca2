"""Errors of calls from C++ into Python: the code sees null or false, the user the reason."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace._core.errors import HeadraceError
from headrace._core.text import error_text, printable

MOST = 100
_WARNING = 2  # as TensorRT counts severities
log = logging.getLogger("headrace.trt.host")


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

    def add_failure(self, message: str, hints: list[str]) -> None:
        """Keep a call that failed."""
        if len(self.failures) < MOST:
            self.failures.append(message)
            self.hints += hints

    def add_log(self, severity: int, text: str) -> None:
        """Keep a message to the logger."""
        if len(self.log) < MOST:
            self.log.append((severity, text))


class PrintedErrors(CallbackErrors):
    """Prints each kind of failure once, and warnings: a program reads no collection of errors."""

    def add_failure(self, message: str, hints: list[str]) -> None:
        """Print a call that failed."""
        if message not in self.failures:
            super().add_failure(message, hints)
            text = "\n  ".join([f"headrace: {message}", *hints])
            print(printable(text), file=sys.stderr, flush=True)

    def add_log(self, severity: int, text: str) -> None:
        """Print a warning or an error of the headers."""
        if severity <= _WARNING:
            print(printable(f"headrace: {text}"), file=sys.stderr, flush=True)


_collecting: list[CallbackErrors] = []
_lock = threading.Lock()


@contextmanager
def collected_errors(into: CallbackErrors | None = None) -> Iterator[CallbackErrors]:
    """Collect the errors of all threads inside the block."""
    collected = CallbackErrors() if into is None else into
    with _lock:
        _collecting.append(collected)
    try:
        yield collected
    finally:
        with _lock:
            _collecting.remove(collected)


def report_failure(method: str, error: BaseException | str) -> None:
    """Add a call that failed to all open collections."""
    if isinstance(error, HeadraceError):
        text = f"{error:line}"
    else:
        text = error if isinstance(error, str) else error_text(error)
    message = f"{method}: {text}"
    log.debug("%s", message, exc_info=error if isinstance(error, BaseException) else None)
    with _lock:
        for collected in _collecting:
            collected.add_failure(
                message, list(error.finding.remedies) if isinstance(error, HeadraceError) else []
            )


def report_log(severity: int, text: str) -> None:
    """Add a message to the logger to all open collections."""
    with _lock:
        for collected in _collecting:
            collected.add_log(severity, text)
