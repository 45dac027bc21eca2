"""Batches: frames of one or more buffers with their metadata, on their way from stage to stage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import field

from headrace._core.plain_record import PlainRecord
from headrace.media.frame import Frame
from headrace.meta import FrameMeta, InputTensor


def frame_meta(frame: Frame) -> FrameMeta:
    """Metadata of a frame about which nothing is known yet."""
    return FrameMeta(
        frame.source,
        frame.source_id,
        frame.frame,
        frame.pts_ns,
        frame.width,
        frame.height,
        wall_ns=frame.wall_ns,
        fps=frame.fps,
        live=frame.live,
    )


class Batch(PlainRecord):
    """Frames in order, with their metadata, from any number of sources.

    A buffer is what a muxer would push at once: at most one frame of each source. One batch may
    hold several whole buffers of files, so that the engine's batch is filled.

    Attributes:
        frames: images; those of one source are in the order of their numbers.
        metas: what is known about each frame, parallel to `frames`; stages and probes change these.
        buffers: number of the buffer each frame belongs to, parallel to `frames`; never falls,
            within a batch and from batch to batch. `interval` counts buffers. Source: spec D.1.
        tensors: inputs that the caller prepared (`input-tensor-from-meta`). Source: spec A.6.
        ended: ids of the sources whose last frame is in this batch or an earlier one, each
            listed once in a run: stages forget what they know of them after this batch. The last
            batch of a run may have nothing but this.
        came_at: when the oldest of its frames was read, a time of `time.monotonic`; infinite where
            nobody noted it.

    Raises:
        ValueError: `frames`, `metas` and `buffers` are not of one length.
    """

    frames: list[Frame]
    metas: list[FrameMeta]
    buffers: list[int]
    tensors: list[InputTensor] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    came_at: float = float("inf")

    def __post_init__(self) -> None:
        if not len(self.frames) == len(self.metas) == len(self.buffers):
            raise ValueError(
                f"{len(self.frames)} frames, {len(self.metas)} metas and {len(self.buffers)}"
                " buffer numbers; a batch needs as many of each"
            )

    @classmethod
    def of(cls, frames: Sequence[Frame], *, buffer: int = 0) -> Batch:
        """A batch of frames about which nothing is known yet, all in one buffer."""
        return cls(list(frames), [frame_meta(f) for f in frames], [buffer] * len(frames))

    def first(self, count: int) -> Batch:
        """The first frames of one that is not finished."""
        return Batch(self.frames[:count], self.metas[:count], self.buffers[:count])

    def drop(self, indices: Collection[int]) -> None:
        """Take frames out, with their metadata and the tensors that show any of them.

        Args:
            indices: in the batch. Other tensors follow their frames.
        """
        kept = [i for i in range(len(self)) if i not in indices]
        self.tensors[:] = [
            t for t in self.tensors if not any(roi.frame_index in indices for roi in t.rois)
        ]
        regions = {id(roi): roi for t in self.tensors for roi in t.rois}  # tensors may share them
        moved = {old: new for new, old in enumerate(kept)}
        for roi in regions.values():
            roi.frame_index = moved.get(roi.frame_index, roi.frame_index)
        columns: tuple[list[Any], ...] = (self.frames, self.metas, self.buffers)
        for values in columns:
            values[:] = [values[i] for i in kept]

    def by_buffer(self) -> Iterator[tuple[int, list[int]]]:
        """The number of each buffer, in order, with the places of its frames in the batch."""
        start = 0
        for end in range(1, len(self.buffers) + 1):
            if end == len(self.buffers) or self.buffers[end] != self.buffers[start]:
                yield self.buffers[start], list(range(start, end))
                start = end

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[tuple[Frame, FrameMeta]]:
        """Each frame with its metadata."""
        return zip(self.frames, self.metas, strict=True)

    def __repr__(self) -> str:
        sources = len({f.source_id for f in self.frames})
        ended = f", ended {self.ended}" if self.ended else ""
        return f"Batch({len(self)} frames of {sources} sources{ended})"
