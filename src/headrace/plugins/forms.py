"""Forms that a plugin may have its tensors in: element type, order of the elements, scale.

Shapes stay logical, whatever the order. Channels are the third axis from the end, in formats with a
depth the fourth; formats with vectors pad them, and padding is zero.
Source: tensorrt-plugins spec 6.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from headrace._core._native import address_of, pack_channels, unpack_channels
from headrace._core.types import Array, DType
from headrace.plugins.memory import bfloat16_bits
from headrace.plugins.types import DataType, TensorFormat

Shape = tuple[int, ...]
_F = TensorFormat


@dataclass(frozen=True, slots=True)
class _Order:
    """Order of the elements of a format.

    Attributes:
        axes: least number of axes of a tensor; channels are the first of them.
        vector: channels of a block; 0: one block of all of them.
        multiple: channels of a block are padded to a multiple of that.
        types: that TensorRT documents for it.
    """

    axes: int
    vector: int
    multiple: int
    types: frozenset[DataType]


_LINE, _LARGE = 64, 1 << 20  # bytes
THREADS = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
"""Most threads that repack one tensor: two fill the memory's bandwidth."""


def _types(names: str) -> frozenset[DataType]:
    return frozenset(DataType[name] for name in names.split())


ORDERS: dict[TensorFormat, _Order] = {
    _F.CHW2: _Order(3, 2, 1, _types("HALF")),
    _F.CHW4: _Order(3, 4, 1, _types("HALF INT8")),
    _F.HWC8: _Order(3, 0, 8, _types("HALF BF16")),
    _F.CHW16: _Order(3, 16, 1, _types("HALF INT8")),
    _F.CHW32: _Order(3, 32, 1, _types("FLOAT HALF INT8")),
    _F.HWC: _Order(3, 0, 1, _types("FLOAT HALF BF16 INT8 UINT8")),
    _F.HWC16: _Order(3, 0, 16, _types("HALF INT8")),
    _F.DHWC8: _Order(4, 0, 8, _types("HALF BF16")),
    _F.CDHW32: _Order(4, 32, 1, _types("HALF INT8")),
    _F.DHWC: _Order(4, 0, 1, _types("FLOAT")),
}
"""Formats beside LINEAR that tensors are repacked in."""

ABSENT_FORMATS = {
    _F.DLA_LINEAR: "kDLA_LINEAR is a format of DLAs, which are not here",
    _F.DLA_HWC4: "kDLA_HWC4 is a format of DLAs, which are not here",
}
ABSENT_TYPES = {
    DataType.FP8: "FP8 is not computed here",
    DataType.INT4: "INT4 is not computed here",
    DataType.FP4: "FP4 is not computed here",
}


@dataclass(frozen=True, slots=True)
class TensorForm:
    """How a plugin has one tensor in memory.

    Attributes:
        type: of its elements.
        format: their order.
        scale: what one step of INT8 stands for; 0 where a tensor has none.
    """

    type: DataType
    format: TensorFormat = TensorFormat.LINEAR
    scale: float = 0.0

    @property
    def storage(self) -> DType:
        """The NumPy type of its memory; bits of BF16 are uint16."""
        return np.dtype(np.uint16) if self.type == DataType.BF16 else self.type.numpy

    @property
    def is_linear(self) -> bool:
        """Whether its elements are row-major and dense."""
        return self.format == TensorFormat.LINEAR

    @property
    def is_documented(self) -> bool:
        """Whether TensorRT documents the format for the type."""
        return self.is_linear or self.type in ORDERS[self.format].types

    def packed_shape(self, shape: Sequence[int]) -> Shape:
        """The shape of its memory, row-major, padding included.

        Raises:
            ValueError: the tensor has fewer axes than the format needs.
        """
        axes = tuple(shape)
        if self.is_linear:
            return axes
        order = ORDERS[self.format]
        if len(axes) < order.axes:
            raise ValueError(f"k{self.format.name} needs {order.axes} axes, the tensor is {axes}")
        at = len(axes) - order.axes
        lead, channels, rest = axes[:at], axes[at], axes[at + 1 :]
        if order.vector:
            return (*lead, -(-channels // order.vector), *rest, order.vector)
        return (*lead, *rest, -(-channels // order.multiple) * order.multiple)

    def size(self, shape: Sequence[int]) -> int:
        """Bytes of a tensor of that shape."""
        return prod(self.packed_shape(shape)) * self.storage.itemsize

    def converted(self, array: Array) -> Array:
        """The elements of a network's tensor as the plugin has them, row-major.

        Floats become INT8 by the scale: rounded to nearest, ties to even, saturated.
        """
        if self.type == DataType.BF16:
            if array.dtype.name == "bfloat16":
                return np.ascontiguousarray(array).view(np.uint16)
            return bfloat16_bits(array)
        if self.type == DataType.INT8 and self.scale and array.dtype.kind not in "iub":
            steps = np.rint(np.asarray(array, np.float32) / np.float32(self.scale))
            whole: Array = np.nan_to_num(np.clip(steps, -128, 127)).astype(np.int8)
            return whole
        return np.ascontiguousarray(array, self.storage)

    def restored(self, array: Array, dtype: DType) -> Array:
        """The way back of `converted`, in the network's type."""
        if self.type == DataType.BF16:
            if dtype.name == "bfloat16":
                return array.view(dtype)
            array = (array.astype(np.uint32) << 16).view(np.float32)
        elif self.type == DataType.INT8 and self.scale and dtype.kind not in "iub":
            array = array.astype(np.float32) * np.float32(self.scale)
        return array if array.dtype == dtype else array.astype(dtype)

    def pack(self, array: Array) -> Array:
        """Put the elements of a row-major array (of `storage`) in order, padding zero."""
        if self.is_linear:
            return array
        fresh = np.empty if array.nbytes < _LARGE else _at_line
        packed = fresh(self.packed_shape(array.shape), array.dtype)
        if packed.size:
            pack_channels(address_of(array), address_of(packed), *self._sizes(array.shape, array))
        return packed

    def unpack(self, packed: Array, shape: Shape) -> Array:
        """The way back of `pack`."""
        if self.is_linear:
            return packed
        array = np.empty(shape, packed.dtype)
        if array.size:
            unpack_channels(address_of(packed), address_of(array), *self._sizes(shape, packed))
        return array

    def _sizes(self, shape: Shape, array: Array) -> tuple[int, int, int, int, int, int]:
        """Images, channels, positions, channels of a block, bytes of an element, threads."""
        order = ORDERS[self.format]
        at = len(shape) - order.axes
        channels = shape[at]
        width = order.vector or -(-channels // order.multiple) * order.multiple
        size = array.itemsize
        return prod(shape[:at]), channels, prod(shape[at + 1 :]), width, size, THREADS

    def __str__(self) -> str:
        scale = f" scale {self.scale:.6g}" if self.scale else ""
        return f"{self.type.name} k{self.format.name}{scale}"


def _at_line(shape: Shape, dtype: DType) -> Array:
    """Make an array that begins with a line of the caches: large ones are filled faster."""
    size = prod(shape) * dtype.itemsize
    block = np.empty(size + _LINE, np.uint8)
    start = -address_of(block) % _LINE
    return block[start : start + size].view(dtype).reshape(shape)
