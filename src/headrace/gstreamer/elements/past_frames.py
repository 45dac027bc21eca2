"""Boxes of tracked objects in frames that did not show them: before the first report, in gaps.

A tracker reports an object some frames after a detector first saw it, and loses it for some. The
boxes of these frames come late, as past frames, when the object is reported. The original gives
those that its tracker kept in the shadow; here they are the detector's own from before the first
report, and for a gap boxes on the straight way across it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.gstreamer.pyds.tracking import (
    NvDsTargetMiscDataFrame,
    NvDsTargetMiscDataObject,
    NvDsTargetMiscDataStream,
)

_SAME_IOU = 0.3
_KEPT = 30
"""Frames that are searched for boxes from before the first report."""
_FORGET = 300
"""Frames after which an object that is gone is forgotten."""

Rect = tuple[float, float, float, float]
"""left, top, width, height in pixels of the frame."""


class Tracked(NamedTuple):
    """An object that the tracker reports."""

    number: int
    class_id: int
    label: str
    rect: Rect
    confidence: float


@dataclass
class _Known:
    first: int
    frame: int
    rect: Rect
    confidence: float


@dataclass
class _Source:
    known: dict[int, _Known] = field(default_factory=dict)
    untracked: deque[tuple[int, Sequence[Rect]]] = field(
        default_factory=lambda: deque(maxlen=_KEPT)
    )


class PastFrames:
    """Collects the past frames of all sources."""

    def __init__(self) -> None:
        self._sources: dict[int, _Source] = {}

    def forget(self, source_id: int) -> None:
        """Drop all of a source that ended."""
        self._sources.pop(source_id, None)

    def update(
        self, source_id: int, frame: int, tracked: Sequence[Tracked], untracked: Sequence[Rect]
    ) -> NvDsTargetMiscDataStream | None:
        """Take the objects of a frame.

        Args:
            source_id: of the frame.
            frame: its number.
            tracked: objects with numbers.
            untracked: boxes that the detector gave and the tracker does not report yet.

        Returns:
            Past frames of objects that are reported now; None without any.
        """
        source = self._sources.setdefault(source_id, _Source())
        past = []
        for one in tracked:
            known = source.known.get(one.number)
            boxes = _before(source, one, frame) if known is None else _across(known, one, frame)
            first = known.first if known is not None else boxes[0][0] if boxes else frame
            source.known[one.number] = _Known(first, frame, one.rect, one.confidence)
            if boxes:
                past.append(_object(one, first, boxes))
        source.untracked.append((frame, untracked))
        for number in [n for n, k in source.known.items() if frame - k.frame > _FORGET]:
            del source.known[number]
        if not past:
            return None
        stream = NvDsTargetMiscDataStream(past)
        stream.streamID = stream.surfaceStreamID = source_id
        return stream


def recorded(
    ids: Sequence[int], rows: Sequence[Sequence[float]], labels: Mapping[int, str], source_id: int
) -> dict[int, NvDsTargetMiscDataStream]:
    """Records that a library of the user gives, by their kind, a place in `MISC_KINDS`.

    Args:
        ids: of the target of each row.
        rows: of `headrace.custom.nvmot.records.misc_rows`.
        labels: by class.
        source_id: of the frame.
    """
    kinds: dict[int, dict[int, tuple[int, list[NvDsTargetMiscDataFrame]]]] = {}
    for number, row in zip(ids, rows, strict=True):
        kind, class_id, frame, *rect, confidence, age, _ = row
        past = NvDsTargetMiscDataFrame()
        past.frameNum, past.confidence, past.age = int(frame), confidence, int(age)
        box = past.tBbox
        box.left, box.top, box.width, box.height = rect
        targets = kinds.setdefault(int(kind), {})
        targets.setdefault(number, (int(class_id), []))[1].append(past)
    streams = {}
    for kind, found in kinds.items():
        objects = []
        for number, (class_id, frames) in found.items():
            obj = NvDsTargetMiscDataObject(frames)
            obj.uniqueId, obj.classId = number, class_id
            obj.objLabel = labels.get(class_id, "")
            objects.append(obj)
        streams[kind] = NvDsTargetMiscDataStream(objects)
        streams[kind].streamID = streams[kind].surfaceStreamID = source_id
    return streams


def _before(source: _Source, one: Tracked, frame: int) -> list[tuple[int, Rect, float]]:
    """The detector's boxes of an object from before its first report, oldest first."""
    boxes: list[tuple[int, Rect, float]] = []
    rect = one.rect
    for number, rects in reversed(source.untracked):
        best = max(rects, key=lambda other: _iou(rect, other), default=None)
        if number != frame - len(boxes) - 1 or best is None or _iou(rect, best) < _SAME_IOU:
            break
        boxes.append((number, best, one.confidence))
        rect = best
    return boxes[::-1]


def _across(known: _Known, one: Tracked, frame: int) -> list[tuple[int, Rect, float]]:
    """Boxes on the straight way across a gap."""
    length = frame - known.frame
    boxes = []
    for step in range(1, length):
        part = step / length
        mixed = [a + (b - a) * part for a, b in zip(known.rect, one.rect, strict=True)]
        rect = mixed[0], mixed[1], mixed[2], mixed[3]
        boxes.append((known.frame + step, rect, min(known.confidence, one.confidence)))
    return boxes


def _iou(a: Rect, b: Rect) -> float:
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(0.0, across) * max(0.0, down)
    whole = a[2] * a[3] + b[2] * b[3] - both
    return both / whole if whole > 0 else 0.0


def _object(
    one: Tracked, first: int, boxes: Sequence[tuple[int, Rect, float]]
) -> NvDsTargetMiscDataObject:
    frames = []
    for number, rect, confidence in boxes:
        past = NvDsTargetMiscDataFrame()
        past.frameNum, past.confidence, past.age = number, confidence, number - first
        box = past.tBbox
        box.left, box.top, box.width, box.height = rect
        frames.append(past)
    obj = NvDsTargetMiscDataObject(frames)
    obj.uniqueId, obj.classId, obj.objLabel = one.number, one.class_id, one.label
    return obj
