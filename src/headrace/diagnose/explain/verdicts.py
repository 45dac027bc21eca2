"""Sentences about decisions: the figures, the key with its line, and the change that helps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._core.json_record import finite
from headrace.config import ClassAttrs
from headrace.diagnose.explain.records import Verdict
from headrace.infer.attach import EDGE
from headrace.infer.candidates import Fate, FateStage
from headrace.infer.parsers.labels import class_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.config import ModelConfig
    from headrace.infer.candidates import Candidates
    from headrace.infer.inferencer import Inferencer
    from headrace.meta import FrameMeta

SAME = 0.5
"""IoU from which two candidates of one class are taken for the same object."""

_SIDES = {"w": "wide", "h": "high"}
_LEFT_OUT = {
    "crop": "nothing to crop: it is outside the frame or less than 2 pixels wide or high",
    "tracker": "classifier-async-mode=1 needs a tracking id, and it has none",
    "secondary-reinfer-interval": "it is tracked and not due again: it keeps its earlier result",
}


def fate_verdict(
    cfg: ModelConfig, candidates: Candidates, row: int, fate: Fate, labels: Sequence[str]
) -> Verdict:
    """Put the decision on one candidate into words.

    Args:
        cfg: of the detector.
        candidates: of one item.
        row: the candidate.
        fate: the decision on it, as `candidates.fate` gives it.
        labels: names of the classes.
    """
    if fate.stage is FateStage.OBJECT or fate.key is None:
        return Verdict("object", f"becomes object {fate.object}")
    class_id = int(candidates.detections.class_ids[row])
    text, fix = _words(cfg, candidates, fate, class_id, labels)
    if (set_by := _set_by_mode(cfg, fate.key)) is not None:
        fix = set_by
        where = cfg.origin("cluster_mode").where
    else:
        where = _where(cfg, fate.key, class_id)
    value, limit = (None if x is None else finite(x) or 0.0 for x in (fate.value, fate.limit))
    change = fix.change(cfg, fate.key, class_id)
    return Verdict(fate.stage.value, text, fate.key, where, fix.text, value, limit, change)


def skip_verdict(model: Inferencer, meta: FrameMeta, index: int, key: str) -> Verdict:
    """Put into words why a secondary model leaves an object out.

    Args:
        model: the secondary model.
        meta: the frame.
        index: the object.
        key: as `FrameTrace.skipped` has it.
    """
    cfg, objects = model.config, meta.objects
    value: float | None = None
    limit: float | None = None
    text, fix = _LEFT_OUT.get(key, ""), ""
    component, class_id = int(objects.component_ids[index]), int(objects.class_ids[index])
    if key.startswith("input-object-"):
        side = 3 if key.endswith("height") else 2
        value, limit = float(objects.rects[index, side]), model.record.tally.objects.limits[key]
        smaller = "-min-" in key
        text = f"{value:.4g} pixels {'high' if side == 3 else 'wide'}"
        text += f" {'<' if smaller else '>'} {key}={limit:g}"
        fix = f"set {math.floor(value) if smaller else math.ceil(value)}"
    elif key == "operate-on-class-ids":
        class_ids = ";".join(map(str, cfg.operate_on_class_ids))
        text = f"class {class_id} is not in {key}={class_ids}"
        fix = f"set {class_ids};{class_id}"
        value = class_id
    elif key == "operate-on-gie-id":
        text = f"it is of gie-unique-id {component}, not of {key}={cfg.operate_on_gie_id}"
        fix = f"set {component}"
        value, limit = component, cfg.operate_on_gie_id
    elif key == "gie-unique-id":
        text = f"it is of gie-unique-id={component} itself: a detector does not work on its own"
        fix = "give the models different ids"
        value = component
    elif key == "tracker":
        fix = "put a tracker before the model, or set classifier-async-mode=0"
    return Verdict("skipped", text, key, _where(cfg, key, None), fix, value, limit)


def score_verdict(cfg: ModelConfig, field: str, score: float) -> Verdict:
    """Put a score that is not above a threshold into words.

    Args:
        cfg: of the model.
        field: of the threshold, as `classifier_threshold`.
        score: the best score.
    """
    key, limit = field.replace("_", "-"), float(getattr(cfg, field))
    text = f"score {_apart(score, limit)} <= {key}={limit:g}"
    fix = _set(_below(score)) if score > 0 else _Fix()
    where, change = cfg.origin(field).where, fix.change(cfg, key, -1)
    return Verdict("threshold", text, key, where, fix.text, score, limit, change)


def _below(value: float) -> str:
    """A round number that `value` is above."""
    step = _step(value)
    return f"{(math.ceil(value / step - 1e-6) - 1) * step:.6g}"


def _at_most(value: float) -> str:
    """A round number that `value` reaches."""
    step = _step(value)
    return f"{math.floor(value / step + 1e-6) * step:.6g}"


def _step(value: float) -> float:
    """Two decimals; two digits below 0.1."""
    return 10.0 ** min(-2, math.floor(math.log10(value)) - 1) if value > 0 else 0.01


def _where(cfg: ModelConfig, key: str, class_id: int | None) -> str | None:
    """File and line of a key, or the option that set it; None for defaults and rules."""
    field = "min_boxes" if key == "minBoxes" else key.replace("-", "_")
    if class_id is not None and field in ClassAttrs.__slots__:
        return cfg.origin(key, class_id=max(0, class_id)).where
    return cfg.origin(field).where if hasattr(cfg, field) else None


@dataclass(frozen=True, slots=True)
class _Fix:
    """A change that lets a candidate pass.

    Attributes:
        text: in words; empty for none.
        value: of the key that dropped it; None leaves the key out.
        keys: other keys and their values instead; None where nothing can be tried.
    """

    text: str = ""
    value: str | None = None
    keys: Mapping[str, str | None] | None = None

    def change(self, cfg: ModelConfig, key: str, class_id: int) -> dict[str, str | None]:
        """The keys to set, those of the group that has the class's value; empty for none."""
        if self.keys is not None:
            return dict(self.keys)
        if self.value is None:
            return {}
        group, field = "", key.replace("-", "_")
        if field in ClassAttrs.__slots__:
            own = cfg.origin(key, class_id=class_id) != cfg.origin(key, class_id=-1)
            group = f"class-attrs-{class_id if own else 'all'}."
        return {f"{group}{key}": self.value}


_NMS = {"cluster-mode": "2"}


def _set(value: object) -> _Fix:
    return _Fix(f"set {value}", str(value))


def _set_by_mode(cfg: ModelConfig, key: str) -> _Fix | None:
    """The change that frees a value which the cluster mode sets in place of the class's own."""
    mode, overrides = cfg.effective_cluster
    if mode is cfg.cluster_mode or key.replace("-", "_") not in overrides:
        return None
    return _Fix(f"cluster-mode={int(cfg.cluster_mode)} sets it: set cluster-mode=2", keys=_NMS)


def _words(
    cfg: ModelConfig, candidates: Candidates, fate: Fate, class_id: int, labels: Sequence[str]
) -> tuple[str, _Fix]:
    """The figures of a drop, and the change that lets the candidate pass."""
    key, value, limit = fate.key or "", fate.value, fate.limit
    if key == "pre-cluster-threshold" and value is not None:
        return f"score {_apart(value, limit)} < {key}={limit:g}", _set(_at_most(value))
    if key == "post-cluster-threshold" and value is not None:
        text = f"score {_apart(value, limit)} <= {key}={limit:g} after clustering"
        return text, _set(_below(value))
    if key == "num-detected-classes":
        text = f"class {class_id} is none of the {limit:g} of {key}={limit:g}"
        return text, _set(class_id + 1) if class_id >= 0 else _Fix()
    if key == "nms-iou-threshold" and value is not None:
        other = _other(candidates, fate.by, labels)
        if value >= SAME:
            return f"double of {other}: IoU {value:.3g} > {key}={limit:g}", _Fix()
        return f"IoU {value:.3g} with {other} > {key}={limit:g}", _set(_at_least(value))
    if key == "contained":
        return f"it lies in a larger cluster with {_other(candidates, fate.by, labels)}", _Fix()
    if key == "topk" and value is not None:
        fix = _set(f"{value:.0f}") if (limit or 0) >= 0 else _Fix()
        return f"number {value:.0f} by score of its class, topk={limit:g}", fix
    if key.startswith("detected-") and value is not None:
        smaller, side = "-min-" in key, _SIDES[key[-1]]
        fix = _set(math.floor(value) if smaller else math.ceil(value))
        sign = "<" if smaller else ">"
        return f"{_apart(value, limit, 4)} pixels {side} {sign} {key}={limit:g}", fix
    return _place_words(cfg, candidates, fate, class_id)


def _place_words(
    cfg: ModelConfig, candidates: Candidates, fate: Fate, class_id: int
) -> tuple[str, _Fix]:
    key, value, limit = fate.key or "", fate.value, fate.limit
    if key == "roi-top-offset" and value is not None:
        return f"top at {value:.4g} < {key}={limit:g}", _set(math.floor(value))
    if key == "roi-bottom-offset" and value is not None and limit is not None:
        offset = candidates.height - limit
        text = f"bottom at {value:.4g} > {limit:g} ({key}={offset:g} above the frame's end)"
        return text, _set(max(0, math.floor(candidates.height - value)))
    if key == EDGE:
        cut = _Fix("profile=modern or crop-objects-to-roi-boundary=1 cuts it there",
                   keys={"crop-objects-to-roi-boundary": "1"})  # fmt: skip
        if value is not None and limit is not None and value > limit:
            return f"reaches {value - limit:.4g} pixels below the frame", cut
        if value is None:
            return "lies outside of the frame", _Fix()
        return "reaches above the frame", cut
    if key == "filter-out-class-ids":
        listed = ";".join(map(str, cfg.filter_out_class_ids))
        left = ";".join(str(n) for n in cfg.filter_out_class_ids if n != class_id)
        fix = _Fix(f"leave {class_id} out", keys={key: left or None})
        return f"class {class_id} is in {key}={listed}", fix
    rules = {
        "minBoxes": f"too few boxes near it: minBoxes={_number(limit)} within eps",
        "dbscan-min-score": f"the scores of its cluster sum to less than {key}={_number(limit)}",
        "max-candidates": f"one of too many boxes: {key}={cfg.max_candidates}",
        "group-threshold": f"its group has no more boxes than {key}={_number(limit)}",
        "area-to-hit-ratio": "DBSCAN drops large boxes of few members",
    }
    fix = _Fix("set a lower value, or cluster-mode=2", keys=_NMS) if key in rules else _Fix()
    return rules.get(key, key), fix


def _apart(value: float, limit: float | None, least: int = 3) -> str:
    """A value with as many digits as tell it from its limit, at least so many."""
    for digits in range(least, 9):
        text = f"{value:.{digits}g}"
        if limit is None or text != f"{limit:g}":
            return text
    return f"{value:g}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _at_least(value: float) -> str:
    """A round number that `value` does not exceed."""
    return f"{math.ceil(value * 100) / 100:g}"


def _other(candidates: Candidates, row: int, labels: Sequence[str]) -> str:
    if row < 0:
        return "a better one"
    detections = candidates.detections
    name = class_name(labels, int(detections.class_ids[row]))
    return f"{name} {float(detections.scores[row]):.3g}"
