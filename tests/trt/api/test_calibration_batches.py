"""What `get_batch` returns is checked before memory is read: nonsense is named, and no crash."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.errors import EngineError
from headrace.trt.api.calibration_batches import batch_size_of, read_batch
from headrace.trt.types.values import DataType

PIXELS = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
INPUT: Any = SimpleNamespace(_name="image", dtype=DataType.FLOAT)
SHAPES = {"image": PIXELS.shape}


class Allocation:
    """As of PyCUDA: an object that is a number."""

    def __int__(self) -> int:
        return PIXELS.ctypes.data


def read(returned: Any) -> Any:
    return read_batch(returned, [INPUT], SHAPES, "calibrator Own")


@pytest.mark.parametrize(
    "returned",
    [[PIXELS.ctypes.data], (np.uint64(PIXELS.ctypes.data),), [Allocation()],
     np.array([PIXELS.ctypes.data])],
)  # fmt: skip
def test_addresses_are_read(returned: Any) -> None:
    np.testing.assert_array_equal(read(returned)["image"], PIXELS)


@pytest.mark.parametrize("returned", [None, [], ()])
def test_the_end_is_the_end(returned: Any) -> None:
    assert read(returned) is None


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([PIXELS], r"an array float32\[1, 3, 2, 2\] for image: no address"),
        (PIXELS, "returned an array float32"),
        pytest.param(PIXELS.ctypes.data, "returned int", id="an address alone"),
        (True, "returned bool True"),
        ({"image": 1}, "returned dict"),
        ([1, 2], "2 addresses for 1 inputs"),
        ([0], "int 0 for image: no address"),
        ([-1], "int -1"),
        ([1 << 70], "no address"),
        ([None], "NoneType None"),
        ([1.5], "float 1.5"),
        (["x"], "str 'x'"),
        ([7], "gave 0x7 for image, where 48 bytes cannot be read"),
        ([0xDEADBEEF0000], "cannot be read"),
    ],
)
def test_nonsense_is_named(returned: Any, words: str) -> None:
    with pytest.raises(EngineError, match=words) as failure:
        read(returned)
    assert "calibrator Own" in str(failure.value)
    assert "one address for each input" in str(failure.value)


def test_memory_that_ends_too_early_is_named() -> None:
    shapes = {"image": (1, 3, 1 << 15, 1 << 15)}
    with pytest.raises(EngineError, match="bytes cannot be read"):
        read_batch([PIXELS.ctypes.data], [INPUT], shapes, "calibrator Own")


def test_a_batch_without_a_number_is_named() -> None:
    broken = np.full_like(PIXELS, np.nan)
    with pytest.raises(EngineError, match="no finite value"):
        read([broken.ctypes.data])


@pytest.mark.parametrize("size", [0, 4, np.int64(8)])
def test_sizes(size: Any) -> None:
    assert batch_size_of(size, "own") == size


@pytest.mark.parametrize("size", [None, "one", True, -1, 1.5])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(EngineError, match="get_batch_size returned"):
        batch_size_of(size, "own")
