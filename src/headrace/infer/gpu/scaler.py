"""`GpuScaler`: pieces of frames to a network input, in one launch of the kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from ctypes import c_uint64
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core import _native
from headrace._core.gpu.cuda import Memory, Stream, current_gpu, entered
from headrace._core.gpu.cuda_kernels import CudaEvent, Kernel, PinnedPool, upload
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace._core.types import DType
from headrace.infer.gpu.items import (
    ITEM,
    Records,
    frame_template,
    has_chroma,
    place_components,
    settings_of,
)

if TYPE_CHECKING:
    from headrace.infer.items import FramePiece
    from headrace.infer.preprocess import Preprocessor
    from headrace.media.device_planes import DevicePlanes
    from headrace.media.frame import Frame
    from headrace.meta.detections import IntArray

_BLOCK = (32, 8, 1)
_ALIGNED = 256  # bytes, of planes that are copied to the GPU
_MOST_KINDS = 64  # of whole frames whose tables stay on the GPU


class GpuScaler:
    """Scale all pieces of a batch at once on the thread's GPU, as `Preprocessor.write` one by one.

    Images in the GPU's memory are read where they are, others are copied there first. The
    results are those of the CPU, bit for bit. Thread-safe: each thread has a queue of its own.

    Args:
        pre: the settings.
        half: True for FP16 items, each value rounded to nearest, even.

    Raises:
        EngineError: the driver is too old, or there is no memory for the mean image.
    """

    def __init__(self, pre: Preprocessor, *, half: bool = False) -> None:
        self._kernel = Kernel("preprocess")
        self._pre = pre
        self._half = half
        self._mean = None if pre.mean_planes is None else CudaTensor.of(pre.mean_planes)
        self._kinds: dict[Any, tuple[Records, CudaTensor]] = {}
        self._lock = threading.Lock()
        self._gpu = current_gpu()
        self._lanes = threading.local()

    def __call__(self, pieces: Sequence[FramePiece], rows: int) -> CudaTensor:
        """Scale all pieces, one after the other.

        Args:
            pieces: of any frames.
            rows: items of the tensor, at least as many as the pieces have; what is left is zeros.

        Returns:
            (rows, *shape), complete; valid until the next call in this thread.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        with entered(self._gpu):
            lane = self._lane()
            items = np.zeros(rows, ITEM)
            self._describe(pieces, items, lane)
            out = lane.tensor((rows, *self._pre.shape), np.dtype("f2" if self._half else "f4"))
            mean = 0 if self._mean is None else self._mean.pointer
            settings = settings_of(self._pre, out.pointer, mean, half=self._half)
            lane.run(self._kernel, settings, items, (self._pre.width, self._pre.height))
        return out

    def _lane(self) -> _Lane:
        lane = getattr(self._lanes, "lane", None)
        if lane is None:
            lane = self._lanes.lane = _Lane()
        return lane

    def _describe(self, pieces: Sequence[FramePiece], items: Records, lane: _Lane) -> None:
        """Fill the records of all items; queue the copies that they need."""
        groups = [(looks, list(some)) for looks, some in groupby(pieces, _looks)]
        tables = [None if looks[0] else self._tables(some) for looks, some in groups]
        words = lane.begin(pieces, items.nbytes, [t[0] for t in tables if t is not None])
        at = 0
        for (looks, some), table in zip(groups, tables, strict=True):
            frame, wide = some[0].frame, looks[-1]
            counts = [len(piece.src) for piece in some]
            part = items[at : at + sum(counts)]
            if table is None:
                part[:], used = self._kind(some[0], looks)
                lane.keep(used)
            else:
                part[:] = frame_template(frame.format, frame.color, wide=wide)
                part["dst"] = np.concatenate([piece.dst for piece in some])
                part["axes"], part["tables"] = table[1], next(words)
            planes = [lane.planes_of(piece.frame) for piece in some]
            place_components(part["component"], frame.format, planes, counts, wide=wide)
            at += len(part)

    def _tables(self, pieces: Sequence[FramePiece]) -> tuple[IntArray, IntArray]:
        """The samplers' tables of pieces of frames of one size and format.

        Returns:
            Words, and of N items (N, 2, 2, 2) places in them, by axis and plane.
        """
        frame = pieces[0].frame
        src = np.concatenate([piece.src for piece in pieces])
        offsets = np.empty((len(src), 2, 2, 2), np.int32)
        words = _native.sampling_tables(
            src=src, dst=np.concatenate([piece.dst for piece in pieces]),
            frame_size=(frame.width, frame.height), filter=self._pre.filter,
            chroma=has_chroma(frame.format), places=offsets,
        )  # fmt: skip
        return words, offsets.transpose(0, 2, 1, 3)

    def _kind(self, piece: FramePiece, looks: tuple[Any, ...]) -> tuple[Records, CudaTensor]:
        """The record of whole frames that look alike, and its tables, which are copied once."""
        with self._lock:
            if looks not in self._kinds:
                frame = piece.frame
                words, offsets = self._tables([piece])
                tables = CudaTensor.of(words)
                item = frame_template(frame.format, frame.color, wide=looks[-1])
                item["dst"], item["axes"], item["tables"] = piece.dst, offsets, tables.pointer
                if len(self._kinds) == _MOST_KINDS:
                    self._kinds.pop(next(iter(self._kinds)))
                self._kinds[looks] = item, tables
            return self._kinds[looks]


def _looks(piece: FramePiece) -> tuple[Any, ...]:
    """Return the properties that decide a piece's record, all but its addresses and its place."""
    frame, surfaces = piece.frame, piece.frame.on_device
    wide = surfaces is not None and surfaces.wide
    return piece.whole, frame.width, frame.height, frame.format, frame.color, wide


class _Lane:
    """One thread's queue, with the memory that it uses again and again."""

    def __init__(self) -> None:
        self._stream, self._event = Stream(apart=True), CudaEvent()
        self._pinned = PinnedPool()
        self._staging, self._staged = np.empty(0, np.uint8), Memory(1)
        self._frames = Memory(1)
        self._out: dict[Any, CudaTensor] = {}
        self._used = self._frames_used = 0
        self._kept: list[object] = []

    def begin(
        self, pieces: Sequence[FramePiece], record_bytes: int, tables: Sequence[IntArray]
    ) -> Iterator[int]:
        """Make room for the records, tables and frames of a run; stage the tables.

        Returns:
            The address of each table on the GPU.
        """
        self._kept, self._frames_used = [], 0
        needed = sum(self._copied_bytes(p.frame) for p in pieces)
        if needed > self._frames.size_bytes:
            self._frames = Memory(needed)
        offsets = list(
            accumulate((_aligned(t.nbytes) for t in tables), initial=_aligned(record_bytes))
        )
        self._used = offsets[-1]
        if self._used > len(self._staging):
            self._staging = self._pinned.take(np.dtype(np.uint8), (2 * self._used,))
            self._staged = Memory(2 * self._used)
        for offset, words in zip(offsets, tables, strict=False):
            self._staging[offset : offset + words.nbytes] = words.view(np.uint8)
        return (self._staged.pointer + offset for offset in offsets)

    def keep(self, used: object) -> None:
        """Keep something alive until the run is over."""
        self._kept.append(used)

    def tensor(self, shape: tuple[int, ...], dtype: DType) -> CudaTensor:
        """Memory for the items, the same at each call."""
        key = (shape, dtype)
        if key not in self._out:
            self._out.clear()
            self._out[key] = CudaTensor(shape, dtype)
        return self._out[key]

    def planes_of(self, frame: Frame) -> list[tuple[int, int]]:
        """Addresses and pitches of a frame's planes; a copy is queued if they are elsewhere."""
        planes, addresses = frame.on_device, []
        if planes is not None and planes.gpu == self._stream.gpu:
            return planes.rows
        if planes is not None:
            return self._from_other(planes)
        for plane in frame.planes:
            upload(self._stream, self._frames.pointer + self._frames_used, plane)
            self.keep(plane)
            addresses.append(self._placed(plane))
        return addresses

    def _from_other(self, planes: DevicePlanes) -> list[tuple[int, int]]:
        """Queue copies of planes on another GPU, behind the work of its decoder."""
        with entered(planes.gpu):
            event = CudaEvent()
            event.follow(self._stream)
        self.keep(event)
        addresses = []
        for plane in planes.surfaces:
            target, size = self._frames.pointer + self._frames_used, plane.pitch * plane.shape[0]
            self._stream.copy_from(planes.gpu, plane.address, size, target)
            addresses.append(self._placed(plane))
        return addresses

    def _placed(self, plane: Any) -> tuple[int, int]:
        """Take the next place for a plane's copy: its address and pitch."""
        address = self._frames.pointer + self._frames_used
        self._frames_used += _plane_bytes(plane)
        return address, plane.strides[0]

    def _copied_bytes(self, frame: Frame) -> int:
        planes = frame.on_device
        if planes is None:
            return sum(map(_plane_bytes, frame.planes))
        return 0 if planes.gpu == self._stream.gpu else sum(map(_plane_bytes, planes.surfaces))

    def run(
        self,
        kernel: Kernel,
        settings: Any,
        items: Records,
        size: tuple[int, int],
    ) -> None:
        """Copy the records, launch the kernel behind the decoder's work, and wait."""
        stream, base = self._stream, self._staged.pointer
        self._staging[: items.nbytes] = items.view(np.uint8)
        stream.upload(self._staging.ctypes.data, self._used, base)
        self._event.follow(stream)
        grid = (-(-size[0] // _BLOCK[0]), -(-size[1] // _BLOCK[1]), len(items))
        kernel.launch(stream, grid, _BLOCK, (settings, c_uint64(base)))
        stream.wait()
        self._kept = []


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _plane_bytes(plane: Any) -> int:
    return _aligned(plane.shape[0] * plane.strides[0])
