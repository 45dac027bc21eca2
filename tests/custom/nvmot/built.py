"""The low-level tracker of tests, compiled for any generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.custom.nvmot.structures import GENERATIONS
from tests.custom.built import library_of

SOURCE = Path(__file__).with_name("tracker.cpp")
SOME = [
    g if g in ("5.0", "6.3", "9.1") else pytest.param(g, marks=pytest.mark.slow)
    for g in GENERATIONS
]
"""One of each kind of output at every push, the others in the long runs."""


def macro(generation: str) -> str:
    """The compiler's flag for a generation."""
    major, minor = generation.split(".")
    return f"-DHEADRACE_NVMOT={int(major) * 100 + int(minor) * 10}"


def library(factory: pytest.TempPathFactory, generation: str = "9.1") -> Path:
    """The tracker as a library of a generation."""
    return library_of(factory, SOURCE, "-O0", macro(generation))
