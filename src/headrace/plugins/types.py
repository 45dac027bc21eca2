"""Types, formats and descriptors that plugins and TensorRT-shaped scripts speak in.

Numbers of the enums are those of the newer generation. They are never stored in files; names are.
Source: tensorrt-plugins spec 6 to 8, tensorrt-api spec 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from operator import index
from typing import Any, TypeAlias, overload

import numpy as np

from headrace._core.types import DType

MAX_DIMS = 8


class Dims(Sequence[int]):
    """Up to 8 axes. Equal to a tuple of the same numbers, prints like one, slices to tuples.

    Args:
        shape: the axes; -1 for one that is known only at run time. A single number is that many
            axes of unknown extent, as in the original.

    Raises:
        ValueError: more than 8 axes.
        TypeError: an axis that is not an integer.
    Source: tensorrt-api spec 2.
    """

    MAX_DIMS = MAX_DIMS
    __slots__ = ("_axes",)

    def __init__(self, shape: Iterable[int] | int = ()) -> None:
        axes = [-1] * shape if isinstance(shape, int) else [_axis(d) for d in shape]
        if len(axes) > MAX_DIMS:
            raise ValueError(f"{len(axes)} axes; Dims has at most {MAX_DIMS}")
        self._axes = axes

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        return tuple(self._axes[index]) if isinstance(index, slice) else self._axes[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            new = [_axis(d) for d in value]
            if len(self._axes[index]) != len(new):
                raise ValueError("a slice of Dims can only be set to as many numbers")
            self._axes[index] = new
        else:
            self._axes[index] = _axis(value)

    def __len__(self) -> int:
        return len(self._axes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._axes)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Dims, tuple, list)):
            return self._axes == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[int]) -> tuple[int, ...]:
        return (*self._axes, *other)

    def __radd__(self, other: Iterable[int]) -> tuple[int, ...]:
        return (*other, *self._axes)

    def numel(self) -> int:
        """Number of elements; negative if an axis is unknown."""
        count = 1
        for axis in self._axes:
            count *= axis
        return -1 if any(axis < 0 for axis in self._axes) else count

    def __repr__(self) -> str:
        return repr(tuple(self._axes))


class _Fixed(Dims):
    __slots__ = ()
    _rank = 0

    def __init__(self, *shape: Any) -> None:
        if not shape:
            super().__init__([0] * self._rank)
        else:
            super().__init__(shape[0] if len(shape) == 1 else shape)
        if len(self) != self._rank:
            raise ValueError(f"{len(self)} axes; {type(self).__name__} has {self._rank}")


class Dims2(_Fixed):
    """Two axes: `Dims2(a, b)`."""

    __slots__ = ()
    _rank = 2


class DimsHW(Dims2):
    """Height and width."""

    __slots__ = ()

    h = property(
        lambda self: self[0], lambda self, value: self.__setitem__(0, value), doc="Height."
    )
    w = property(lambda self: self[1], lambda self, value: self.__setitem__(1, value), doc="Width.")


class Dims3(_Fixed):
    """Three axes: `Dims3(a, b, c)`."""

    __slots__ = ()
    _rank = 3


class Dims4(_Fixed):
    """Four axes: `Dims4(a, b, c, d)`."""

    __slots__ = ()
    _rank = 4


def _axis(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{value!r} is not the extent of an axis")
    return int(value.__index__())


class NumberedEnum(Enum):
    """An enum of TensorRT: it has a number, is no number, and prints as `Class.NAME`.

    `int(member)` is its number, and `Class(number)` is the member. Members of two enums, and a
    member and a number, are never equal; every member is true.
    """

    @classmethod
    def _missing_(cls, value: object) -> object:
        """Find the member for a number of any kind, such as NumPy's or another release's enum."""
        return cls._value2member_map_.get(index(value)) if hasattr(value, "__index__") else None

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        # two releases have a class each
        if not isinstance(other, NumberedEnum) or type(other).__name__ != type(self).__name__:
            return False
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


class _Entries:
    """`__entries` of TensorRT's enums, by which Polygraphy knows them: name -> (member, text)."""

    def __get__(self, member: object, owner: type[NumberedEnum]) -> dict[str, tuple[Any, None]]:
        return {name: (value, None) for name, value in owner.__members__.items()}


setattr(NumberedEnum, "__entries", _Entries())


class OrderedEnum(NumberedEnum):
    """One of those that TensorRT orders; a member is compared with members of its own enum."""

    def __lt__(self, other: object) -> bool:
        return bool(self.value < other.value) if type(other) is type(self) else NotImplemented

    def __le__(self, other: object) -> bool:
        return bool(self.value <= other.value) if type(other) is type(self) else NotImplemented


class DataType(NumberedEnum):
    """Element type of a tensor."""

    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6
    BF16 = 7
    INT64 = 8
    INT4 = 9
    FP4 = 10
    E8M0 = 11

    @property
    def numpy(self) -> DType:
        """The NumPy type of the same elements.

        Raises:
            TypeError: NumPy has none (FP8, BF16, INT4, FP4, E8M0).
        """
        try:
            return _NUMPY[self]
        except KeyError:
            raise TypeError(f"{self.name} has no NumPy type") from None

    @property
    def itemsize(self) -> float | int:
        """Bytes of one element; 0.5 for the four-bit types."""
        return _SIZES.get(self) or _NUMPY[self].itemsize

    @property
    def is_float(self) -> bool:
        """Whether a float tensor may be presented in it."""
        return self in (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.FP8)

    @classmethod
    def of(cls, dtype: Any) -> DataType:
        """The type of the elements of a NumPy array.

        Raises:
            TypeError: TensorRT has none (float64, int16, uint32, strings …).
        """
        kind = _OF.get(np.dtype(dtype))
        if kind is None:
            raise TypeError(f"{np.dtype(dtype).name} has no TensorRT type")
        return kind


_NUMPY: dict[DataType, DType] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.HALF: np.dtype(np.float16),
    DataType.INT8: np.dtype(np.int8),
    DataType.INT32: np.dtype(np.int32),
    DataType.BOOL: np.dtype(np.bool_),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT64: np.dtype(np.int64),
}
_OF = {dtype: kind for kind, dtype in _NUMPY.items()}
_SIZES: dict[DataType, float | int] = {
    DataType.FP8: 1,
    DataType.BF16: 2,
    DataType.INT4: 0.5,
    DataType.FP4: 0.5,
    DataType.E8M0: 1,
}


class TensorFormat(OrderedEnum):
    """Order of a tensor's elements in memory. Here every tensor is LINEAR: row-major, dense."""

    LINEAR = 0
    CHW2 = 1
    HWC8 = 2
    CHW4 = 3
    CHW16 = 4
    CHW32 = 5
    DHWC8 = 6
    CDHW32 = 7
    HWC = 8
    DLA_LINEAR = 9
    DLA_HWC4 = 10
    HWC16 = 11
    DHWC = 12
    # the names of TensorRT 5 and 6
    NCHW = 0
    NC2HW2 = 1
    NHWC8 = 2


class TensorRTPhase(OrderedEnum):
    """The purpose that a creator makes a plugin for."""

    BUILD = 0
    RUNTIME = 1


class PluginCapabilityType(NumberedEnum):
    """The three faces of an `IPluginV3`."""

    CORE = 0
    BUILD = 1
    RUNTIME = 2


class DimensionOperation(NumberedEnum):
    """Arithmetic on axes; EQUAL and LESS give 1 or 0."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    EQUAL = 5
    LESS = 6
    FLOOR_DIV = 7
    CEIL_DIV = 8


class PluginCreatorVersion(NumberedEnum):
    """Generation of a creator of the version-2 line, by its language."""

    V1 = 0
    V1_PYTHON = 100


class QuickPluginCreationRequest(OrderedEnum):
    """The kind of decorated plugin that a network prefers; just in time is the one here."""

    UNKNOWN = 0
    PREFER_JIT = 1
    PREFER_AOT = 2
    STRICT_JIT = 3
    STRICT_AOT = 4


class APILanguage(NumberedEnum):
    """Language a plugin is written in."""

    CPP = 0
    PYTHON = 1


class _Shape:
    """A shape, to which any sequence of integers may be assigned."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._slot = f"_{name}"

    def __get__(self, holder: object, owner: type) -> Any:
        return self if holder is None else getattr(holder, self._slot)

    def __set__(self, holder: object, value: Iterable[int]) -> None:
        setattr(holder, self._slot, Dims(value))


class PluginTensorDesc:
    """One tensor as a plugin meets it.

    Attributes:
        dims: its shape; -1 for an axis that is known only at run time.
        type: of its elements; None where nothing is chosen yet.
        format: order of its elements; None where nothing is chosen yet.
        scale: of INT8 tensors, else 0.
    """

    __slots__ = ("_dims", "format", "scale", "type")
    dims = _Shape()

    def __init__(
        self,
        dims: Iterable[int] = (),
        type: DataType | None = DataType.FLOAT,
        format: TensorFormat | None = TensorFormat.LINEAR,
        scale: float = 0.0,
    ) -> None:
        self.dims = dims
        self.type = type
        self.format = format
        self.scale = scale

    def __repr__(self) -> str:
        kind = "?" if self.type is None else self.type.name
        form = "?" if self.format is None else self.format.name
        return f"PluginTensorDesc({self.dims!r}, {kind}, {form})"


class DynamicPluginTensorDesc:
    """A tensor with the shapes of one optimisation profile.

    Attributes:
        desc: the tensor; free axes are -1 while building.
        min, opt, max: shapes of the profile.
    """

    __slots__ = ("_max", "_min", "_opt", "desc")
    min, max, opt = _Shape(), _Shape(), _Shape()

    def __init__(
        self,
        desc: PluginTensorDesc | None = None,
        min: Iterable[int] = (),
        max: Iterable[int] = (),
        opt: Iterable[int] = (),
    ) -> None:
        self.desc = desc or PluginTensorDesc()
        self.min, self.max, self.opt = min, max, opt

    def __repr__(self) -> str:
        return f"DynamicPluginTensorDesc({self.desc!r}, min={self.min!r}, max={self.max!r})"


TensorDescs: TypeAlias = Sequence[PluginTensorDesc]
"""The inputs of a plugin, its outputs, or both."""
DynamicTensorDescs: TypeAlias = Sequence[DynamicPluginTensorDesc]
"""The same with the shapes of a profile."""
