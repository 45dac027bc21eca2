"""From a parser's boxes to a frame's objects: thresholds, clustering, top k.

One native call does all classes of the frames of a batch (`native/src/cluster/`); here are its
parameters, which rows survived and, on request, why each other row did not.

A box with a NaN coordinate is never a neighbour in DBSCAN and is suppressed by any kept box in NMS.
A NaN score passes the thresholds that equality passes and sorts last; the original leaves both
undefined. A DBSCAN cluster whose scores sum to 0 has no weighted mean and counts as below
`dbscan-min-score`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.config.enums import ClusterMode
from headrace.config.values import MAX_CANDIDATES
from headrace.meta.detections import Detections, FloatArray, IntArray

if TYPE_CHECKING:
    from headrace.config import ClassAttrs, ModelConfig


class Reason(IntEnum):
    """Fate of an input row; C++ takes the numbers from here: `scripts/native_numbers.py`."""

    KEPT = 0
    MERGED = 1
    BELOW_PRE_THRESHOLD = 2
    CLASS_OUT_OF_RANGE = 3
    SUPPRESSED = 4
    NOISE = 5
    MIN_SCORE = 6
    AREA_TO_HIT_RATIO = 7
    GROUP_THRESHOLD = 8
    CONTAINED = 9
    POST_THRESHOLD = 10
    TOPK = 11
    MAX_CANDIDATES = 12

    @property
    def key(self) -> str:
        """The config key that a dropped row belongs to, or the name of the rule without a key."""
        return _KEYS.get(self.name) or self.name.lower().replace("_", "-")


_KEYS = {
    "BELOW_PRE_THRESHOLD": "pre-cluster-threshold",
    "CLASS_OUT_OF_RANGE": "num-detected-classes",
    "SUPPRESSED": "nms-iou-threshold",
    "NOISE": "minBoxes",
    "MIN_SCORE": "dbscan-min-score",
    "POST_THRESHOLD": "post-cluster-threshold",
}
_COLUMNS = {  # of `ClusterParams.thresholds` and `.counts`
    Reason.BELOW_PRE_THRESHOLD: ("thresholds", 0),
    Reason.POST_THRESHOLD: ("thresholds", 1),
    Reason.SUPPRESSED: ("thresholds", 2),
    Reason.MIN_SCORE: ("thresholds", 4),
    Reason.TOPK: ("counts", 0),
    Reason.GROUP_THRESHOLD: ("counts", 1),
    Reason.NOISE: ("counts", 2),
}


class ClusterParams(PlainRecord, frozen=True):
    """Mode and per-class parameters as the native call takes them.

    Attributes:
        mode: the algorithm that runs.
        thresholds: (C, 5) float32: pre-cluster, post-cluster, IoU, eps, dbscan-min-score.
        counts: (C, 3) int32: topk (negative: unlimited), group-threshold, minBoxes.
        notices: what was put in place of the configured mode.
        max_candidates: boxes of an item above their thresholds that are clustered.
        rotated: True compares turned rectangles in NMS, where the parser gives angles.
    """

    mode: ClusterMode
    thresholds: FloatArray
    counts: IntArray
    notices: tuple[Finding, ...] = ()
    rotated: bool = False
    max_candidates: int = MAX_CANDIDATES

    def limits(self, reason: Reason) -> Array | None:
        """The (C,) values that rows of this fate were compared with; None where there are none."""
        column = _COLUMNS.get(reason)
        if column is None:
            return None
        values: Array = getattr(self, column[0])[:, column[1]]
        return values

    @classmethod
    def from_attrs(cls, per_class: Sequence[ClassAttrs], mode: ClusterMode) -> ClusterParams:
        """Parameters for exactly this mode; class `i` uses `per_class[i]`."""
        thresholds = [
            (
                a.pre_cluster_threshold,
                a.post_cluster_threshold,
                a.nms_iou_threshold,
                a.eps,
                a.dbscan_min_score,
            )
            for a in per_class
        ]
        counts = [(a.topk, a.group_threshold, a.min_boxes) for a in per_class]
        limits = np.iinfo(np.int32)
        return cls(
            mode,
            np.array(thresholds, np.float32).reshape(-1, 5),
            np.clip(np.array(counts, np.int64).reshape(-1, 3), limits.min, limits.max).astype(
                np.int32
            ),
        )

    @classmethod
    def from_config(cls, cfg: ModelConfig, *, group_rectangles: bool = False) -> ClusterParams:
        """Parameters of a config.

        Args:
            cfg: the detector's configuration.
            group_rectangles: run cluster-mode 0 as it is written, as builds of the original with
                OpenCV do. Stock builds, and this by default, run NMS with topk 20 and IoU 0.5 for
                every class of a network-type 0 in its place, whatever the config says of the two.

        Source: spec B.3.
        """
        mode, overrides = cfg.effective_cluster
        if group_rectangles or mode is cfg.cluster_mode:
            params = cls.from_attrs(cfg.per_class, cfg.cluster_mode)
            return params._with_keys_of(cfg)
        # The keys of ClassAttrs come from one place; their types do not show in the mapping.
        per_class = [replace(a, **overrides) for a in cfg.per_class]  # type: ignore[arg-type]
        params = cls.from_attrs(per_class, mode)
        settings = ", ".join(f"{k.replace('_', '-')}={v:g}" for k, v in overrides.items())
        notice = Finding(
            "cluster-mode-0",
            "warning",
            f"cluster-mode={cfg.cluster_mode} runs as {mode.label} with {settings} for every class,"
            " as in builds of the original without OpenCV; write cluster-mode=2 to choose these"
            " two yourself",
            str(cfg.path),
        )
        return replace(params, notices=(notice,))._with_keys_of(cfg)

    def _with_keys_of(self, cfg: ModelConfig) -> ClusterParams:
        return replace(self, rotated=cfg.rotated_boxes, max_candidates=cfg.max_candidates)


class ClusterTrace(PlainRecord, frozen=True):
    """Fate of each of the N input rows.

    Attributes:
        reason: (N,) uint8, `Reason`. MERGED rows are part of an output, KEPT rows are one.
        by: (N,) int32, for SUPPRESSED the row of the box that did it, for CONTAINED the first row
            of the cluster around it; otherwise -1.
        output: (N,) int32, the output the row became or was merged into; -1 if dropped.
    """

    reason: npt.NDArray[np.uint8]
    by: IntArray
    output: IntArray


class ClusterCut(PlainRecord, frozen=True):
    """Boxes that clustering did not take.

    Attributes:
        counts: (N,) int32, of each item: what is more than `max-candidates`, or turned boxes whose
            comparison takes too long.
        stopped: True if items have no objects because `stop` was asked for.
    """

    counts: IntArray
    stopped: bool


class ClusterResult(PlainRecord, frozen=True):
    """The objects of each item, ascending by class, within a class as spec B.3 orders them.

    Attributes:
        detections: M boxes, in the space of the input.
        starts: (N + 1,) int32, the first of each item, and the end of the last.
        kept: (M,) int32, the input row of each; the first member's for a merged one.
        members: (M,) int32, 0 for an input box, n for one made of a cluster of n.
        trace: what became of every input row, if asked for.
        cut: the boxes that clustering did not take, if there are any.
    """

    detections: Detections
    starts: IntArray
    kept: IntArray
    members: IntArray
    trace: ClusterTrace | None = None
    cut: ClusterCut | None = None

    @property
    def dropped(self) -> IntArray:
        """Input rows that are in no output; `trace.reason` has the reasons.

        Raises:
            ValueError: clustering ran without `trace=True`.
        """
        if self.trace is None:
            raise ValueError("nothing was traced: cluster with trace=True")
        return np.flatnonzero(self.trace.output < 0).astype(np.int32)


class Clusterer:
    """Clustering with the parameters of one config, computed once. Safe to use from any thread.

    Attributes:
        params: what runs.
        notices: what was put in place of the configured mode.
    """

    def __init__(self, cfg: ModelConfig | ClusterParams, *, group_rectangles: bool = False) -> None:
        self.params = (
            cfg
            if isinstance(cfg, ClusterParams)
            else ClusterParams.from_config(cfg, group_rectangles=group_rectangles)
        )
        self.notices = self.params.notices

    def __call__(
        self,
        detections: Detections,
        starts: IntArray | None = None,
        *,
        trace: bool = False,
        tally: npt.NDArray[np.int64] | None = None,
        stop: _native.Stop | None = None,
    ) -> ClusterResult:
        """Cluster the boxes of one frame, or of each of several.

        Args:
            detections: a parser's result, in any order; rows of classes that the config does not
                have are dropped.
            starts: (N + 1,) int32, the first row of each of N items, and the end of the last; None
                is one item.
            trace: also tell what became of every row; of one item only.
            tally: (C + 1, 13) int64, one row for each class and the last for all others, a column
                for each `Reason`: the numbers of boxes are added to it. Of a class that is cut by
                `topk`, or by its post-cluster threshold, the 256 boxes behind the cut are told
                apart as a trace does; what follows counts as cut.
            stop: once it is asked for, items that take longer than half a second have no objects.

        Raises:
            ValueError: `tally` does not have C + 1 rows.
        """
        p = self.params
        if starts is None:
            starts = np.array([0, len(detections)], np.int32)
        if tally is not None and len(tally) != len(p.thresholds) + 1:
            raise ValueError(f"tally has {len(tally)} rows, not {len(p.thresholds) + 1}")
        clusters = _native.cluster(
            detections.boxes,
            detections.scores,
            detections.class_ids,
            detections.angles if p.rotated else None,
            starts,
            p.thresholds,
            p.counts,
            int(p.mode),
            trace,
            tally,
            p.max_candidates,
            stop,
        )
        rows, members = clusters.rows, clusters.members
        clustered = Detections.unchecked(
            clusters.boxes,
            clusters.scores,
            clusters.class_ids,
            masks=_own_masks(detections, rows, members),
            angles=_own_angles(detections, rows, members),
            space=detections.space,
            keypoints=_own_keypoints(detections, rows),
            raw_masks=None if (raw := detections.raw_masks) is None else [raw[i] for i in rows],
        )
        trace_of = ClusterTrace(clusters.reason, clusters.by, clusters.object) if trace else None
        cut = None if clusters.cut is None else ClusterCut(clusters.cut, clusters.stopped)
        return ClusterResult(clustered, clusters.starts, rows, members, trace_of, cut)


def _own_keypoints(detections: Detections, rows: IntArray) -> FloatArray | None:
    # A merged box has those of its first member: a mean of joints is no pose.
    return None if detections.keypoints is None else detections.keypoints[rows]


def _own_angles(detections: Detections, rows: IntArray, members: Array) -> FloatArray | None:
    # A merged box has no angle of its own. Source: spec B.5.
    if detections.angles is None:
        return None
    return np.where(members > 0, np.float32(0), detections.angles[rows])


def _own_masks(detections: Detections, rows: IntArray, members: Array) -> list[FloatArray] | None:
    if detections.masks is None:
        return None
    none = np.empty((0, 0), np.float32)
    return [
        none if n else detections.masks[row]
        for row, n in zip(rows.tolist(), members.tolist(), strict=True)
    ]
