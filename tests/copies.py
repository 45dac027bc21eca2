"""Copies of the examples to run in."""

from __future__ import annotations

import shutil
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
_BUILT = ("*.engine*", "__pycache__", "out")


def copied_example(name: str, folder: Path) -> Path:
    """Copy an example, without the engines that other tests build in it meanwhile."""
    ignored = shutil.ignore_patterns(*_BUILT)
    return Path(shutil.copytree(EXAMPLES / name, folder, ignore=ignored, dirs_exist_ok=True))
