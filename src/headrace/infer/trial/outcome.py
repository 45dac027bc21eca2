"""Results of a trial: readings of frames, with the figures that separate right from wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import field

from headrace._core.findings import Data
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.infer.items import ItemSteps
    from headrace.meta import Detections, NetworkInfo

Kind = Literal["boxes", "labels", "maps"]

CERTAIN = 0.5
"""Lowest best score of boxes that prove a reading right."""

_MANY = 60  # more boxes of a frame prove nothing
_SAME = 0.5  # IoU of the boxes of one object in two frames
_STEADY = 0.6
_MAP = 4096  # pixels of a class map that are compared


class FrameReading(PlainRecord, frozen=True, eq=False):
    """Results of one frame, after thresholds and clustering.

    Attributes:
        boxes: how many boxes; of a classifier labels, of a class map classes.
        objects: how many of the boxes passed the filters and became objects.
        total: sum of the scores; `best` the highest. Of a class map: the share of its pixels that
            have a class, and the highest probability.
        edges: share of boxes that touch an edge of the network input.
        sound: boxes are neither too many nor huge nor tiny, scores are probabilities.
        corner: share of boxes that touch the left and the top edge alone.
        area: median of the boxes' areas, as a share of the network input.
        rects: (N, 4) float32 left, top, width, height of the boxes in network pixels; `class_ids`
            (N,) theirs, or those of the labels. A class map in `rects` as (1, P), thinned.
        names: of the labels.
    """

    boxes: int = 0
    objects: int = 0
    total: float = 0.0
    best: float = 0.0
    edges: float = 0.0
    sound: bool = False
    corner: float = 0.0
    area: float = 0.0
    rects: FloatArray = field(default_factory=lambda: np.empty((0, 4), np.float32))
    class_ids: IntArray = field(default_factory=lambda: np.empty(0, np.int32))
    names: tuple[str, ...] = ()


def box_reading(kept: Detections, network: NetworkInfo, objects: int) -> FrameReading:
    """Measure boxes.

    Args:
        kept: what clustering left, in network pixels.
        network: size of the network input.
        objects: how many of them passed the filters.
    """
    if not len(kept):
        return FrameReading()
    left, top, w, h = kept.boxes.T
    wide, high = float(network.width), float(network.height)
    ends = (left + w >= wide - 0.5) | (top + h >= high - 0.5)
    edges = (left <= 0.5) | (top <= 0.5) | ends
    corner = (left <= 0.5) & (top <= 0.5) & ~ends
    odd = (w * h > 0.9 * wide * high) | (w < 3) | (h < 3) | (left >= wide) | (top >= high)
    best = float(kept.scores.max())
    sound = len(kept) <= _MANY and float(odd.mean()) < 0.2 and best <= 1.001
    sound &= bool((kept.scores != 1).any())  # all 1: class numbers that are read as scores
    return FrameReading(
        len(kept),
        objects,
        float(np.sort(kept.scores)[-_MANY:].sum()),
        best,
        float(edges.mean()),
        sound,
        float(corner.mean()),
        float(np.median(w * h)) / (wide * high),
        kept.boxes.copy(),
        kept.class_ids.copy(),
    )


def reading_of(step: ItemSteps, cfg: ModelConfig, network: NetworkInfo) -> FrameReading:
    """Measure the results of one item, of any kind of network."""
    if step.clustered is not None:
        kept = step.clustered.detections
        if hidden := cfg.filter_out_class_ids:
            kept = kept.select(~np.isin(kept.class_ids, hidden))
        return box_reading(kept, network, 0 if step.attached is None else len(step.attached.kept))
    if step.classified is not None:
        labels = step.classified.labels
        scores = np.array([one.confidence for one in labels], np.float32)
        best = float(scores.max(initial=0.0))
        return FrameReading(
            len(labels), len(labels), float(scores.sum()), best, sound=0 < best <= 1.001,
            class_ids=np.array([one.value for one in labels], np.int32),
            names=tuple(one.label or f"class {one.value}" for one in labels),
        )  # fmt: skip
    if step.segmentation is not None:
        flat = step.segmentation.class_map.reshape(-1)
        values = step.segmentation.probabilities
        best = 0.0 if values is None or not values.size else float(np.nanmax(values))
        classes = np.unique(flat[flat >= 0])
        thin = flat[:: max(1, len(flat) // _MAP)].astype(np.float32)
        return FrameReading(
            len(classes), len(classes), float((flat >= 0).mean()) if flat.size else 0.0, best,
            sound=0 < len(classes) <= _MANY, rects=thin[None], class_ids=classes.astype(np.int32),
        )  # fmt: skip
    return FrameReading()


class Outcome(PlainRecord, frozen=True, eq=False):
    """Results of a change on the frames at hand.

    Attributes:
        change: the keys and their values; empty: the config as it is.
        kind: of results.
        readings: one for each frame that it was tried on.
        steady: of neighbouring frames, the share of boxes (labels, pixels) that are there in both;
            None where no frames follow each other.
        refused: why it cannot be: the config or the parser refuses; None if it ran.
        untried: why it was not tried; None if it was.
    """

    change: Mapping[str, str | None]
    kind: Kind = "boxes"
    readings: tuple[FrameReading, ...] = ()
    steady: float | None = None
    refused: str | None = None
    untried: str | None = None

    @property
    def boxes(self) -> int:
        """All boxes of all frames; labels or classes of other networks."""
        return sum(reading.boxes for reading in self.readings)

    @property
    def objects(self) -> int:
        """Those among them that became objects."""
        return sum(reading.objects for reading in self.readings)

    @property
    def frames(self) -> int:
        """Frames in which something was found."""
        return sum(reading.boxes > 0 for reading in self.readings)

    @property
    def best(self) -> float:
        """The highest score."""
        return max((reading.best for reading in self.readings), default=0.0)

    @property
    def total(self) -> float:
        """The sum of all scores."""
        return sum(reading.total for reading in self.readings)

    @property
    def figures(self) -> tuple[float, ...]:
        """Numbers that are the same for the same results."""
        places = sum(float(reading.rects.sum()) for reading in self.readings)
        return self.boxes, round(self.total, 3), round(places, 1)

    @property
    def sound(self) -> bool:
        """Whether two frames, or the only one, have sound results, some of them certain."""
        least = CERTAIN if self.kind == "boxes" else 0.0
        good = [r for r in self.readings if r.boxes and r.sound and r.best >= least]
        return bool(self.readings) and len(good) >= min(2, len(self.readings))

    @property
    def data(self) -> Data:
        """The figures as values of JSON."""
        if self.untried is not None or self.refused is not None:
            return {"refused": self.refused, "untried": self.untried}
        return {
            "kind": self.kind,
            "frames": len(self.readings),
            "found_in": self.frames,
            self.kind: self.boxes,
            "best": round(self.best, 4),
            "steady": None if self.steady is None else round(self.steady, 3),
            "sound": self.sound,
        }

    def __str__(self) -> str:
        if self.untried is not None:
            return f"not tried: {self.untried}"
        if self.refused is not None:
            return f"refused: {self.refused}"
        frames = counted(len(self.readings), "frame")
        if not self.boxes:
            none = {"boxes": "no boxes", "labels": "no label", "maps": "no class"}[self.kind]
            return f"{none} in {frames}"
        where = f"{self.frames} of {frames}" if self.frames < len(self.readings) else frames
        text = f"{self._amount} in {where}"
        if self.kind != "maps":
            text += f", scores up to {self.best:.2f}"
        if self.objects < self.boxes / 2:
            text += f", {self.objects or 'none'} of which pass the filters"
        return text + (", steady" if (self.steady or 0.0) >= _STEADY else "")

    @property
    def _amount(self) -> str:
        if self.kind == "boxes":
            return counted(self.boxes, "box")
        if self.kind == "labels":
            names = Counter(name for reading in self.readings for name in reading.names)
            most = ", ".join(f"{name} {n}" for name, n in names.most_common(3))
            return f"{counted(self.boxes, 'label')} ({most})"
        shares = [reading.total for reading in self.readings]
        classes = {c for reading in self.readings for c in reading.class_ids.tolist()}
        return f"{counted(len(classes), 'class')} on {sum(shares) / len(shares):.0%} of the pixels"


def steadiness(
    readings: Sequence[FrameReading], pairs: Sequence[tuple[int, int]], kind: Kind
) -> float | None:
    """The mean share of results that both frames of a pair have; None where no pair has any."""
    shares = []
    for i, j in pairs:
        if j >= len(readings):
            continue
        one, other = readings[i], readings[j]
        if not one.boxes and not other.boxes:
            continue
        if kind == "maps" and one.rects.shape == other.rects.shape:
            shares.append(float((one.rects == other.rects).mean()))
        elif kind == "labels":
            shares.append(float(one.names == other.names))
        else:
            shares.append(2 * _matches(one, other) / (one.boxes + other.boxes))
    return sum(shares) / len(shares) if shares else None


def _matches(one: FrameReading, other: FrameReading) -> int:
    """Boxes of one class that overlap in both, each with its best partner only."""
    if not one.boxes or not other.boxes:
        return 0
    a, b = one.rects[:_MANY], other.rects[:_MANY]
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, :2] + a[:, None, 2:], b[None, :, :2] + b[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    areas = np.prod(a[:, 2:], axis=1)[:, None] + np.prod(b[:, 2:], axis=1) - shared
    iou = np.where(areas > 0, shared / np.maximum(areas, 1e-9), 0.0)
    iou[one.class_ids[:_MANY, None] != other.class_ids[None, :_MANY]] = 0.0
    mutual = (iou.argmax(axis=1)[iou.argmax(axis=0)] == np.arange(iou.shape[1])) & (
        iou.max(axis=0) >= _SAME
    )
    return int(mutual.sum())
