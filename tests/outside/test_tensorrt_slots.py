"""The tables of virtual functions against g++ over TensorRT's public headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST = 12


@pytest.mark.slow
def test_every_place_is_as_the_compiler_has_it(outside: Path) -> None:
    headers = outside / "tensorrt-headers"
    if not headers.is_dir():
        pytest.skip(f"no folder of headers, one a release: {headers}")
    script = ROOT / "scripts" / "tensorrt_check.py"
    done = subprocess.run([sys.executable, script, headers], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) >= LEAST
    assert all(line.endswith(" right, 0 wrong") for line in lines)
