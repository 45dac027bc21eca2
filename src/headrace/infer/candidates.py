"""Candidates of a detector on one item: every box with the test that decided on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from headrace.infer.attach import Attacher, AttachResult, DropReason
from headrace.infer.cluster import Clusterer, ClusterResult, Reason
from headrace.meta import Detections
from headrace.meta.detections import FloatArray, IntArray, overlaps

_THRESHOLD = (Reason.BELOW_PRE_THRESHOLD, Reason.CLASS_OUT_OF_RANGE)
_SIZES = {  # the side that is compared, and the column of its limit in `AttachParams.filters`
    DropReason.DETECTED_MIN_W: (2, 0),
    DropReason.DETECTED_MIN_H: (3, 1),
    DropReason.DETECTED_MAX_W: (2, 2),
    DropReason.DETECTED_MAX_H: (3, 3),
}
_TOPS = (DropReason.ROI_TOP_OFFSET, DropReason.FRAME_TOP)
_BOTTOMS = (DropReason.ROI_BOTTOM_OFFSET, DropReason.FRAME_BOTTOM)


class FateStage(StrEnum):
    """The step that decided on a candidate, in the order of the steps."""

    THRESHOLD = "threshold"
    CLUSTER = "cluster"
    TOPK = "topk"
    FILTER = "filter"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Fate:
    """The decision on one candidate.

    Attributes:
        stage: the step.
        key: the config key that it belongs to, as `nms-iou-threshold`, or the name of a rule
            without one: `edge`, `area-to-hit-ratio`, `contained`; None for an object.
        value: the number that was compared: a score, an IoU, a rank from 1, pixels of the frame,
            or the class id; None if none was.
        limit: the number it was compared with.
        by: the candidate that suppressed or contains this one, or -1.
        object: the object of the frame that it became or was merged into, or -1.
    """

    stage: FateStage
    key: str | None = None
    value: float | None = None
    limit: float | None = None
    by: int = -1
    object: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One pass of N candidates through clustering and filters.

    Attributes:
        reasons: (N,) uint8, `Reason` of clustering.
        drops: (N,) uint8, `DropReason` of the filters; 0 for a candidate that did not reach them.
        by: (N,) int32, see `ClusterTrace.by`.
        outputs: (N,) int32, the output of clustering that each became or was merged into, or -1.
        objects: (N,) int32, index among the attached objects of this pass, or -1.
    """

    reasons: npt.NDArray[np.uint8]
    drops: npt.NDArray[np.uint8]
    by: IntArray
    outputs: IntArray
    objects: IntArray

    @classmethod
    def of(cls, clustered: ClusterResult, attached: AttachResult) -> Decisions:
        """Join the results of both steps, which belong together.

        Raises:
            ValueError: clustering ran without `trace=True`.
        """
        trace = clustered.trace
        if trace is None:
            raise ValueError("nothing was traced: cluster with trace=True")
        drop = np.zeros(len(clustered.detections) + 1, np.uint8)  # the last: no output
        drop[attached.dropped] = attached.reasons
        object_index = np.full(len(drop), -1, np.int32)
        object_index[attached.kept] = np.arange(len(attached.kept), dtype=np.int32)
        return cls(
            trace.reason, drop[trace.output], trace.by, trace.output, object_index[trace.output]
        )

    def extended(self, hidden: int) -> Decisions:
        """The same with as many more candidates that are below their pre-cluster threshold."""
        below = np.full(hidden, Reason.BELOW_PRE_THRESHOLD, np.uint8)
        none = np.full(hidden, -1, np.int32)
        return Decisions(
            np.concatenate([self.reasons, below]),
            np.concatenate([self.drops, np.zeros(hidden, np.uint8)]),
            np.concatenate([self.by, none]),
            np.concatenate([self.outputs, none]),
            np.concatenate([self.objects, none]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Boxes of one item: the parser's, then those that its threshold hides.

    Attributes:
        detections: N boxes in network space.
        rects: (N, 4) float32, the same in frame pixels, neither cut nor moved.
        parsed: the first so many are the parser's.
        actual: the decisions of this run; boxes behind the first `parsed` are below the threshold.
        lowered: the decisions if no pre-cluster threshold were above any candidate.
        first: index of the first attached object in the frame.
        origin: left and top of the parent object; filters compare places relative to it.
        height: of the frame in pixels.
    """

    detections: Detections
    rects: FloatArray
    parsed: int
    actual: Decisions
    lowered: Decisions
    first: int
    origin: tuple[float, float]
    height: int
    _clusterer: Clusterer
    _attacher: Attacher

    def __len__(self) -> int:
        return len(self.detections)

    def stages(self, *, lowered: bool = False) -> npt.NDArray[np.int8]:
        """The step that decided on each candidate.

        Args:
            lowered: as if no pre-cluster threshold were above any candidate.

        Returns:
            (N,) int8, indices in `FateStage`.
        """
        decided = self.lowered if lowered else self.actual
        codes = np.full(len(self), list(FateStage).index(FateStage.CLUSTER), np.int8)
        codes[np.isin(decided.reasons, _THRESHOLD)] = list(FateStage).index(FateStage.THRESHOLD)
        codes[decided.reasons == Reason.TOPK] = list(FateStage).index(FateStage.TOPK)
        codes[decided.drops > 0] = list(FateStage).index(FateStage.FILTER)
        codes[decided.objects >= 0] = list(FateStage).index(FateStage.OBJECT)
        return codes

    def fate(self, row: int, *, lowered: bool = False) -> Fate:
        """The decision on one candidate, with its figures.

        Args:
            row: index of the candidate.
            lowered: as if no pre-cluster threshold were above any candidate; an object of it is
                counted as the next one of the frame.
        """
        decided = self.lowered if lowered else self.actual
        if decided.objects[row] >= 0:
            return Fate(FateStage.OBJECT, object=self.first + int(decided.objects[row]))
        if drop := DropReason(int(decided.drops[row])):
            value, limit = self._filtered(row, drop)
            return Fate(FateStage.FILTER, drop.test, value, limit)
        reason, by = Reason(int(decided.reasons[row])), int(decided.by[row])
        stage = FateStage.CLUSTER
        if reason in _THRESHOLD:
            stage = FateStage.THRESHOLD
        elif reason is Reason.TOPK:
            stage = FateStage.TOPK
        return Fate(stage, reason.key, *self._clustered(row, reason, by, decided), by)

    def _clustered(
        self, row: int, reason: Reason, by: int, decided: Decisions
    ) -> tuple[float | None, float | None]:
        params, class_id = self._clusterer.params, int(self.detections.class_ids[row])
        if reason is Reason.CLASS_OUT_OF_RANGE:
            return class_id, len(params.thresholds)
        limits = params.limits(reason)
        limit = None if limits is None else _decimal(limits[class_id])
        value: float | None = None
        if reason in (Reason.BELOW_PRE_THRESHOLD, Reason.POST_THRESHOLD):
            value = float(self.detections.scores[row])
        elif reason is Reason.SUPPRESSED and by >= 0:
            boxes = self.detections.boxes
            value = float(overlaps(boxes[[row]], boxes[[by]])[0, 0])
        elif reason is Reason.TOPK:
            own = self.detections.class_ids == class_id
            kept = own & np.isin(decided.reasons, (Reason.KEPT, Reason.TOPK))
            scores = self.detections.scores
            value = 1 + int((kept & (scores > scores[row])).sum())
        return value, limit

    def _filtered(self, row: int, drop: DropReason) -> tuple[float | None, float | None]:
        class_id = int(self.detections.class_ids[row])
        params = self._attacher.params
        top, height = float(self.rects[row, 1]) - self.origin[1], float(self.rects[row, 3])
        top = max(0.0, top)
        if drop in _SIZES:
            side, column = _SIZES[drop]
            return float(self.rects[row, side]), float(params.filters[class_id, column])
        if drop in _TOPS:
            return top, float(params.filters[class_id, 4])
        if drop in _BOTTOMS:
            return top + height, float(self.height - int(params.roi_bottom[class_id]))
        return (class_id if drop is DropReason.FILTER_OUT_CLASS_IDS else None), None

    def at(self, left: float, top: float, width: float = 0, height: float = 0) -> IntArray:
        """Candidates at a place of the frame, the best first.

        Args:
            left, top, width, height: a box in frame pixels; without a size it is a point.

        Returns:
            Rows of candidates that cover the point, those of higher score first; or that overlap
            the box, in the order of score times IoU.
        """
        scores = np.nan_to_num(self.detections.scores, nan=0.0)
        if width > 0 and height > 0:
            box = np.array([(left, top, width, height)], np.float32)
            weight = scores * overlaps(self.rects, box)[:, 0]
            rows = np.flatnonzero(weight > 0)
        else:
            x, y, w, h = self.rects.T
            weight = scores
            rows = np.flatnonzero((x <= left) & (left < x + w) & (y <= top) & (top < y + h))
        order: IntArray = rows[np.argsort(-weight[rows], kind="stable")].astype(np.int32)
        return order


def _decimal(value: np.generic) -> float:
    """A number of the config as it was written: 0.2, not 0.20000000298."""
    return float(str(value))
