"""Libraries that run in this very process: a note if they crash, a limit of their time."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.threads import Countdown

_GRACE_S = 2.0  # for the message; code that holds the interpreter's lock prevents one
_noting = False
_loaded: dict[Path, str] = {}  # -> why it is in this process


@contextmanager
def crashes_are_noted() -> Iterator[None]:
    """Note libraries that are loaded into this process in the block.

    For programs of the command line, whose signals have no other handler.
    """
    global _noting
    before, _noting = _noting, True
    try:
        yield
    finally:
        _noting = before


def note_loading(path: Path) -> None:
    """Note a C++ library before it is loaded into this process; its own handlers come after."""
    if not _noting or debugged():  # a debugger shows more, and each fault would stop there twice
        return
    from headrace.custom.guard.trust import TrustStore, content_hash

    trusted = False
    with suppress(CustomLibraryError):
        trusted = TrustStore().get(content_hash(path)) is not None
    _loaded[path] = "which is trusted" if trusted else "which is not guarded"
    names = " and ".join(f"{path}, {why}," for path, why in _loaded.items())
    one = len(_loaded) == 1
    _native.note_crashes(
        f"this process has loaded {names.rstrip(',')}\n"
        f"  if {'it' if one else 'one of them'} did this: --guard always runs "
        f"{'it' if one else 'them'} in a worker process, and tells in which function and line",
        CustomLibraryError.exit_code,
    )


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
    countdown = Countdown(seconds, partial(_end, seconds, where), "headrace-limit")
    if last := _can_write():
        faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True)
    try:
        yield
    finally:
        countdown.stop()
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
    """Return whether a debugger is attached to this process."""
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
