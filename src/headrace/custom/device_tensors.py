"""Copies of tensors in the GPU's memory, for parsers that work there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_uint8

import numpy as np

from headrace._core.gpu.cuda import Memory, Stream, current_gpu, entered
from headrace._core.gpu.cuda_kernels import upload
from headrace._core.types import Array


class DeviceTensors:
    """Copies tensors to the thread's GPU, into memory that is kept. One call at a time."""

    def __init__(self) -> None:
        self._gpu = current_gpu()
        self._stream: Stream | None = None
        self._kept: list[Memory] = []

    @contextmanager
    def lent(self, tensors: Sequence[Array]) -> Iterator[list[Array]]:
        """Copy tensors, and wait for the copies; for a block the GPU is that of the thread.

        Args:
            tensors: C-contiguous arrays in main memory.

        Yields:
            Arrays of the same shapes and types at addresses of the GPU. The host must not read
            them. They are overwritten by the next call.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        with entered(self._gpu):
            if self._stream is None:
                self._stream = Stream()
            for index, tensor in enumerate(tensors):
                if index == len(self._kept):
                    self._kept.append(Memory(tensor.nbytes))
                elif self._kept[index].size_bytes < tensor.nbytes:
                    self._kept[index] = Memory(tensor.nbytes)
                if tensor.nbytes:
                    upload(self._stream, self._kept[index].pointer, tensor)
            self._stream.wait()
            yield [_at(memory, like) for memory, like in zip(self._kept, tensors, strict=False)]


def _at(memory: Memory, like: Array) -> Array:
    there = np.ctypeslib.as_array((c_uint8 * max(1, like.nbytes)).from_address(memory.pointer))
    return there[: like.nbytes].view(like.dtype).reshape(like.shape)
