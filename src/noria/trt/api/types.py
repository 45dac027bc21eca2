"""Element types, and small helpers of the module."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from noria.plugins.types import DataType
from noria.trt.release import generation

# ONNX's numbers, TensorProto.DataType
_ELEMS = {
    DataType.FLOAT: 1, DataType.UINT8: 2, DataType.INT8: 3, DataType.INT32: 6, DataType.INT64: 7,
    DataType.BOOL: 9, DataType.HALF: 10, DataType.BF16: 16, DataType.FP8: 17, DataType.INT4: 22,
    DataType.FP4: 23, DataType.E8M0: 24,
}  # fmt: skip
_TYPES = {elem: kind for kind, elem in _ELEMS.items()}
_DOUBLE, _INT64 = 11, 7


def elem_of(kind: DataType) -> int:
    """ONNX's number of a type."""
    return _ELEMS[DataType(kind)]


def datatype_of_elem(elem: int) -> DataType | None:
    """The type as TensorRT shows it: double as FLOAT, and up to 9.x INT64 as INT32.

    None for types that it does not have. Source: tensorrt-api spec 3.5.
    """
    if elem == _DOUBLE:
        return DataType.FLOAT
    if elem == _INT64 and generation() < 10:
        return DataType.INT32
    return _TYPES.get(elem)


def nptype(trt_type: DataType) -> type[Any]:
    """The NumPy type of a `DataType`.

    Raises:
        TypeError: FP8, BF16, INT4 and FP4 have none.
    """
    return DataType(trt_type).numpy.type


def volume(iterable: Iterable[int]) -> int:
    """Product of the numbers; 1 for none."""
    return int(prod(int(np.asarray(i)) for i in iterable))
