"""What the test processes of one session share: files that are made by one and used by all."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of this session see; they have folders of their own in it."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process to ask for it fills by `make(folder)`; others wait.

    Nobody may change it. If `make` fails, the next one to ask tries again with an empty folder.
    """
    folder = session_folder(factory) / "shared" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = Path(tempfile.mkdtemp(dir=folder.parent))
            make(draft)
            draft.rename(folder)
    return folder
