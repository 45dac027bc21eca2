"""Open files by names from elsewhere: without waiting, and only regular ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path


@contextmanager
def open_regular(file: Path | str, limit: int | None = None) -> Iterator[BufferedReader]:
    """Open a file without waiting: a pipe would wait for a writer.

    Raises:
        ValueError: it is no regular file, or larger than `limit` bytes.
        OSError: it cannot be opened.
    """
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        os.close(number)
        raise ValueError("it is no regular file")
    with open(number, "rb") as opened:
        if limit is not None and state.st_size > limit:
            raise ValueError(f"it has {state.st_size} bytes, and at most {limit} are read")
        yield opened
