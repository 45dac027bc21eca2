"""Values that scripts pass: types, weights, bytes of engines, orders of axes, addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array
from headrace.plugins.memory import array_at
from headrace.plugins.types import DataType, Dims
from headrace.trt.release import generation
from headrace.trt.types.enums import WeightsRole
from headrace.trt.types.strict import Idle

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace.plugins.types import NumberedEnum


# ONNX's numbers, TensorProto.DataType
_ELEMS = {
    DataType.FLOAT: 1, DataType.UINT8: 2, DataType.INT8: 3, DataType.INT32: 6, DataType.INT64: 7,
    DataType.BOOL: 9, DataType.HALF: 10, DataType.BF16: 16, DataType.FP8: 17, DataType.INT4: 22,
    DataType.FP4: 23, DataType.E8M0: 24,
}  # fmt: skip
_TYPES = {elem: kind for kind, elem in _ELEMS.items()}
_DOUBLE, _INT64 = 11, 7
_MAX_AXES = 8


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


def nptype(trt_type: DataType) -> type[np.generic]:
    """The NumPy type of a `DataType`.

    Raises:
        TypeError: FP8, BF16, INT4 and FP4 have none.
    """
    return DataType(trt_type).numpy.type


def volume(iterable: Iterable[int]) -> int:
    """Product of the numbers; 1 for none."""
    return int(prod(int(np.asarray(i)) for i in iterable))


def strides(axes: tuple[int, ...]) -> Dims:
    """Steps between elements along each axis of a row-major tensor, in elements."""
    steps = [1] * len(axes)
    for i in range(len(axes) - 2, -1, -1):
        steps[i] = -1 if steps[i + 1] < 0 or axes[i + 1] < 0 else steps[i + 1] * axes[i + 1]
    return Dims(steps)


def shutdown_protobuf_library() -> None:
    """Nothing to free: parsers keep no state of protobuf."""


class Permutation(Sequence[int]):
    """An order of up to 8 axes; always eight numbers, unused ones are 0.

    Raises:
        ValueError: more than 8 numbers.
    Source: tensorrt-api spec 7, idiom 16.
    """

    def __init__(self, order: Iterable[int] = range(_MAX_AXES)) -> None:
        numbers = [int(i) for i in order]
        if len(numbers) > _MAX_AXES:
            raise ValueError(f"{len(numbers)} axes; a permutation has at most {_MAX_AXES}")
        self._order = numbers + [0] * (_MAX_AXES - len(numbers))

    def __getitem__(self, index: Any) -> Any:
        return tuple(self._order)[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._order[index] = int(value)

    def __len__(self) -> int:
        return _MAX_AXES

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Permutation | tuple | list):
            return self._order == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self._order))


class IHostMemory(Idle, bytes):
    """Read-only bytes: `bytes(m)`, `len(m)`, slices, `file.write(m)` and any buffer consumer.

    Source: tensorrt-api spec 4.4.
    """

    @property
    def nbytes(self) -> int:
        """Length."""
        return len(self)

    @property
    def dtype(self) -> DataType:
        """Type of the elements: bytes."""
        return DataType.INT8

    def __repr__(self) -> str:
        return f"IHostMemory({len(self)} bytes)"

    def __str__(self) -> str:
        return repr(self)


class Weights:
    """A C-contiguous array; `Weights(dtype)` is empty.

    Args:
        a: the array, which is not copied, or a `DataType`; or a type, a pointer and a count, as
            in C++.

    Raises:
        ValueError: the array is not C-contiguous.
    Source: tensorrt-api spec 2.
    """

    def __init__(
        self,
        a: npt.ArrayLike | DataType | NumberedEnum = DataType.FLOAT,
        ptr: int = 0,
        count: int | None = None,
    ) -> None:
        if count is not None:
            self._array = array_at(int(ptr), (int(count),), DataType(a).numpy)
        elif isinstance(a, (DataType, WeightsRole)):
            self._array = np.empty(0, DataType(a).numpy)
        else:
            array = np.asarray(a)
            if not array.flags.c_contiguous:
                raise ValueError("Weights need a C-contiguous array; see numpy.ascontiguousarray")
            self._array = _known_type(array)
        self._array_type = DataType.of(self._array.dtype)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self._array_type

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._array.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._array.nbytes)

    def numpy(self) -> Array:
        """The elements, as one axis."""
        return self._array.reshape(-1)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Weights({self.dtype.name}, {self.size})"


WeightsLike: TypeAlias = "Weights | Array | None"
"""Weights as scripts give them."""


def _known_type(array: Array) -> Array:
    if array.dtype == np.float64:
        return array.astype(np.float32)
    DataType.of(array.dtype)  # raises for a type that TensorRT does not have
    return array


def as_array(weights: object) -> Array | None:
    """The elements of `Weights`, an array or None; None if there are none.

    Raises:
        TypeError: something else, or of a type that TensorRT does not have.
    """
    if weights is None:
        return None
    if isinstance(weights, Weights):
        return weights.numpy() if weights.size else None
    if not isinstance(weights, np.ndarray | np.generic):
        raise TypeError(f"weights are an array or trt.Weights, not a {type(weights).__name__}")
    array = _known_type(np.asarray(weights))
    if not array.flags.c_contiguous:
        raise ValueError("weights need a C-contiguous array; see numpy.ascontiguousarray")
    return array if array.size else None


class AddressError(EngineError, TypeError):
    """Something was given in an address's place; TensorRT raises a TypeError for it."""


def address_of(value: Any, where: str) -> int:
    """The address that a script gives: a number, or an object that is one, such as an allocation.

    Args:
        value: the script's argument.
        where: the call and the tensor that it is for.

    Raises:
        AddressError: an array, or whatever else is no number.
    """
    if isinstance(value, int | np.integer):
        return int(value)
    kind = type(value).__name__
    module = type(value).__module__.partition(".")[0]
    name = kind if module == "builtins" else f"{module}.{kind}"
    fix = None
    if hasattr(value, "data_ptr"):  # PyTorch
        fix = "pass its address: tensor.data_ptr(), of a tensor that is contiguous"
    elif hasattr(value, "__array_interface__"):
        fix = "pass its address: array.ctypes.data, of an array that is contiguous"
    elif hasattr(value, "__dlpack__"):
        fix = "pass the address of its memory, as its library calls it"
    elif not isinstance(value, float | str | bytes) and hasattr(type(value), "__int__"):
        return int(value)
    elif value is None:
        fix = "memory that is not there yet: allocate it, and pass its address"
    raise AddressError(
        f"{'None' if value is None else f'a {name}'} is no address",
        where=where,
        expected="the address of memory as an integer",
        fix=fix,
    )
