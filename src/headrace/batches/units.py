"""Units of a batch: the work that one worker does at once, and the result that it hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.media.sources.video_structure import VideoCut, VideoSpan

Outcome = Literal["done", "failed", "split", "doubtful", "storage", "lost"]
Value = str | int | float | bool | None
"""A value of a user's column, as JSON has it: times are texts of ISO 8601."""
Content = Path | bytes
"""A result file that waits for its commit: where it was written, or its bytes."""


@dataclass(frozen=True, slots=True)
class BatchUnit:
    """One input, or one span of a video.

    Attributes:
        input: a path or URL as the user gave it, or as a folder or pattern gave it.
        span: frames of the video; None is the whole input.
        whole: True if the video must not be split.
        sha256, size_bytes: of the input where they are known already.
        values: of the user's columns, in the order of `Work.columns`; empty: all are null.
    """

    input: str
    span: VideoSpan | None = None
    whole: bool = False
    sha256: str = ""
    size_bytes: int = 0
    values: tuple[Value, ...] = ()

    @property
    def id(self) -> str:
        """16 hexadecimal digits that name the unit and its files."""
        return unit_id(self.input, None if self.span is None else self.span.start.frame)


def unit_id(name: str, first: int | None = None) -> str:
    """The id of an input, or of its span from frame `first` on: 64 bits of a SHA-256."""
    text = f"{name}\0{'' if first is None else first}"
    return sha256_of(text.encode("utf-8", "surrogateescape"))[:16]


@dataclass(slots=True)
class UnitResult:
    """The outcome of one attempt at a unit, before it is committed.

    Attributes:
        unit: the unit.
        outcome: `done`; `failed` with `error`; `split` into `spans`, nothing else done yet;
            `doubtful`: a span did not fit, the video has to be read whole; `storage`: the results
            could not be written, which is no fault of the unit; `lost`: its worker ended.
        sha256, size_bytes: of the input.
        frames, objects: counted.
        seconds: wall-clock time of the attempt.
        error: text for the user.
        warnings: of source and results.
        notices: warnings of the models that this worker has not handed back before.
        files: kind of output -> its content.
        spans: for `split`.
        begun: False if the worker was lost before the unit's turn came.
        final: True if another attempt would fail the same way.
    """

    unit: BatchUnit
    outcome: Outcome
    sha256: str = ""
    size_bytes: int = 0
    frames: int = 0
    objects: int = 0
    seconds: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()
    files: dict[str, Content] = field(default_factory=dict)
    spans: tuple[VideoSpan, ...] = ()
    begun: bool = True
    final: bool = False


def packed(span: VideoSpan) -> list[int]:
    """A span as numbers: frame and pts of its start, frames, frame and pts of its end if any."""
    start, end = span.start, span.end
    tail = [] if end is None else [end.frame, end.pts]
    return [start.frame, start.pts, span.frames, *tail]


def unpacked(numbers: list[int]) -> VideoSpan:
    """The span that `packed` gave."""
    end = VideoCut(*numbers[3:5]) if len(numbers) > 3 else None
    return VideoSpan(VideoCut(*numbers[:2]), end, numbers[2])
