"""Turns of threads and processes at the calls that the driver of a GPU serves one by one."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, sleep

from headrace._core.errors import HeadraceError
from headrace._core.files import try_lock
from headrace._core.threads import say_failure, start_thread

_PATIENCE_S = 2.0  # of one process with another, which may hang or be stopped
_LOOK_S = 0.002
_NAME = "headrace-decoder-ends"


class DriverTurn:
    """Lets one thread of a user's processes make or end a decoder of a GPU at a time.

    The driver takes 20 to 60 ms for each. It serves one anyway, but calls of the engine wait behind
    each that waits in it, and Python's lock is held while PyAV ends one. While 160 H.264 decoders
    were made all at once, an H200 gave 600 frames a second for 4,300.

    Args:
        gpu: its number.
    """

    def __init__(self, gpu: int) -> None:
        from tempfile import gettempdir  # noqa: PLC0415 - a dozen modules, for GPUs

        self._path = Path(gettempdir(), f"headrace-{os.getuid()}-gpu{gpu}.lock")
        self._free: SimpleQueue[None] = SimpleQueue()
        self._free.put(None)
        self._file = -1

    def __enter__(self) -> None:
        self._free.get()
        try:
            self._lock()
        except BaseException:  # Ctrl-C
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._free.put(None)

    def _lock(self) -> None:
        """Wait for other processes, but not for ever."""
        until = monotonic() + _PATIENCE_S
        with suppress(OSError):  # without a file the driver's own order holds
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
            while not _locks(self._file) and monotonic() < until:
                sleep(_LOOK_S)

    def end(self, held: list[object]) -> None:
        """Let go of decoders in turn, in a thread of its own; return at once.

        Args:
            held: their last references; emptied.
        """
        with suppress(HeadraceError):  # without a thread they go at once
            start_thread(partial(self._end, held), name=_NAME, failed=partial(say_failure, _NAME))
            return
        held.clear()

    def _end(self, held: list[object]) -> None:
        with self:
            held.clear()


def _locks(file: int) -> bool:
    """Lock a file; False while another process holds it."""
    try:
        try_lock(file)
    except BlockingIOError:
        return False
    return True
