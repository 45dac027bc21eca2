"""Libraries of tests, compiled once per session, by whichever process asks first."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.session import made_once

__all__ = ["built_once"]


def built_once(factory: pytest.TempPathFactory, source: Path, command: Sequence[str]) -> Path:
    """The library that `command SOURCE -o LIBRARY` makes; equal calls make it once.

    It is everybody's: a test that changes a library, or needs one that no process has open yet,
    takes a copy.
    """
    key = hashlib.sha256("\0".join([*command, str(source)]).encode()).hexdigest()[:16]
    name = f"lib{source.stem}.so"

    def make(folder: Path) -> None:
        done = subprocess.run(
            [*command, str(source), "-o", str(folder / name)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    return made_once(factory, f"library-{key}", make) / name
