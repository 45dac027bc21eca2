"""Shapes, types, fields, expressions and memory views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core._native import LentMemory
from headrace.errors import PluginError
from headrace.plugins import (
    DataType,
    DimensionOperation,
    Dims,
    DimsExprs,
    IExprBuilder,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    address_of,
    array_at,
)
from headrace.plugins.expressions import Axis, ShapeError
from headrace.plugins.types import DimsHW

SHAPES = st.lists(st.integers(-1, 100), max_size=8)


@given(SHAPES)
def test_dims_are_like_a_tuple(shape: list[int]) -> None:
    dims = Dims(shape)
    assert dims == tuple(shape)
    assert repr(dims) == repr(tuple(shape))
    assert dims[1:] == tuple(shape[1:])
    assert isinstance(dims[1:], tuple)


def test_items_of_dims_may_be_set() -> None:
    dims = Dims((1, 2, 3))
    dims[1] = 7
    assert dims == (1, 7, 3)
    with pytest.raises(TypeError):
        dims[0] = "x"
    with pytest.raises(ValueError, match="at most 8"):
        Dims(range(9))
    assert DimsHW(3, 4).w == 4


WITHOUT_TWIN = {DataType.FP8, DataType.BF16, DataType.INT4, DataType.FP4, DataType.E8M0}


@given(st.sampled_from([t for t in DataType if t not in WITHOUT_TWIN]))
def test_numpy_types_and_back(kind: DataType) -> None:
    assert DataType.of(kind.numpy) == kind


def test_types_without_a_twin() -> None:
    with pytest.raises(TypeError, match="BF16"):
        _ = DataType.BF16.numpy
    with pytest.raises(TypeError, match="float64"):
        DataType.of(np.float64)


def test_a_field_counts_elements_and_reads_back() -> None:
    field = PluginField("scales", np.array([1, 2, 3], np.float32), PluginFieldType.FLOAT32)
    assert field.size == 3
    assert field.data is not None
    assert field.data.tolist() == [1, 2, 3]
    packed = PluginField("n", np.array([5], np.int32).tobytes(), PluginFieldType.INT32)
    assert packed.size == 1
    assert packed.data is not None
    assert packed.data.tolist() == [5]
    text = PluginField("mode", b"corners\0", PluginFieldType.CHAR)
    assert (text.size, text.text()) == (8, "corners")
    assert PluginField("only_declared").data is None
    with pytest.raises(TypeError):
        PluginFieldCollection(["no field"])  # type: ignore[list-item]


F32, I32 = PluginFieldType.FLOAT32, PluginFieldType.INT32


@pytest.mark.parametrize(
    ("data", "kind", "values"),
    [
        (0.25, F32, [0.25]),
        ([0.25, 1], F32, [0.25, 1]),
        ((), F32, []),
        (np.float64(0.25), F32, [0.25]),
        (np.array([0.2]), F32, [float(np.float32(0.2))]),
        (np.array([3, 4]), F32, [3, 4]),
        (np.array([[1, 2], [3, 4]]), I32, [1, 2, 3, 4]),
        (np.array([2.0]), I32, [2]),
        (np.array([np.nan], np.float16), F32, [np.nan]),
        (memoryview(np.array([0.25])), F32, [0.25]),
        (True, PluginFieldType.INT8, [1]),
        (3, PluginFieldType.INT64, [3]),
        (np.array(5, np.int32), I32, [5]),
        (np.float32([0.25]).tobytes(), F32, [0.25]),
        (memoryview(np.float32([0.25]).tobytes()), F32, [0.25]),
        (np.frombuffer(np.float32([0.25]).tobytes(), np.uint8), F32, [0.25]),
        (1.0, PluginFieldType.BF16, [0x3F80]),
        ([1 + 2**-8, 1 + 3 * 2**-8], PluginFieldType.BF16, [0x3F80, 0x3F82]),  # ties: to even
        ([1 + 3 * 2**-9, -1 - 3 * 2**-9], PluginFieldType.BF16, [0x3F81, 0xBF81]),
        (np.array([0x3F80], np.uint16), PluginFieldType.BF16, [0x3F80]),
        (np.array([7, 8], np.int32), PluginFieldType.UNKNOWN, [7, 0, 0, 0, 8, 0, 0, 0]),
    ],
)
def test_values_become_the_type_of_the_field(
    data: object, kind: PluginFieldType, values: list[float]
) -> None:
    field = PluginField("alpha", data, kind)
    assert field.data is not None
    np.testing.assert_array_equal(field.data, values)
    assert (field.size, field.data.dtype) == (len(values), kind.numpy)


@pytest.mark.parametrize(
    ("data", "kind", "found"),
    [
        (0.5, I32, "'alpha': 0.5"),
        (2**31, I32, "2147483648"),
        ([1e39], F32, r"1e\+39"),
        (np.array([0.5, 1]), I32, r"array of float64, \[0.5, 1.0\]"),
        (np.array([2**24 + 1]), F32, "array of int64"),
        (np.array([2**63], np.uint64), PluginFieldType.INT64, "array of uint64"),
        (np.array([0.1], np.float32), PluginFieldType.FLOAT16, "array of float32"),
        ("text", F32, "'text'"),
        ([[1], [2, 3]], I32, "2, 3"),
        (object(), I32, "object"),
    ],
)
def test_values_that_the_type_cannot_hold_are_refused(
    data: object, kind: PluginFieldType, found: str
) -> None:
    with pytest.raises(PluginError, match=found) as caught:
        PluginField("alpha", data, kind)
    assert kind.name in (caught.value.finding.expectation or "")
    field = PluginField("alpha", 1, kind)
    with pytest.raises(PluginError):
        field.data = data
    assert field.size == 1


NUMBERS = st.integers(-1000, 1000)
ORACLE = {
    DimensionOperation.SUM: lambda a, b: a + b,
    DimensionOperation.PROD: lambda a, b: a * b,
    DimensionOperation.MAX: max,
    DimensionOperation.MIN: min,
    DimensionOperation.SUB: lambda a, b: a - b,
    DimensionOperation.EQUAL: lambda a, b: 1 if a == b else 0,
    DimensionOperation.LESS: lambda a, b: 1 if a < b else 0,
    DimensionOperation.FLOOR_DIV: lambda a, b: int(np.floor_divide(a, b)),
    DimensionOperation.CEIL_DIV: lambda a, b: int(-np.floor_divide(-a, b)),
}


@given(st.sampled_from(list(ORACLE)), NUMBERS, NUMBERS.filter(bool))
def test_expressions_are_arithmetic(op: DimensionOperation, a: int, b: int) -> None:
    make = IExprBuilder()
    folded = make.operation(op, make.constant(a), make.constant(b))
    assert folded.is_constant()
    assert folded.get_constant_value() == ORACLE[op](a, b)
    symbolic = make.operation(op, Axis(0, 0), make.constant(b))
    assert not symbolic.is_constant()
    assert symbolic.evaluate(lambda leaf: a) == ORACLE[op](a, b)


def test_expressions_refuse_what_has_no_value() -> None:
    make = IExprBuilder()
    with pytest.raises(ShapeError, match="divided by zero"):
        make.operation(DimensionOperation.FLOOR_DIV, make.constant(1), make.constant(0))
    with pytest.raises(TypeError, match="constant"):
        DimsExprs([3])  # type: ignore[list-item]
    size = make.declare_size_tensor(1, make.constant(5), make.constant(10))
    assert size.is_size_tensor()
    assert not size.is_constant()


def test_memory_is_viewed_not_copied() -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    view = array_at(address_of(source), (2, 3), DataType.FLOAT)
    source[1, 2] = 50
    assert view[1, 2] == 50
    assert not view.flags.writeable
    array_at(address_of(source), (6,), np.float32, writable=True)[0] = 9
    assert source[0, 0] == 9
    with pytest.raises(ValueError, match="null"):
        array_at(0, (1,), np.float32)
    with pytest.raises(ValueError, match="contiguous"):
        address_of(source.T)


def test_views_beyond_lent_memory_are_refused() -> None:
    source = np.zeros(4, np.float32)
    start = address_of(source)
    with LentMemory([(start, start + source.nbytes, False, "input 0")]):
        array_at(start + 8, (2,), np.float32)
        with pytest.raises(ValueError, match="needs 20 bytes; input 0 has 16"):
            array_at(start, (5,), np.float32)
        with pytest.raises(ValueError, match="input 0 must not be written to"):
            array_at(start, (4,), np.float32, writable=True)
