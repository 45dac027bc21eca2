"""Boxes that two precisions of a detector share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace.config.enums import ClusterMode
from headrace.diagnose.evaluate.box_matching import Array, Scored, shared
from headrace.engine.precision.choice import Agreement

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.class_attrs import ClassAttrs

_MARGINS = (0.75, 0.87, 1.0, 1.15, 1.33)


@dataclass(frozen=True, slots=True)
class Judge:
    """Counts the boxes that two precisions share, at thresholds around the config's.

    A box near its threshold comes and goes with the smallest error. With few boxes that decides
    the figure; the same boxes, counted at several thresholds, make it steadier.

    Attributes:
        cfg: finds the boxes of all thresholds: its own are the lowest of them.
        margins: shares of the config's thresholds.
        common, of_class: the config's thresholds, of all classes and of single ones.
    """

    cfg: ModelConfig
    margins: tuple[float, ...]
    common: float
    of_class: dict[int, float]

    @classmethod
    def of(cls, cfg: ModelConfig) -> Judge:
        """For a detector.

        Where boxes are clustered by other means than NMS, a lower threshold gives other boxes:
        only the config's own is used.
        """
        several = cfg.cluster_mode in (ClusterMode.NMS, ClusterMode.NONE)
        margins = _MARGINS if several else (1.0,)
        return cls(
            with_thresholds(cfg, margins[0]),
            margins,
            _threshold(cfg.all_classes),
            {number: _threshold(attrs) for number, attrs in cfg.classes.items()},
        )

    def agreement(
        self,
        reference: Sequence[Scored],
        detections: Sequence[Scored],
        runtime: str,
        weight_bits: Literal[7, 8] = 8,
    ) -> Agreement:
        """Count boxes of the same class with an IoU of at least 0.5, each of them once.

        Args:
            reference, detections: those of FP32 and INT8, frame by frame.
            runtime, weight_bits: what INT8 was computed with.
        """
        fp32 = int8 = equal = 0
        for margin in self.margins:
            for a, b in zip(reference, detections, strict=True):
                a, b = self.above(a, margin), self.above(b, margin)
                fp32, int8 = fp32 + len(a.boxes), int8 + len(b.boxes)
                equal += len(_pairs(a, b))
        return Agreement(
            runtime=runtime,
            weight_bits=weight_bits,
            frames=len(reference),
            thresholds=len(self.margins),
            fp32=fp32,
            int8=int8,
            equal=equal,
        )

    def above(self, one: Scored, margin: float) -> Scored:
        """Select the boxes with a score of at least that share of the threshold of their class."""
        if margin == self.margins[0]:
            return one
        needed = [self.of_class.get(int(c), self.common) for c in one.class_ids]
        kept = one.scores >= margin * np.array(needed)
        return one.select(kept)


def _threshold(attrs: ClassAttrs) -> float:
    return max(attrs.pre_cluster_threshold, attrs.post_cluster_threshold)


def with_thresholds(cfg: ModelConfig, share: float) -> ModelConfig:
    """The config with that share of its thresholds."""

    def lower(attrs: ClassAttrs) -> ClassAttrs:
        return replace(
            attrs,
            pre_cluster_threshold=attrs.pre_cluster_threshold * share,
            post_cluster_threshold=attrs.post_cluster_threshold * share,
        )

    classes = {number: lower(attrs) for number, attrs in cfg.classes.items()}
    return cfg.with_overrides(all_classes=lower(cfg.all_classes), classes=classes)


def moved(reference: Sequence[Scored], detections: Sequence[Scored]) -> float:
    """Average the squared differences of the boxes' scores; infinite if no box has a partner.

    Partners are the nearest of each other, so boxes beside each other are not mixed up. Boxes
    without a partner count as the mean does: whether one crosses the threshold, or changes to a
    class as likely, says little of how far it moved.
    """
    total, pairs = 0.0, 0
    most = sum(len(one.boxes) for one in reference) + sum(len(one.boxes) for one in detections)
    for a, b in zip(reference, detections, strict=True):
        if not len(a.boxes) or not len(b.boxes):
            continue
        iou = _overlaps_in_class(a, b)
        nearest = iou.argmax(axis=1)
        rows = np.arange(len(nearest))
        both = (iou[rows, nearest] >= 0.5) & (iou.argmax(axis=0)[nearest] == rows)
        total += float(np.square(a.scores - b.scores[nearest])[both].sum())
        pairs += int(both.sum())
    return total / pairs * most / (2 * pairs) if pairs else math.inf


def _pairs(a: Scored, b: Scored) -> list[tuple[int, int]]:
    """Boxes of `a` and those of `b` that are the same; the surest choose first."""
    iou = _overlaps_in_class(a, b)
    pairs = []
    for i in np.argsort(-a.scores, kind="stable"):
        j = int(np.argmax(iou[i])) if len(b.boxes) else 0
        if len(b.boxes) and iou[i, j] >= 0.5:
            pairs.append((int(i), j))
            iou[:, j] = 0.0
    return pairs


def _overlaps_in_class(a: Scored, b: Scored) -> Array:
    """(A, B) IoU of boxes of the same class, 0 of others."""
    same = a.class_ids[:, None] == b.class_ids[None]
    return np.where(same, shared(a, b), 0.0)
