"""What the test processes of one session share: files that are made by one and used by all."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def without_collections() -> Iterator[None]:
    """No garbage collection inside: it takes most of the time of what makes many objects."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of this session see; they have folders of their own in it."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process of the session to ask for it fills by `make(folder)`."""
    return filled_once(session_folder(factory) / "shared" / name, make)


def filled_once(folder: Path, make: Callable[[Path], object], made_of: str = "") -> Path:
    """A folder that the first process to ask for it fills by `make(folder)`; others wait.

    Nobody may change it. If `make` fails, the next one to ask tries again with an empty folder.

    Args:
        folder: where it stays.
        make: fills an empty folder.
        made_of: stands for all that `make` reads: the folder is filled again where it changed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not folder.exists() or lock.read() != made_of:
            draft = Path(tempfile.mkdtemp(dir=folder.parent))
            make(draft)
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
            lock.truncate(0)
            lock.write(made_of)
    return folder
