"""Counts of boxes, objects and items dropped between the engine's outputs and a frame.

Each part of an inferencer counts its own: the detector's boxes (`BoxTally`), the objects that a
secondary model is offered (`ObjectTally`), a classifier's items (`ItemTally`). They count while
the work is done and word nothing; `headrace.infer.losses` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import field

from headrace._core.plain_record import PlainRecord
from headrace.infer.attach import DropReason
from headrace.infer.cluster import Reason
from headrace.meta import Detections
from headrace.meta.detections import IntArray

if TYPE_CHECKING:
    from headrace.config import ClassAttrs
    from headrace.infer.cluster import ClusterParams
    from headrace.infer.geometry import ScaleTransform
    from headrace.meta import Objects

HALVINGS = 5
"""Outputs without a box are looked at down to 1/32 of the thresholds."""

BoolArray = npt.NDArray[np.bool_]

# Which dropped box came nearest to passing: the side of it that is measured, and whether the
# largest or the smallest is nearest.
_MEASURES = {
    DropReason.DETECTED_MIN_W: (2, max),
    DropReason.DETECTED_MIN_H: (3, max),
    DropReason.DETECTED_MAX_W: (2, min),
    DropReason.DETECTED_MAX_H: (3, min),
}
MEASURED = frozenset(map(int, _MEASURES))
"""The reasons of boxes that `BoxTally.measure` measures."""


class BoxTally:
    """Fates of a detector's boxes, by class. One thread at a time.

    Args:
        params: of the clustering that runs.
        per_class: settings of each of C classes.
        labels: names of the classes.

    Attributes:
        parser: where the parser comes from.
        visible: it is a built-in one: scores below the thresholds can be looked at.
        items: items whose outputs were parsed; `left` boxes of theirs came out of clustering and
            `kept` became objects.
        clustered: (C + 1, 12) int64, boxes by class (the last row: classes out of range) and
            `Reason`.
        attached: (C + 1, 11) int64, the same by `DropReason`.
        nearest: for the size filters, the width or height in frame pixels of the dropped box that
            came nearest to passing.
        best: score and class of the best box below its pre-cluster threshold, of the items that
            were looked at; None if there was none.
        best_of: the same score for each class that has a higher threshold than others, and no box;
            of `searched` items.
        empty: items without a box of the parser.
        probed: those of them whose outputs were looked at below the thresholds.
    """

    def __init__(
        self, params: ClusterParams, per_class: Sequence[ClassAttrs], labels: Sequence[str]
    ) -> None:
        self.params = params
        self.per_class = per_class
        self.labels = labels
        self.parser, self.visible = "", False
        thresholds = params.thresholds[:, 0]
        higher = (thresholds > thresholds.min(initial=np.inf)) & (thresholds < 1)
        self._higher: list[int] = np.flatnonzero(higher).tolist()
        self.clustered = np.zeros((len(per_class) + 1, len(Reason)), np.int64)
        self.attached = np.zeros((len(per_class) + 1, len(DropReason)), np.int64)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.clustered[:] = 0
        self.attached[:] = 0
        self.nearest: dict[DropReason, float] = {}
        self.best: tuple[float, int] | None = None
        self.best_of: dict[int, float] = {}
        self.items = self.left = self.kept = self.empty = self.probed = self.searched = 0

    def saw(self, below: Detections) -> None:
        """Take note of boxes below their thresholds; remembers the best."""
        scores = np.where(np.isnan(below.scores), -np.inf, below.scores)
        if not len(scores):
            return
        index = int(scores.argmax())
        score = float(scores[index])
        if self.best is None or score > self.best[0]:
            self.best = score, int(below.class_ids[index])

    def missing(self) -> list[int]:
        """Classes that have a higher pre-cluster threshold than others, and no box so far.

        A threshold of 1 and more hides a class on purpose.
        """
        return [c for c in self._higher if not self.clustered[c].any()]

    def saw_missing(self, classes: Sequence[int], detections: Detections) -> None:
        """Take note of boxes of missing classes below their thresholds."""
        self.searched += 1
        for class_id in classes:
            scores = detections.scores[detections.class_ids == class_id]
            if len(scores):
                self.best_of[class_id] = max(float(scores.max()), self.best_of.get(class_id, 0.0))

    def measure(
        self,
        detections: Detections,
        rows: IntArray,
        reasons: npt.NDArray[np.uint8],
        transform: ScaleTransform,
    ) -> None:
        """Measure the boxes of an item that the size filters dropped.

        Args:
            detections: boxes that were to be attached, in network space.
            rows: (K,) those dropped, with the `DropReason` of each.
            transform: how the item was scaled.
        """
        for number in set(reasons.tolist()):
            reason = DropReason(number)
            if measure := _MEASURES.get(reason):
                side, nearest = measure
                ratio = transform.ratio_x if side == 2 else transform.ratio_y
                size = nearest(detections.boxes[rows[reasons == number], side].tolist()) / ratio
                self.nearest[reason] = nearest(size, self.nearest.get(reason, size))


class ObjectTally:
    """Objects that a secondary model did not infer on, by the first key that left each out.

    Attributes:
        frames, objects: frames and objects looked at.
        limits: key -> width or height in frame pixels that just passes.
        skipped: key -> (component, class) -> objects. `gie-unique-id` stands for objects of the
            model itself, `crop` for those with nothing to crop, `tracker` for those without a
            tracking id where results only go to the memory.
        nearest: key of a size -> width and height of the object that came nearest to passing, in
            frame pixels.
        labels: names of the classes of each component.
    """

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.frames = self.objects = 0
        self.skipped: dict[str, Counter[tuple[int, int]]] = {}
        self.nearest: dict[str, tuple[float, float]] = {}
        self.labels: dict[int, Sequence[str]] = {}

    def skip(self, objects: Objects, tests: Mapping[str, BoolArray]) -> None:
        """Count the objects of a frame that do not pass.

        Args:
            objects: of the frame, N.
            tests: key -> (N,) whether each object passes; the first failed one counts.
        """
        self.labels |= objects.labels
        left = np.ones(len(objects), np.bool_)
        for key, passes in tests.items():
            out = left & ~passes
            left &= passes
            if not out.any():
                continue
            components = objects.component_ids[out].tolist()
            ids = zip(components, objects.class_ids[out].tolist(), strict=True)
            self.skipped.setdefault(key, Counter()).update(ids)
            if key in self.limits:
                self._measure(key, objects.rects[out, 2:].tolist())

    def _measure(self, key: str, sizes: list[list[float]]) -> None:
        side = int(key.endswith("height"))
        known = self.nearest.get(key)
        candidates = [(w, h) for w, h in sizes] + ([known] if known else [])
        choose = max if "-min-" in key else min
        self.nearest[key] = choose(candidates, key=lambda size: size[side])


class ItemTally(PlainRecord):
    """Items of a classifier that got no attribute.

    Attributes:
        items: items that were parsed; `labelled` of these have a label.
        below: class name -> times it was the best of an output, but not above the threshold.
        best: the best score among these.
        unnamed: items with an attribute, but without a text: no label.
        silent: items of which a custom parser said nothing.
    """

    below: Counter[str] = field(default_factory=Counter)
    best: float | None = None
    unnamed: int = 0
    silent: int = 0
    items: int = 0
    labelled: int = 0

    def lost(self, names: Sequence[str | None], values: list[int], scores: list[float]) -> None:
        """Count the winners of an output that are not above the threshold."""
        self.below.update((names[v] or f"class {v}") for v in values)
        self.best = max(scores if self.best is None else [*scores, self.best])

    def came(self, results: Sequence[object | None]) -> None:
        """Count the results of items, None for each without a label."""
        self.items += len(results)
        self.labelled += len(results) - results.count(None)

    def clear(self) -> None:
        """Begin anew."""
        self.below.clear()
        self.best = None
        self.unnamed = self.silent = self.items = self.labelled = 0


class Tally(PlainRecord):
    """Everything that one inferencer left out since its run began.

    Attributes:
        boxes: of each model that ran: one may have replaced another.
        objects, items: see their classes.
        frames: frames that reached the model.
        discarded: frames that `stabilize-buffer-count` dropped; `waited` those that `interval` did.
        maps: class maps; `blank_maps` of them have no class anywhere.
        tensors: prepared tensors for this model.
        other_tensors: components that prepared tensors were for, none of them this one.
    """

    boxes: list[BoxTally] = field(default_factory=list)
    objects: ObjectTally = field(default_factory=ObjectTally)
    items: ItemTally = field(default_factory=ItemTally)
    frames: int = 0
    discarded: int = 0
    waited: int = 0
    maps: int = 0
    blank_maps: int = 0
    tensors: int = 0
    other_tensors: set[int] = field(default_factory=set)

    def clear(self) -> None:
        """Begin anew: another run begins."""
        parts: list[Any] = [*self.boxes, self.objects, self.items]
        for part in parts:
            part.clear()
        self.frames = self.discarded = self.waited = self.maps = self.blank_maps = self.tensors = 0
        self.other_tensors.clear()
