"""Outputs of a batch that stayed on the GPU, for decoders that need a few of their rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace._core.gpu.cuda import Stream, entered
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, DType
from headrace.meta.detections import FloatArray

if TYPE_CHECKING:
    from headrace.infer.parsers.boxes import TableHits


class FindHits(Protocol):
    """Finds the candidates of tables on the GPU that reach the threshold of their best class.

    Attributes:
        gpu: number of the GPU.
    """

    gpu: int

    def __call__(self, tables: DeviceTables, first: int, thresholds: FloatArray) -> TableHits:
        """Find them as `table_hits` does; `first` is the column of the first class."""


class DeviceTables(PlainRecord, frozen=True):
    """A tensor of B items on the GPU, with the methods of an array that decoders of tables use.

    Attributes:
        pointer: device address of the first number; nothing that fills it is under way.
        shape: (B, ...).
        strides: numbers from one entry of each axis to the next.
        dtype: float32 or float16.
        owner: keeps the memory.
        find_hits: see `FindHits`.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    owner: Any
    find_hits: FindHits

    @classmethod
    def of(cls, tensor: Any, find_hits: FindHits) -> DeviceTables:
        """All of a C-contiguous tensor on the GPU that has `pointer`, `shape` and `dtype`."""
        shape = tuple(tensor.shape)
        return cls(tensor.pointer, shape, _steps(shape), tensor.dtype, tensor, find_hits)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def rows(self, count: int) -> DeviceTables:
        """The first `count` items."""
        return replace(self, shape=(count, *self.shape[1:]))

    def reshape(self, shape: Sequence[int]) -> DeviceTables:
        """The same numbers in C order in axes of other lengths."""
        self._require_contiguous()
        return replace(self, shape=tuple(shape), strides=_steps(shape))

    def transpose(self, *axes: int) -> DeviceTables:
        """The same with its axes in another order."""
        shape, strides = ([values[axis] for axis in axes] for values in (self.shape, self.strides))
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def __getitem__(self, item: int) -> Array:
        """A copy of one item on the host.

        Raises:
            EngineError: the GPU failed.
        """
        if not -len(self) <= item < len(self):
            raise IndexError(f"item {item} of {len(self)}")
        size = prod(self.shape[1:]) * self.dtype.itemsize
        return self._copy(self.pointer + item % len(self) * size, self.shape[1:])

    def numpy(self) -> Array:
        """A copy of all items on the host.

        Raises:
            EngineError: the GPU failed.
        """
        return self._copy(self.pointer, self.shape)

    def _copy(self, pointer: int, shape: tuple[int, ...]) -> Array:
        self._require_contiguous()
        out = np.empty(shape, self.dtype)
        with entered(self.find_hits.gpu):
            stream = Stream(apart=True)  # complete: there is nothing to wait for
            stream.download(pointer, out.ctypes.data, out.nbytes)
            stream.wait()
        return out

    def _require_contiguous(self) -> None:
        if self.strides != _steps(self.shape):
            raise ValueError("transposed tables are neither reshaped nor copied")


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
