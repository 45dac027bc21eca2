"""Libraries of tests, compiled once per session, by whichever worker asks first."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["built_once", "session_folder"]


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this session that all of its workers have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def built_once(factory: pytest.TempPathFactory, source: Path, command: Sequence[str]) -> Path:
    """The library that `command SOURCE -o LIBRARY` makes; equal calls make it once.

    It is everybody's: a test that changes a library, or needs one that no process has open yet,
    takes a copy.
    """
    key = hashlib.sha256("\0".join([*command, str(source)]).encode()).hexdigest()[:16]
    folder = session_folder(factory) / "built" / key
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"lib{source.stem}.so"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            made = folder / "made"
            done = subprocess.run(
                [*command, str(source), "-o", str(made)], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            made.replace(library)
    return library
