"""Frames for trackers, and how well the tracks fit the truth."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from headrace.media import Frame, PixelFormat
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, FrameMeta, Space
from headrace.pipeline.track import Tracker
from headrace.pipeline.track.library import LIBRARY_TRACKERS

TRUTH = Path(__file__).parents[3] / "examples" / "conveyor" / "truth.json"
WIDTH, HEIGHT = 640, 384

has_library = importlib.util.find_spec("trackers") is not None
needs_library = pytest.mark.skipif(not has_library, reason="the extra tracking is not installed")
# One at every push: they share all but the matching, which is the library's.
LIBRARY = [
    pytest.param(name, marks=[needs_library, *[pytest.mark.slow] * (name != "bytetrack")])
    for name in LIBRARY_TRACKERS
]
ALL = ["iou", *LIBRARY]

IMAGE = Frame.from_array(np.zeros((2, 2), np.uint8), PixelFormat.GRAY)  # no tracker looks at it


def meta(
    number: int,
    boxes: npt.ArrayLike = (),
    *,
    classes: npt.ArrayLike | None = None,
    scores: npt.ArrayLike | None = None,
    source_id: int = 0,
    component: int = 1,
    inferred: bool = True,
) -> FrameMeta:
    """The metadata of a frame; boxes are left, top, width, height."""
    m = FrameMeta(f"s{source_id}", source_id, number, 0, WIDTH, HEIGHT, inferred=inferred)
    boxes = np.asarray(boxes, np.float32).reshape(-1, 4)
    n = len(boxes)
    m.objects.append(
        Detections(
            boxes,
            np.full(n, 0.9) if scores is None else scores,
            np.zeros(n) if classes is None else classes,
            space=Space.FRAME,
        ),
        component,
        labels=["box", "bag", "tube"],
    )
    return m


def ids(m: FrameMeta) -> list[int | None]:
    """The id of each object in their order, None for untracked ones."""
    return [None if i == UNTRACKED_OBJECT_ID else i for i in m.objects.object_ids.tolist()]


def track(tracker: Tracker, metas: Iterable[FrameMeta]) -> list[list[int | None]]:
    """The ids of every frame after the tracker saw it."""
    result = []
    for m in metas:
        tracker.update(IMAGE, m)
        result.append(ids(m))
    return result


@dataclass
class Truth:
    """What is in one frame of the conveyor video."""

    boxes: list[list[float]] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    parcels: list[int] = field(default_factory=list)


@cache
def video() -> tuple[Truth, ...]:
    """The parcels of each of the 250 frames, those of which enough can be seen."""
    document = json.loads(TRUTH.read_text())
    frames = [Truth() for _ in document["images"]]
    for a in document["annotations"]:
        if a["visible"] >= 0.25:
            truth = frames[a["image_id"] - 1]
            truth.boxes.append(a["bbox"])
            truth.classes.append(a["category_id"] - 1)
            truth.parcels.append(a["track_id"])
    return tuple(frames)


def detections(truth: Truth, rng: np.random.Generator, *, missed: float, jitter: float) -> Truth:
    """What a detector would make of it: boxes a little off, some not found, none in order."""
    kept = rng.permutation(len(truth.boxes))
    kept = kept[rng.random(len(kept)) >= missed]
    boxes = np.reshape(truth.boxes, (-1, 4))[kept] + rng.normal(0, jitter, (len(kept), 4))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 2)
    return Truth(
        boxes.tolist(),
        [truth.classes[i] for i in kept.tolist()],
        [truth.parcels[i] for i in kept.tolist()],
    )


@dataclass
class Score:
    """How well tracks fit the truth (CLEAR MOT and identity metrics)."""

    mota: float
    idf1: float
    switches: int


def score(truths: Sequence[Truth], metas: Sequence[FrameMeta]) -> Score:
    """Tracked objects against the truth, matched frame by frame at an IoU of one half."""
    from scipy.optimize import linear_sum_assignment  # a second of each worker's start

    switches = false = missed = total = hypotheses = 0
    together: Counter[tuple[int, int]] = Counter()
    last: dict[int, int] = {}
    for truth, m in zip(truths, metas, strict=True):
        tracked = m.objects.object_ids != UNTRACKED_OBJECT_ID
        names = m.objects.object_ids[tracked].tolist()
        overlap = iou(np.reshape(truth.boxes, (-1, 4)), m.objects.rects[tracked])
        pairs = [p for p in zip(*linear_sum_assignment(-overlap), strict=True) if overlap[p] >= 0.5]
        total, hypotheses = total + len(truth.parcels), hypotheses + len(names)
        missed, false = missed + len(truth.parcels) - len(pairs), false + len(names) - len(pairs)
        for row, column in pairs:
            parcel, name = truth.parcels[row], names[column]
            switches += last.setdefault(parcel, name) != name
            last[parcel] = name
            together[parcel, name] += 1
    rows: dict[int, int] = defaultdict(lambda: len(rows))
    columns: dict[int, int] = defaultdict(lambda: len(columns))
    table = np.zeros((len(together), len(together)))
    for (parcel, name), count in together.items():
        table[rows[parcel], columns[name]] = count
    right = table[linear_sum_assignment(-table)].sum()
    return Score(
        1 - (false + missed + switches) / total, float(2 * right / (total + hypotheses)), switches
    )


def iou(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """(len(a), len(b)) overlaps of boxes left, top, width, height."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    shared = np.clip(high - low, 0, None).prod(axis=2, dtype=np.float64)
    return shared / (a[:, 2:].prod(axis=1)[:, None] + b[:, 2:].prod(axis=1)[None] - shared)
