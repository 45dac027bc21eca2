"""Boxes that a detector's filters dropped, by filter and class, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.config import ClassAttrs
from headrace.config.enums import NetworkMode
from headrace.infer.attach import EDGE, DropReason
from headrace.infer.cluster import Reason
from headrace.infer.parsers.labels import class_name
from headrace.infer.tally.counts import HALVINGS

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.cluster import ClusterCut
    from headrace.infer.tally.counts import BoxTally
    from headrace.meta import FrameMeta
    from headrace.meta.detections import IntArray

_CLUSTER = {reason.key: reason for reason in Reason if reason > Reason.MERGED}
CLUSTER_FILTERS = tuple(_CLUSTER)
"""Names of what drops boxes before they are attached."""

# These take most boxes of every sound run: candidates below the threshold, and doubles.
_USUAL = ("pre-cluster-threshold", "nms-iou-threshold", "contained")
_MOST_REASONS = 3
_MOST_CLASSES = 4
_FAINT = 0.25  # scores below this part of the threshold are noise


def dropped_boxes(tally: BoxTally) -> dict[str, Counter[str]]:
    """Boxes by filter and class."""
    counters: dict[str, Counter[str]] = {}

    def add(key: str, class_id: int, number: int) -> None:
        counters.setdefault(key, Counter())[_label(tally, class_id)] += number

    for name, reason in _CLUSTER.items():
        for class_id in np.flatnonzero(tally.clustered[:, reason]).tolist():
            add(name, class_id, int(tally.clustered[class_id, reason]))
    for drop in DropReason:
        for class_id in np.flatnonzero(tally.attached[:, drop]).tolist() if drop else ():
            add(drop.test, class_id, int(tally.attached[class_id, drop]))
    return counters


def _label(tally: BoxTally, class_id: int) -> str:
    if class_id == len(tally.per_class):
        return "other classes"
    return class_name(tally.labels, class_id)


def named(counts: Counter[str]) -> str:
    """`car 100, person 20`, most frequent first."""
    parts = [f"{name} {number}" for name, number in counts.most_common(_MOST_CLASSES)]
    more = len(counts) - len(parts)
    return ", ".join(parts) + (f", {more} more" if more else "")


def cut_boxes(
    cfg: ModelConfig, parser: str, cut: ClusterCut, starts: IntArray, metas: Sequence[FrameMeta]
) -> Finding:
    """The warning that clustering did not take all boxes: the first image of which it left some.

    Args:
        cfg: of the detector.
        parser: where the boxes come from.
        cut: the boxes left out of each of N items.
        starts: (N + 1,) the first box of each item, and the end of the last.
        metas: of the items.
    """
    k = int(np.flatnonzero(cut.counts)[0])
    left, boxes = int(cut.counts[k]), int(starts[k + 1] - starts[k])
    image = f"frame {metas[k].frame} of {metas[k].source}"
    text = f"{parser} returned {boxes:,} boxes for {image}: "
    if cut.stopped:
        text += "the run was stopped before they were clustered, the image has no objects"
        return Finding("clustering-stopped", "warning", text, str(cfg.path))
    text += f"clustering left out {left:,} above their thresholds, "
    if boxes - left < cfg.max_candidates:
        text += "as the comparison of so many turned boxes takes too long"
    else:
        text += f"all but the best {cfg.max_candidates:,} (max-candidates)"
    text += "; a higher pre-cluster-threshold, or a topk of the parser's own, leaves fewer"
    where = cfg.origin("max_candidates").where or str(cfg.path)
    return Finding("candidates-cut", "warning", text, where)


def box_reasons(cfg: ModelConfig, tally: BoxTally, cause: Finding | None = None) -> Iterable[str]:
    """Why a detector has no objects, or lost more boxes to filters than it kept."""
    parsed = int(tally.clustered.sum())
    if not tally.items:
        return
    if not parsed:
        yield _nothing_parsed(cfg, tally, cause)
        return
    dropped = dropped_boxes(tally)
    unusual = {key: counts for key, counts in dropped.items() if key not in _USUAL}
    if tally.kept >= sum(c.total() for c in unusual.values()) and tally.kept:
        yield from _class_reasons(cfg, tally, dropped)
        return
    attach = {*(d.key for d in DropReason), EDGE}

    def weight(key: str) -> tuple[bool, bool, int]:
        return key not in attach, key in _USUAL, -dropped[key].total()

    keys = sorted(unusual if unusual else dropped, key=weight)
    for key in keys[:_MOST_REASONS]:
        yield _box_reason(cfg, tally, key, dropped[key], tally.left if key in attach else parsed)


def _class_reasons(
    cfg: ModelConfig, tally: BoxTally, dropped: Mapping[str, Counter[str]]
) -> Iterable[str]:
    """Why a class has no objects, though others do: a value of its own took them all."""
    for class_id, best in tally.best_of.items():
        if not tally.clustered[class_id].any():
            name = f"class {class_id} ({_label(tally, class_id)})"
            setting = _setting(tally, "pre-cluster-threshold", [class_id])
            yield (
                f"{setting} of {name} is above every score of it: the best is {best:.3g} "
                f"({tally.searched} of {tally.items} outputs looked at)"
            )
    alive = tally.clustered[:, [Reason.KEPT, Reason.MERGED]].sum(axis=1)
    alive -= tally.attached.sum(axis=1)
    for class_id in np.flatnonzero((alive <= 0)[:-1] & tally.clustered[:-1].any(axis=1)).tolist():
        label = _label(tally, class_id)
        for key, counts in dropped.items():
            values = _values(tally, key)
            own = values is not None and (values != values[class_id]).any()
            if key == "pre-cluster-threshold" and values is not None:
                own = own and values[class_id] < 1  # from 1 on it hides the class on purpose
            if own and label in counts:
                lost = Counter({label: counts[label]})
                yield _box_reason(cfg, tally, key, lost, int(tally.clustered[class_id].sum()))


def _nothing_parsed(cfg: ModelConfig, tally: BoxTally, cause: Finding | None) -> str:
    if cause is not None:
        return f"{cause:brief}"
    setting = _setting(tally, "pre-cluster-threshold", range(len(tally.per_class)))
    if not tally.visible:
        return (
            f"the parser ({tally.parser}) returned no boxes for {tally.items} outputs: it gets "
            f"{setting} and may drop boxes itself, which cannot be counted here"
        )
    looked = f"{tally.probed} of {tally.empty} outputs looked at"
    lowest = float(tally.params.thresholds[:, 0].min(initial=np.inf))
    if 1 <= lowest < np.inf and (tally.best is None or tally.best[0] < 1):
        seen = "" if tally.best is None else f"; the best is {tally.best[0]:.3g} ({looked})"
        return f"no box can pass {setting}: scores end at 1{seen}"
    unseen = "the model sees nothing, or its input is prepared differently (net-scale-factor, "
    unseen += "offsets, model-color-format)"
    if cfg.network_mode in (NetworkMode.INT8, NetworkMode.BEST):
        unseen += f", or INT8 (network-mode={int(cfg.network_mode)}) has lost what it finds"
    if tally.best is None:
        text = f"no box at 1/{2**HALVINGS} of {setting} either ({looked}): {unseen}"
        return f"{text}, or its boxes are no pixels of the network input"
    score, class_id = tally.best
    best = f"the best is {score:.3g} ({_label(tally, class_id)}; {looked})"
    if score < _FAINT * float(tally.params.thresholds[:, 0].min(initial=1)):
        return f"no score comes near {setting}, {best}: {unseen}"
    return f"{setting} is above every score: {best}"


def _box_reason(
    cfg: ModelConfig, tally: BoxTally, key: str, counts: Counter[str], total: int
) -> str:
    number = counts.total()
    classes = [c for c in range(len(tally.per_class)) if _label(tally, c) in counts]
    share = f"all {number}" if number == total else f"{number} of {total}"
    boxes = f"{share} boxes ({named(counts)})"
    if key == EDGE:
        outside = int(tally.attached[:, DropReason.OUTSIDE].sum())
        if outside == number:
            return f"the frame's edge: {boxes} lie outside of the frame"
        return (
            f"the frame's edge: {boxes} reach beyond the frame and were dropped; profile=modern or "
            "crop-objects-to-roi-boundary=1 cuts them there"
        )
    if key == "filter-out-class-ids":
        setting = f"{key}={';'.join(map(str, cfg.filter_out_class_ids))}"
    elif key == "area-to-hit-ratio":
        setting = "clustering by DBSCAN (cluster-mode=1), which drops large boxes of few members,"
    else:
        setting = _setting(tally, key, classes)
    text = f"{setting} dropped {boxes}"
    drop = next((d for d in DropReason if d.key == key), None)
    if drop in tally.nearest:
        side = "wide" if key.endswith("w") else "high"
        text += f"; the nearest is {tally.nearest[drop]:.0f} pixels {side}"
    if key == "pre-cluster-threshold" and tally.best is not None:
        text += f"; the best score is {tally.best[0]:.3g}"
    if key == "topk" and cfg.effective_cluster.mode is not cfg.cluster_mode:
        text += f"; cluster-mode={int(cfg.cluster_mode)} sets it, cluster-mode=2 leaves it to you"
    return text


def _setting(tally: BoxTally, key: str, classes: Iterable[int]) -> str:
    """`key=value`, or `key=low..high` where classes differ."""
    if key == "num-detected-classes":
        return f"{key}={len(tally.per_class)}"
    values, chosen = _values(tally, key), list(classes)
    if values is None or not chosen:
        return key
    low, high = values[chosen].min(), values[chosen].max()
    return f"{key}={low:g}" if low == high else f"{key}={low:g}..{high:g}"


def _values(tally: BoxTally, key: str) -> Array | None:
    """The value of a key for each class; None if it has none of its own for each."""
    if key in _CLUSTER:
        return tally.params.limits(_CLUSTER[key])
    field_name = key.replace("-", "_")
    if field_name in ClassAttrs.__slots__:
        return np.array([getattr(attrs, field_name) for attrs in tally.per_class])
    return None
