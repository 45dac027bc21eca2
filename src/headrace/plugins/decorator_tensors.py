"""Tensors and shapes as the decorator form of plugins sees them.

Source: tensorrt-plugins spec 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.types import Array
from headrace.plugins.expressions import DimsExprs, SizeTensor, SymbolicExtent
from headrace.plugins.memory import array_at
from headrace.plugins.types import DataType, DimensionOperation, TensorFormat

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace.plugins.expressions import Extent
    from headrace.plugins.types import PluginTensorDesc


class ShapeExpr(SymbolicExtent):
    """The extent of an axis; `+ - * // == <` give others."""

    __slots__ = ()

    @property
    def is_constant(self) -> bool:
        """Whether the extent is known while building."""
        return self.expr.is_constant()

    def constant_value(self) -> int:
        """The extent.

        Raises:
            RuntimeError: it is known only at run time.
        """
        if not self.is_constant:
            raise RuntimeError(f"{self!r} is not known while building")
        return self.expr.get_constant_value()

    def __eq__(self, other: Any) -> Any:
        return self.apply(DimensionOperation.EQUAL, other)

    def __lt__(self, other: Extent) -> ShapeExpr:
        return self.apply(DimensionOperation.LESS, other)

    def __gt__(self, other: Extent) -> ShapeExpr:
        return self.apply(DimensionOperation.LESS, other, swap=True)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.constant_value())

    def __repr__(self) -> str:
        return f"ShapeExpr({self.expr!r})"


def cdiv(first: Extent, second: Extent) -> ShapeExpr:
    """Division rounded up."""
    return ShapeExpr(first).apply(DimensionOperation.CEIL_DIV, second)


def max(first: Extent, second: Extent) -> ShapeExpr:
    """The greater extent."""
    return ShapeExpr(first).apply(DimensionOperation.MAX, second)


def min(first: Extent, second: Extent) -> ShapeExpr:
    """The smaller extent."""
    return ShapeExpr(first).apply(DimensionOperation.MIN, second)


class ShapeExprs(Sequence[ShapeExpr]):
    """The axes of a tensor; items may be set to numbers or expressions."""

    __slots__ = ("_axes",)

    def __init__(self, axes: Iterable[Extent] | int = ()) -> None:
        if isinstance(axes, int):
            axes = [0] * axes
        self._axes = [ShapeExpr(a) for a in axes]

    def __len__(self) -> int:
        return len(self._axes)

    def __getitem__(self, index: Any) -> Any:
        return self._axes[index]

    def __setitem__(self, index: int, value: Extent) -> None:
        self._axes[index] = ShapeExpr(value)

    def __iter__(self) -> Iterator[ShapeExpr]:
        return iter(self._axes)

    def numel(self) -> ShapeExpr:
        """Number of elements."""
        count = ShapeExpr(1)
        for axis in self._axes:
            count = count * axis
        return count

    def exprs(self) -> DimsExprs:
        """The same for a plugin of version 3."""
        return DimsExprs([a.expr for a in self._axes])


class TensorDesc:
    """An input or output while the network is described.

    Attributes:
        dtype: of its elements.
        shape_expr: its axes; may be changed, or replaced by any sequence of extents.
        format: LINEAR.
        scale: of INT8 tensors.
    """

    def __init__(
        self,
        shape_expr: Iterable[Extent],
        dtype: DataType,
        format: TensorFormat = TensorFormat.LINEAR,
        scale: float | None = None,
    ) -> None:
        self._shape = ShapeExprs(shape_expr)
        self.dtype = dtype
        self.format = format
        self.scale = scale
        self.alias_of: TensorDesc | None = None
        self.is_shape_tensor = False

    @property
    def shape_expr(self) -> ShapeExprs:
        """Its axes."""
        return self._shape

    @shape_expr.setter
    def shape_expr(self, value: Iterable[Extent]) -> None:
        self._shape = ShapeExprs(value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its axes as numbers; -1 where they are known only at run time."""
        return tuple(a.constant_value() if a.is_constant else -1 for a in self._shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    def numel(self) -> ShapeExpr:
        """Number of elements."""
        return self._shape.numel()

    def like(self) -> TensorDesc:
        """Another of the same shape and type."""
        return TensorDesc(self._shape, self.dtype, self.format, self.scale)

    def aliased(self) -> TensorDesc:
        """An output in the memory of this input."""
        alias = self.like()
        alias.alias_of = self
        return alias


class SizeTensorDesc(TensorDesc):
    """A scalar output that holds the length of an axis of another output.

    Made by `size_tensor`.
    """

    def __init__(self, opt: Extent, upper_bound: Extent) -> None:
        super().__init__((), DataType.INT32)
        self.opt, self.upper_bound = ShapeExpr(opt), ShapeExpr(upper_bound)
        self._size = SizeTensor(-1, self.opt.expr, self.upper_bound.expr)

    def place(self, index: int) -> None:
        """Set the index of this output."""
        self._size.output = index

    def expr(self) -> ShapeExpr:
        """The length, as an extent of another output."""
        return ShapeExpr(self._size)


def size_tensor(opt: Extent, upper_bound: Extent) -> SizeTensorDesc:
    """Describe a scalar output that holds the length of an axis.

    Args:
        opt: the usual length.
        upper_bound: the greatest length.
    """
    return SizeTensorDesc(opt, upper_bound)


def from_shape_expr(shape_expr: Iterable[Extent], dtype: DataType, **more: Any) -> TensorDesc:
    """An output of that shape and type."""
    return TensorDesc(shape_expr, dtype, **more)


class Tensor:
    """An input or output while running; memory of the host. `np.asarray(tensor)` views it.

    Attributes:
        data_ptr: address of its first element.
        dtype, shape, format, scale: what it is.
        aliased: the input whose memory it is, or None.
    """

    def __init__(self, address: int, desc: PluginTensorDesc, *, writable: bool) -> None:
        self.data_ptr = address
        assert desc.type is not None
        self.dtype = desc.type
        self.shape = tuple(desc.dims)
        self.format = desc.format
        self.scale = desc.scale
        self.aliased: Tensor | None = None
        self._writable = writable

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one item of each axis to the next."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def numpy(self) -> Array:
        """View the memory as an array; outputs may be written to.

        Axes that the plugin decides are not known yet: such outputs need `array_at` and `data_ptr`.
        """
        return array_at(self.data_ptr, self.shape, self.dtype, writable=self._writable)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: Any = None) -> Array:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """For shims of GPU libraries: the address is the host's."""
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.numpy.str,
            "data": (self.data_ptr, not self._writable),
            "strides": None,
        }

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.dtype.name})"
