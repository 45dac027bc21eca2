"""Loggers of applications: `pyservicemaker.logging`."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the stderr of now, which a test or an application may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def get_logger(name: str, level: int | str = logging.INFO) -> logging.Logger:
    """Return the logger of a name; it writes lines with time and level to stderr.

    Args:
        name: of the application or a part of it.
        level: the least that is written, of a logger that is new.
    """
    logger = logging.getLogger(f"pyservicemaker.{name}" if name else "pyservicemaker")
    if not logger.handlers:
        handler = _Stderr()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    return logger
