"""Scores of a detector: average precision, figures at thresholds, confusion, worst images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.json_record import finite
from headrace.config.enums import NetworkType
from headrace.diagnose.evaluate.average_precision import SIZES, CocoScores, coco_scores
from headrace.diagnose.evaluate.box_matching import Bools, Scored, Truth, match_boxes
from headrace.diagnose.evaluate.class_map import ClassMap
from headrace.diagnose.evaluate.confusion import Confusion, box_confusion
from headrace.diagnose.evaluate.datasets.dataset import Dataset
from headrace.diagnose.evaluate.operating import (
    OperatingPoint,
    best_points,
    points_at,
    total,
)
from headrace.diagnose.evaluate.running import (
    AVERAGING,
    LOW_THRESHOLD,
    EvaluationOptions,
    EvaluationRun,
    run_over,
    with_low_thresholds,
)
from headrace.meta.masks import object_mask, rle_encode

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.media import Frame
    from headrace.meta import FrameMeta

WORST = 12
_PARSER_FLOOR = 0.05  # a parser that never goes below has a threshold of its own
_ENOUGH = 20  # boxes to judge that by
_OF_MANY_BOXES = (
    "too-many-boxes",
    "background-class",
)  # rules of the watch that faint boxes set off


@dataclass(frozen=True, slots=True)
class ClassDetection:
    """Figures of one class of a detector.

    Attributes:
        name: of the data set.
        objects: true ones that have to be found.
        ap: average precision over the IoU thresholds 0.5 to 0.95; NaN without objects.
        ap50, ap75: at one IoU.
        small, medium, large: `ap` of objects of that size.
        at_config: at the config's own threshold.
        best: at the threshold with the best F1; None without objects.
    """

    name: str
    objects: int
    ap: float
    ap50: float
    ap75: float
    small: float
    medium: float
    large: float
    at_config: OperatingPoint
    best: OperatingPoint | None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        figures = {n: finite(getattr(self, n), 6) for n in ("ap", "ap50", "ap75", *SIZES[1:])}
        return {
            "name": self.name,
            "objects": self.objects,
            **figures,
            "at_config": self.at_config.to_dict(),
            "best_f1": self.best and self.best.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class WorstBoxes:
    """An image with lost or false boxes, at the config's own thresholds.

    Attributes:
        place: of the image in the data set.
        truth, found: its boxes.
        missed: (N,) bool of `truth`.
        false: (M,) bool of `found`.
    """

    place: int
    truth: Truth
    found: Scored
    missed: Bools
    false: Bools


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Figures of a detector on a data set; shares are 0 to 1, NaN where nothing is true.

    Attributes:
        classes: those that both model and data set have.
        coco: precision by class, IoU, recall and size: `coco.curve()` is the mean curve.
        masks: the same of masks, where model and data set have them; None otherwise.
        at_config: all classes together, at the config's own thresholds.
        confusion: at the config's own thresholds and an IoU of 0.5.
        threshold: least confidence of the boxes that average precision saw; None is the config's.
        worst: the images with most lost and false boxes, at most 12.
    """

    classes: tuple[ClassDetection, ...]
    coco: CocoScores
    masks: CocoScores | None
    at_config: OperatingPoint
    confusion: Confusion
    threshold: float | None
    worst: tuple[WorstBoxes, ...] = field(repr=False)

    @property
    def seen(self) -> tuple[ClassDetection, ...]:
        """Classes with true objects, or with false boxes at the config's own thresholds."""
        return tuple(c for c in self.classes if c.objects or c.at_config.false)

    @property
    def headline(self) -> dict[str, float]:
        """The figures to compare by, in their order."""
        figures = {
            "mAP50": self.coco.ap(0.5),
            "mAP50-95": self.coco.ap(),
            "mAP75": self.coco.ap(0.75),
        }
        figures |= {f"mAP {size}": self.coco.ap(size=size) for size in SIZES[1:]}
        figures["AR100"] = self.coco.ar()
        if self.masks is not None:
            figures |= {"mask mAP50": self.masks.ap(0.5), "mask mAP50-95": self.masks.ap()}
        at = self.at_config
        return figures | {"precision": at.precision, "recall": at.recall, "F1": at.f1}

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "threshold": self.threshold,
            "at_config": self.at_config.to_dict(),
            "classes": [c.to_dict() for c in self.classes],
            "confusion": self.confusion.to_dict(),
        }


class _BoxCollector:
    """Keeps the boxes of each image, in classes of the data set."""

    def __init__(self, cfg: ModelConfig, classes: ClassMap, masks: bool) -> None:
        self.found: dict[int, Scored] = {}
        self.sure: dict[int, Bools] = {}
        self.lowest, self.seen, self.turned = 1.0, 0, False
        self._classes, self._masks = classes, masks
        attrs = cfg.per_class
        self._bounds = np.array(
            [max(a.pre_cluster_threshold, a.post_cluster_threshold) for a in attrs], np.float32
        )

    def __call__(self, index: int, frame: Frame, meta: FrameMeta) -> None:
        objects = meta.objects
        ids = objects.class_ids
        theirs = self._classes.classes_of(ids)
        kept = np.flatnonzero(theirs >= 0)
        scores = objects.confidences
        self.seen += len(scores)
        self.lowest = min(self.lowest, float(scores.min(initial=1.0)))
        self.turned |= objects.angles is not None and bool(objects.angles.any())
        masks = tuple(_run_lengths(meta, i) for i in kept.tolist()) if self._masks else None
        self.found[index] = Scored.of(objects.rects[kept], theirs[kept], scores[kept], masks)
        self.sure[index] = scores[kept] >= self._bounds[ids[kept]]


def _run_lengths(meta: FrameMeta, index: int) -> str:
    placed = object_mask(meta.objects, index, meta.width, meta.height)
    size = (meta.height, meta.width)
    if placed is None:
        return rle_encode(np.zeros(size, np.bool_))
    return rle_encode(placed.pixels, left=placed.left, top=placed.top, size=size)


def evaluate_detector(
    cfg: ModelConfig,
    dataset: Dataset,
    classes: ClassMap,
    names: Sequence[str],
    options: EvaluationOptions,
    *,
    as_configured: bool = False,
) -> tuple[DetectionScores, EvaluationRun]:
    """Run a detector, and score it.

    Args:
        cfg: for whole images.
        dataset: with boxes.
        classes: of the model, as the data set numbers them.
        names: of the data set's classes.
        options: how to run.
        as_configured: keep the config's thresholds for average precision, too.

    Raises:
        MissingExtraError: the extra `eval` is not installed.
        HeadraceError: the model cannot be run; see `run_over`.
    """
    masks = dataset.has_masks and cfg.network_type is NetworkType.INSTANCE_SEGMENTATION
    if not len(classes.known):
        raise ConfigError("no class of the data set is one of the model", where=str(cfg.path))
    collector = _BoxCollector(cfg, classes, masks)
    low = cfg if as_configured else with_low_thresholds(cfg)
    run = run_over(low, dataset, collector, options)
    indices = sorted(collector.found)
    detections = [collector.found[p] for p in indices]
    sure = [f.select(collector.sure[p]) for f, p in zip(detections, indices, strict=True)]
    if cfg.cluster_mode in AVERAGING and not as_configured:
        second = _BoxCollector(cfg, classes, masks=False)
        run_over(cfg, dataset, second, replace(options, on_frame=lambda: None))
        sure = [second.found[p] for p in indices]
    truths = [_known(dataset.images[p].truth, classes) for p in indices]
    count = len(names)
    coco = coco_scores(truths, detections, count)
    sizes = [dataset.images[p].size or (1, 1) for p in indices]
    masked = coco_scores(truths, detections, count, kind="segm", sizes=sizes) if masks else None
    matches = [match_boxes(t, f) for t, f in zip(truths, sure, strict=True)]
    at_config = points_at(truths, sure, matches, _thresholds(cfg, classes, count))
    wide = [match_boxes(t, f) for t, f in zip(truths, detections, strict=True)]
    best = best_points(truths, detections, wide, count)
    listed = tuple(
        ClassDetection(
            names[k],
            at_config[k].right + at_config[k].missed,
            coco.ap(class_id=k),
            coco.ap(0.5, k),
            coco.ap(0.75, k),
            coco.ap(class_id=k, size="small"),
            coco.ap(class_id=k, size="medium"),
            coco.ap(class_id=k, size="large"),
            at_config[k],
            best[k],
        )
        for k in classes.known.tolist()
    )
    faults = [int(m.missed.sum() + m.false.sum()) for m in matches]
    order = [i for i in np.argsort(-np.array(faults), kind="stable").tolist() if faults[i]]
    worst = tuple(
        WorstBoxes(indices[i], truths[i], sure[i], matches[i].missed, matches[i].false)
        for i in order[:WORST]
    )
    if not as_configured:
        run.notices = [n for n in run.notices if n.code not in _OF_MANY_BOXES]
    run.notices += _notices(cfg, collector, as_configured)
    if not masks and cfg.network_type is NetworkType.INSTANCE_SEGMENTATION:
        text = "boxes alone are compared: not every true object has a mask"
        run.notices.append(Finding("boxes-alone", "info", text, dataset.name))
    threshold = None if as_configured else LOW_THRESHOLD
    confusion = box_confusion(names, truths, sure)
    chosen = total([at_config[k] for k in classes.known.tolist()])
    return DetectionScores(listed, coco, masked, chosen, confusion, threshold, worst), run


def _known(truth: object, classes: ClassMap) -> Truth:
    """A truth without the classes that the model lacks."""
    assert isinstance(truth, Truth)
    return truth.select(np.isin(truth.class_ids, classes.known))


def _thresholds(cfg: ModelConfig, classes: ClassMap, count: int) -> list[float | None]:
    """The config's threshold of each class of the data set; None where several labels differ."""
    bounds: list[set[float]] = [set() for _ in range(count)]
    for number, attrs in enumerate(cfg.per_class):
        if number < len(classes.table) and (k := int(classes.table[number])) >= 0:
            bounds[k].add(max(attrs.pre_cluster_threshold, attrs.post_cluster_threshold))
    return [one.pop() if len(one) == 1 else None for one in bounds]


def _notices(cfg: ModelConfig, seen: _BoxCollector, as_configured: bool) -> list[Finding]:
    where, notices = str(cfg.path), []
    if as_configured:
        text = "average precision is that of boxes above the config's own thresholds: it is lower"
        notices.append(Finding("average-precision", "info", f"{text} than with all boxes", where))
    elif seen.lowest > _PARSER_FLOOR and seen.seen >= _ENOUGH:
        text = f"no box has a confidence below {seen.lowest:.2f}, though the threshold is "
        text += f"{LOW_THRESHOLD:g}: the parser has one of its own, and average precision is lower"
        notices.append(Finding("average-precision", "warning", text, where))
    if seen.turned:
        text = "boxes are turned: they are compared upright, without their angles"
        notices.append(Finding("average-precision", "warning", text, where))
    few = sorted({a.topk for a in cfg.per_class if 0 <= a.topk < 100})
    if few:
        text = f"topk={few[0]} keeps at most {few[0]} boxes of a class; COCO counts up to 100"
        notices.append(Finding("average-precision", "info", text, where))
    return notices
