"""A native core that is older than the Python code, or missing: one clear error on import."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from headrace._core import _native
from headrace._core._native_api import NATIVE_API

ROOT = Path(__file__).parents[2]
OTHER = """
import sys, types
made = types.ModuleType("headrace._core._native")
made.__file__ = "/somewhere/_native.so"
{more}
sys.modules["headrace._core._native"] = made
import headrace
"""


def _import(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_core_fits() -> None:
    assert _native.native_api() == NATIVE_API


def test_the_digest_is_that_of_the_stub() -> None:
    stub = (ROOT / "src/headrace/_core/_native.pyi").read_bytes()
    assert hashlib.sha256(stub).hexdigest().startswith(NATIVE_API), "run make stubs"


@pytest.mark.parametrize("more", ["made.native_api = lambda: 'abc'", ""])
def test_an_older_core_says_what_to_do(more: str) -> None:
    done = _import(OTHER.format(more=more))
    assert done.returncode == 1
    last = done.stderr[done.stderr.rindex("ImportError: ") :]
    assert "compiled from other sources than the Python code beside it" in last
    assert f"run `make build` in {ROOT}" in last


def test_a_missing_core_says_what_to_do() -> None:
    done = _import("import sys; sys.modules['headrace._core._native'] = None; import headrace")
    assert done.returncode == 1
    assert "native core cannot be loaded" in done.stderr
    assert f"run `make build` in {ROOT}" in done.stderr
