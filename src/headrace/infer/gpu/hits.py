"""`HitFinder`: the candidates of tables on the GPU that reach a threshold, found there."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_float, c_int32, c_int64, c_uint64
from typing import Any

import numpy as np

from headrace._core import _native
from headrace._core.gpu.cuda import Memory, Stream, current_gpu, entered
from headrace._core.gpu.cuda_kernels import Kernel, PinnedPool
from headrace.infer.parsers.boxes import TableHits, room_for_hits
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.meta.detections import FloatArray

_BLOCK = 128
_HEADER_BYTES = 16  # the count of hits, before the hits
_FIRST = 4096  # hits that are copied before their number is known
_HIT = np.dtype([("place", "u4"), ("class_id", "i4"), ("score", "f4"), ("box", "f4", (4,))])
"""`Hit` of native/gpu/hits_kernel.cu."""


class _Tables(ctypes.Structure):
    """`Tables` of native/gpu/hits_kernel.cu."""

    _fields_ = (
        *((name, c_uint64) for name in ("data", "thresholds", "found", "hits")),
        *((name, c_int64) for name in ("item", "row", "column")),
        *((name, c_int32) for name in ("candidates", "classes", "first", "known", "half")),
        ("lowest", c_float),
    )


class HitFinder:
    """Looks at all candidates of a batch on the thread's GPU; copies their hits alone to the host.

    They are those of `table_hits` for a copy of the tables, bit for bit, in the same order.
    Thread-safe: each thread has a queue and memory of its own.

    Attributes:
        gpu: number of the GPU.

    Raises:
        EngineError: the driver is too old.
    """

    def __init__(self) -> None:
        self._kernel = Kernel("hits")
        self.gpu = current_gpu()
        self._lanes = threading.local()

    def __call__(self, tables: DeviceTables, first: int, thresholds: FloatArray) -> TableHits:
        """Find the hits; see `FindHits`.

        Args:
            tables: (B, N, first + C).
            first: 4, or 5 where column 4 is the objectness, which is multiplied with the scores.
            thresholds: (K,) float32, lowest score of each class.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        items, count, width = tables.shape
        hits = np.empty((0, _HIT.itemsize), np.uint8)
        starts = np.zeros(items + 1, np.int32)
        if items and count and len(thresholds) and width > first:
            with entered(self.gpu):
                lane = getattr(self._lanes, "lane", None)
                if lane is None:
                    lane = self._lanes.lane = _Lane()
                hits = lane.run(self._kernel, tables, first, np.asarray(thresholds, np.float32))
        planes, rows, class_ids, scores = room_for_hits(len(hits))
        hit_count = len(hits)
        if hit_count:
            _native.ordered_hits(hits, count, planes, rows, class_ids, scores, starts)
        return TableHits(
            planes, rows[:hit_count], class_ids[:hit_count], scores[:hit_count], starts
        )


class _Lane:
    """One thread's queue, with the memory that it uses again and again."""

    def __init__(self) -> None:
        self._stream = Stream(apart=True)
        self._pinned = PinnedPool()
        self._zeros = self._pinned.take(np.dtype(np.uint8), (_HEADER_BYTES,))
        self._zeros[:] = 0
        self._found = Memory(0)
        self._thresholds, self._known = Memory(0), np.empty(0, np.float32)

    def run(self, kernel: Kernel, tables: DeviceTables, first: int, thresholds: FloatArray) -> Any:
        """Return the hits in any order, a row of bytes for each `_HIT`."""
        items, count, width = tables.shape
        room = items * count
        if self._found.size_bytes < _HEADER_BYTES + room * _HIT.itemsize:
            self._found = Memory(_HEADER_BYTES + room * _HIT.itemsize)
        stream, base = self._stream, self._found.pointer
        if not np.array_equal(thresholds, self._known, equal_nan=True):
            if self._thresholds.size_bytes < thresholds.nbytes:
                self._thresholds = Memory(thresholds.nbytes)
            self._known = self._pinned.take(thresholds.dtype, thresholds.shape)
            self._known[:] = thresholds
            stream.upload(self._known.ctypes.data, self._known.nbytes, self._thresholds.pointer)
        stream.upload(self._zeros.ctypes.data, _HEADER_BYTES, base)
        record = _Tables(
            tables.pointer, self._thresholds.pointer, base, base + _HEADER_BYTES, *tables.strides,
            count, width - first, first, len(thresholds), tables.dtype == np.float16,
            np.fmin.reduce(thresholds),
        )  # fmt: skip
        kernel.launch(stream, (-(-count // _BLOCK), items, 1), (_BLOCK, 1, 1), (record,))
        copied = min(room, _FIRST)
        seen = self._download(_HEADER_BYTES + copied * _HIT.itemsize)
        hit_count = int(seen[:4].view(np.uint32)[0])
        if hit_count > copied:
            seen = self._download(_HEADER_BYTES + hit_count * _HIT.itemsize)
        return seen[_HEADER_BYTES:].reshape(-1, _HIT.itemsize)[:hit_count]

    def _download(self, size_bytes: int) -> Any:
        out = self._pinned.take(np.dtype(np.uint8), (size_bytes,))
        self._stream.download(self._found.pointer, out.ctypes.data, size_bytes)
        self._stream.wait()
        return out
