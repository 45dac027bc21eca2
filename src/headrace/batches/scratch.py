"""Temporary folders of batches: gone with their run, or at the next start where that was killed.

A run holds a lock on each of its folders, which ends with its process. A folder of such a name
without a lock belongs to a run that is dead.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from headrace._core.errors import HeadraceError
from headrace._core.files import os_errors, try_lock

_PREFIX = "headrace-batch-{}-"
_NAME = re.compile(r"headrace-batch-\d+-[a-z0-9_]{8}")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder of this run, gone with the block; those of dead runs are removed first.

    Raises:
        HeadraceError: none can be made.
    """
    with os_errors(HeadraceError, "no temporary folder can be made"):
        _remove_dead(Path(tempfile.gettempdir()))
        folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@cache
def use_own_temporary_folder() -> Path:
    """Let temporary files of this process be in a scratch folder, for one that may be killed.

    Returns:
        The folder: gone with the process, or at the next start of a batch on this machine.

    Raises:
        HeadraceError: as `scratch_folder`.
    """
    until_exit = ExitStack()
    folder = until_exit.enter_context(scratch_folder())
    atexit.register(until_exit.close)
    tempfile.tempdir = str(folder)
    return folder


def _locked_folder() -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX.format(os.getpid())))
        # another start may take it for a dead one until it is locked
        with suppress(FileNotFoundError):
            lock = _opened(folder)
            with suppress(BlockingIOError):
                try_lock(lock)
                if folder.exists():
                    return folder, lock
            os.close(lock)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _remove_dead(place: Path) -> None:
    """Remove this user's folders that no run holds; links are left as they are."""
    for folder in place.glob("headrace-batch-*"):
        if not _NAME.fullmatch(folder.name):
            continue
        with suppress(OSError):  # it is gone, a link, somebody else's, or held
            lock = _opened(folder)
            try:
                if try_lock(lock) and os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
