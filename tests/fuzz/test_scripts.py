"""The fuzzing scripts start and take inputs; a stand-in of atheris gives them one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
STAND_IN = """
import contextlib

def instrument_imports(include):
    return contextlib.nullcontext()

def Setup(arguments, take):
    global given
    given = take

def Fuzz():
    given(b"y[property]")
    print("took an input")
"""


@pytest.mark.parametrize("script", sorted(FOLDER.glob("fuzz_*.py")), ids=lambda p: p.stem)
@pytest.mark.sampled
def test_scripts_start_with_the_sources_of_the_checkout(script: Path, tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text(STAND_IN)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("took an input\n")
