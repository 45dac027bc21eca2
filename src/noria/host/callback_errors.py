"""What went wrong inside calls that C++ code made: it sees null or false, the user the reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from noria._core.errors import NoriaError

MOST = 100
log = logging.getLogger("noria.host")


@dataclass
class Told:
    """Collected messages.

    Attributes:
        failures: of calls that failed, in order; the first is usually the cause of the others.
        hints: how to put them right.
        log: what was told the logger: (severity as TensorRT counts it, text).
    """

    failures: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    log: list[tuple[int, str]] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """The first failure with the errors that the logger was told, in one line."""
        errors = [text for severity, text in self.log if severity <= 1]
        return "; ".join(dict.fromkeys([*self.failures[:3], *errors[:3]]))


_open: list[Told] = []
_lock = threading.Lock()


@contextmanager
def told() -> Iterator[Told]:
    """Collect what is told meanwhile, by whatever thread."""
    collected = Told()
    with _lock:
        _open.append(collected)
    try:
        yield collected
    finally:
        with _lock:
            _open.remove(collected)


def tell(what: str, error: BaseException | str) -> None:
    """A call failed; `what` is the method's name."""
    text = error.found if isinstance(error, NoriaError) else str(error)
    where = error.where if isinstance(error, NoriaError) else None
    kind = "" if isinstance(error, (NoriaError, str)) else f"{type(error).__name__}: "
    message = f"{what}: {f'{where}: ' if where else ''}{kind}{text}"
    log.debug("%s", message, exc_info=error if isinstance(error, BaseException) else None)
    with _lock:
        for collected in _open:
            if len(collected.failures) < MOST:
                collected.failures.append(message)
                collected.hints += error.fix if isinstance(error, NoriaError) else []


def tell_log(severity: int, text: str) -> None:
    """A logger was told `text`."""
    with _lock:
        for collected in _open:
            if len(collected.log) < MOST:
                collected.log.append((severity, text))
