"""A GPU that is not there: NVIDIA's driver in C++, on the CPU."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace._core.gpu import cuda

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def stand_in_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, compiled with the kernel's own source."""
    out = tmp_path_factory.mktemp("driver") / "libcuda_stand_in.so"
    source = Path(__file__).with_name("stand_in_driver.cpp")
    folders = [f"-I{ROOT / 'native' / name}" for name in ("gpu", "src")]
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-ffp-contract=off"]
    subprocess.run(["g++", *flags, *folders, str(source), "-o", str(out)], check=True)
    return out


@pytest.fixture(scope="module")
def driver(stand_in_library: Path) -> Iterator[ctypes.CDLL]:
    """A driver whose GPU is the CPU; its own functions begin with `headrace_test_`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "_LIBRARY", str(stand_in_library))
        cuda._open.cache_clear()
        yield ctypes.CDLL(str(stand_in_library))
        gc.collect()  # memory of the stand-in goes back to it
    cuda._open.cache_clear()


@pytest.fixture
def gpus(driver: ctypes.CDLL) -> Iterator[Callable[[int], None]]:
    """`gpus(count)`: the driver has as many for the rest of the test."""

    def have(count: int) -> None:
        driver.headrace_test_gpus(count)
        cuda._open.cache_clear()

    yield have
    gc.collect()
    have(1)
