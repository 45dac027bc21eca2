"""A limit for a user's code that runs in this very process: there is nothing to end but that."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from noria._core.errors import CustomLibraryError

_GRACE_S = 2.0  # for the message; code that holds the interpreter's lock lets nobody write one


@contextmanager
def limited(seconds: float, where: str) -> Iterator[None]:
    """End this process, with a message, if the block takes longer; not while it is debugged.

    Args:
        seconds: 0 sets no limit.
        where: library and function, for the message.
    """
    if not seconds or debugged():
        yield
        return
    timer = threading.Timer(seconds, _end, (seconds, where))
    timer.daemon = True
    timer.start()
    if last := _can_write():
        faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True)
    try:
        yield
    finally:
        timer.cancel()
        if last:
            faulthandler.cancel_dump_traceback_later()


def _end(seconds: float, where: str) -> None:
    if debugged():  # a debugger came meanwhile
        faulthandler.cancel_dump_traceback_later()
        return
    error = CustomLibraryError(
        f"the function did not return within {seconds:g} s",
        where=where,
        fix=[
            "--guard shows where it is, as does a debugger, for which there is no limit",
            "--timeout sets another limit, 0 none",
        ],
    )
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.write(f"error: {error}\n")
        sys.stderr.flush()
    os._exit(error.exit_code)


def debugged() -> bool:
    """Whether a debugger has this process."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    return any(line.startswith("TracerPid:") and line.split()[1] != "0"
               for line in status.splitlines())  # fmt: skip


def _can_write() -> bool:
    try:
        return sys.stderr.fileno() >= 0
    except (OSError, ValueError, AttributeError):
        return False
