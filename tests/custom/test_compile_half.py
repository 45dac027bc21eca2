"""Half precision of CUDA sources on the host."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from headrace.custom.compile.build_library import compile_library

SOURCE = Path(__file__).parent / "sources" / "half.cpp"


@pytest.mark.parametrize("standard", ["c++11", "gnu++17"])
def test_functions_of_half_precision_compute_on_the_host(tmp_path: Path, standard: str) -> None:
    flags = ["-Wextra", "-Werror"]
    made = compile_library([SOURCE], tmp_path / "libhalf.so", standard=standard, flags=flags)
    assert ctypes.CDLL(str(made.library)).check() == 0
