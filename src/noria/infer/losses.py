"""What an inferencer left out, by filter and class, and why if that was most or all.

A reason is one line: the cause and its key first, then the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria.config import ClassAttrs
from noria.config.enums import NetworkType
from noria.infer.attach import DropReason
from noria.infer.cluster import Reason
from noria.infer.tally import HALVINGS

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.infer.tally import BoxTally, ItemTally, ObjectTally, Tally

Counts = dict[str, dict[str, int]]

EDGE = "edge"
"""Boxes that the frame's own edge dropped."""

# The filters of clustering: the name of each, and the column of its values in the parameters.
_CLUSTER: dict[Reason, tuple[str, Callable[[Any], npt.NDArray[Any]] | None]] = {
    Reason.CLASS_OUT_OF_RANGE: ("num-detected-classes", None),
    Reason.BELOW_PRE_THRESHOLD: ("pre-cluster-threshold", lambda p: p.thresholds[:, 0]),
    Reason.SUPPRESSED: ("nms-iou-threshold", lambda p: p.thresholds[:, 2]),
    Reason.NOISE: ("minBoxes", lambda p: p.counts[:, 2]),
    Reason.MIN_SCORE: ("dbscan-min-score", lambda p: p.thresholds[:, 4]),
    Reason.AREA_TO_HIT_RATIO: ("area-to-hit-ratio", None),
    Reason.GROUP_THRESHOLD: ("group-threshold", lambda p: p.counts[:, 1]),
    Reason.CONTAINED: ("contained", None),
    Reason.POST_THRESHOLD: ("post-cluster-threshold", lambda p: p.thresholds[:, 1]),
    Reason.TOPK: ("topk", lambda p: p.counts[:, 0]),
}
CLUSTER_FILTERS = tuple(name for name, _ in _CLUSTER.values())
"""Names of what drops boxes before they are attached."""

# These take most boxes of every sound run: candidates below the threshold, and doubles.
_USUAL = ("pre-cluster-threshold", "nms-iou-threshold", "contained")
# What the limits of a secondary model are compared with: the object nearest to passing.
_EXTREMES = {
    "input-object-min-width": "widest",
    "input-object-min-height": "highest",
    "input-object-max-width": "narrowest",
    "input-object-max-height": "lowest",
}
_MOST_REASONS = 3
_FAINT = 0.25  # scores below this part of the threshold are noise
_MOST_CLASSES = 4


@dataclass(frozen=True, slots=True)
class Losses:
    """What was left out since the run began.

    Attributes:
        skipped: objects that a secondary model did not infer on: the key that left them out ->
            class name -> number.
        dropped: boxes of a detector, or items of a classifier without a label: the same. Boxes
            that a parser leaves out itself are not among them.
        reasons: why nothing came out, or less than half, one line each; the first weighs most.
    """

    skipped: Counts = field(default_factory=dict)
    dropped: Counts = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def losses_of(cfg: ModelConfig, tally: Tally) -> Losses:
    """The counts of a tally by name, and the reasons they give.

    Args:
        cfg: of the model.
        tally: of its inferencer.
    """
    dropped: dict[str, Counter[str]] = {}
    for boxes in tally.boxes:
        for key, counts in _dropped(boxes).items():
            dropped.setdefault(key, Counter()).update(counts)
    items = tally.items
    if items.below:
        dropped["classifier-threshold"] = items.below
    skipped: dict[str, Counter[str]] = {}
    for key, pairs in tally.objects.skipped.items():
        for pair, number in pairs.items():
            skipped.setdefault(key, Counter())[_class_name(tally.objects, *pair)] += number
    reasons = [
        *_run_reasons(cfg, tally),
        *_object_reasons(cfg, tally.objects, skipped),
        *(reason for boxes in tally.boxes for reason in _box_reasons(cfg, boxes)),
        *_item_reasons(cfg, items),
    ]
    return Losses(_plain(skipped), _plain(dropped), list(dict.fromkeys(reasons)))


def _plain(counts: Mapping[str, Counter[str]]) -> Counts:
    return {key: dict(c.most_common()) for key, c in counts.items()}


def _run_reasons(cfg: ModelConfig, tally: Tally) -> Iterable[str]:
    """What keeps a model from running, or its outputs from being objects."""
    if tally.frames and tally.discarded == tally.frames:
        yield (
            f"stabilize-buffer-count={cfg.stabilize_buffer_count} discards as many buffers: "
            f"all {tally.frames} frames were among them"
        )
    elif cfg.input_tensor_from_meta and tally.frames and not tally.tensors:
        others = ", ".join(map(str, sorted(tally.other_tensors)))
        yield (
            f"input-tensor-from-meta=1: no tensor for gie-unique-id {cfg.component_id} came with "
            f"{tally.frames} frames{f' (they were for {others})' if others else ''}; a function "
            "before the model has to add them (Batch.tensors), or leave the key out"
        )
    elif 2 * tally.blank_maps > tally.maps:
        yield (
            f"segmentation-threshold={cfg.segmentation_threshold:g}: {tally.blank_maps} of "
            f"{tally.maps} class maps have no class anywhere; a class has to score higher than that"
        )
    elif cfg.network_type is NetworkType.OTHER and cfg.output_tensor_meta and tally.frames:
        yield (
            "network-type=100: the outputs are attached as tensors (output-tensor-meta=1), not as "
            "objects; a function behind the model reads them (FrameMeta.tensors)"
        )


def _class_name(objects: ObjectTally, component: int, class_id: int) -> str:
    names = objects.labels.get(component, ())
    return names[class_id] if 0 <= class_id < len(names) else f"class {class_id}"


def _object_reasons(
    cfg: ModelConfig, tally: ObjectTally, skipped: Mapping[str, Counter[str]]
) -> Iterable[str]:
    """Why a secondary model inferred on nothing."""
    if not tally.frames:
        return
    if not tally.objects:
        yield (
            f"no objects came from the models before it in {tally.frames} frames, and "
            "process-mode=2 infers on nothing else"
        )
        return
    if not skipped or tally.objects > sum(c.total() for c in skipped.values()):
        return
    # what an object met last says most: it had passed the filters before
    yield from _last_tests(cfg, skipped)
    for key, (width, height) in tally.nearest.items():
        text = f"{key}={tally.limits[key]}: the {_EXTREMES[key]} of"
        yield f"{text} {skipped[key].total()} objects is {width:.0f}x{height:.0f} pixels"
    if own := skipped.get("operate-on-class-ids"):
        wanted = ";".join(map(str, cfg.operate_on_class_ids))
        yield f"operate-on-class-ids={wanted}: {own.total()} objects are of others ({_named(own)})"
    if own := skipped.get("gie-unique-id"):
        text = f"gie-unique-id={cfg.component_id}: {own.total()} objects are of this id itself"
        yield f"{text}, and a detector does not work on its own"
    if own := skipped.get("operate-on-gie-id"):
        makers = sorted({component for component, _ in tally.skipped["operate-on-gie-id"]})
        text = f"operate-on-gie-id={cfg.operate_on_gie_id}: {own.total()} objects are of"
        yield f"{text} gie-unique-id {', '.join(map(str, makers))}"


def _last_tests(cfg: ModelConfig, skipped: Mapping[str, Counter[str]]) -> Iterable[str]:
    if own := skipped.get("tracker"):
        text = f"classifier-async-mode=1 needs tracking ids, and none of {own.total()} objects"
        yield f"{text} has one: put a tracker before {cfg.path.name}"
    if own := skipped.get("crop"):
        text = f"{own.total()} objects leave nothing to crop"
        yield f"{text}: they are outside the frame or less than 2 pixels wide or high"


def _dropped(tally: BoxTally) -> dict[str, Counter[str]]:
    """Boxes by filter and class."""
    found: dict[str, Counter[str]] = {}

    def add(key: str, class_id: int, number: int) -> None:
        found.setdefault(key, Counter())[_label(tally, class_id)] += number

    for reason, (name, _) in _CLUSTER.items():
        for class_id in np.flatnonzero(tally.clustered[:, reason]).tolist():
            add(name, class_id, int(tally.clustered[class_id, reason]))
    for drop in DropReason:
        for class_id in np.flatnonzero(tally.attached[:, drop]).tolist() if drop else ():
            add(EDGE if drop.edge else drop.key, class_id, int(tally.attached[class_id, drop]))
    return found


def _label(tally: BoxTally, class_id: int) -> str:
    if class_id == len(tally.per_class):
        return "other classes"
    return tally.labels[class_id] if class_id < len(tally.labels) else f"class {class_id}"


def _named(counts: Counter[str]) -> str:
    """`car 100, person 20`, most frequent first."""
    parts = [f"{name} {number}" for name, number in counts.most_common(_MOST_CLASSES)]
    more = len(counts) - len(parts)
    return ", ".join(parts) + (f", {more} more" if more else "")


def _box_reasons(cfg: ModelConfig, tally: BoxTally) -> Iterable[str]:
    """Why a detector has no objects, or lost more boxes to filters than it kept."""
    parsed = int(tally.clustered.sum())
    if not tally.items or (parsed and tally.kept and tally.left == tally.kept == parsed):
        return
    if not parsed:
        yield _nothing_parsed(tally)
        return
    dropped = _dropped(tally)
    unusual = {key: counts for key, counts in dropped.items() if key not in _USUAL}
    if tally.kept >= sum(c.total() for c in unusual.values()) and tally.kept:
        return
    attach = {*(d.key for d in DropReason), EDGE}

    def weight(key: str) -> tuple[bool, bool, int]:
        return key not in attach, key in _USUAL, -dropped[key].total()

    keys = sorted(unusual if unusual else dropped, key=weight)
    for key in keys[:_MOST_REASONS]:
        yield _box_reason(cfg, tally, key, dropped[key], tally.left if key in attach else parsed)


def _nothing_parsed(tally: BoxTally) -> str:
    setting = _setting(tally, "pre-cluster-threshold", range(len(tally.per_class)))
    if not tally.visible:
        return (
            f"the parser ({tally.parser}) returned no boxes for {tally.items} outputs: it gets "
            f"{setting} and may drop boxes itself, which cannot be counted here"
        )
    looked = f"{tally.probed} of {tally.empty} outputs looked at"
    unseen = "the model sees nothing, or its input is prepared differently (net-scale-factor, "
    unseen += "offsets, model-color-format)"
    if tally.best is None:
        return f"no score reaches 1/{2**HALVINGS} of {setting} ({looked}): {unseen}"
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
    boxes = f"{share} boxes ({_named(counts)})"
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
    chosen = list(classes)
    if key == "num-detected-classes":
        return f"{key}={len(tally.per_class)}"
    column = next((column for name, column in _CLUSTER.values() if name == key), None)
    if column is not None:
        values = [float(v) for v in column(tally.params)[chosen]]
    elif key.replace("-", "_") in ClassAttrs.__slots__:
        values = [float(getattr(tally.per_class[c], key.replace("-", "_"))) for c in chosen]
    else:
        return key
    if not values:
        return key
    low, high = min(values), max(values)
    return f"{key}={low:g}" if low == high else f"{key}={low:g}..{high:g}"


def _item_reasons(cfg: ModelConfig, tally: ItemTally) -> Iterable[str]:
    """Why a classifier labelled less than half of its items."""
    lost = tally.items - tally.labelled
    if lost <= tally.labelled:
        return
    if tally.best is not None:
        yield (
            f"classifier-threshold={cfg.classifier_threshold:g} is above the scores of "
            f"{lost - tally.unnamed} of {tally.items} items: the best of them is "
            f"{tally.best:.3g} ({_named(tally.below)})"
        )
    if tally.unnamed:
        yield (
            f"labelfile-path names none of the classes of {tally.unnamed} of {tally.items} items: "
            "what has no label is not attached"
        )
    if tally.silent:
        yield (
            f"the parser gave {tally.silent} of {tally.items} items no attribute: it gets "
            f"classifier-threshold={cfg.classifier_threshold:g} and may drop them itself"
        )
