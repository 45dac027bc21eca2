"""Plain loops that say what the NMS plugins do, to be compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

F = np.float32


def iou(a: Any, b: Any, *, plus_areas: bool = False, plus_overlap: bool = False) -> float:
    """Overlap of two corner boxes in float32; NaN where a coordinate is."""
    if any(math.isnan(x) for x in (*a, *b)):  # first: min and max may lose it
        return math.nan
    a = [F(min(a[0], a[2])), F(min(a[1], a[3])), F(max(a[0], a[2])), F(max(a[1], a[3]))]
    b = [F(min(b[0], b[2])), F(min(b[1], b[3])), F(max(b[0], b[2])), F(max(b[1], b[3]))]
    p, q = F(plus_areas), F(plus_overlap)
    area = lambda r: F(F(F(r[2] - r[0]) + p) * F(F(r[3] - r[1]) + p))  # noqa: E731
    h = F(min(a[2], b[2]) - max(a[0], b[0]))
    w = F(min(a[3], b[3]) - max(a[1], b[1]))
    inter = F(F(h + q) * F(w + q)) if h >= 0 and w >= 0 else F(0)
    total = F(F(area(a) + area(b)) - inter)
    return float(F(inter / total)) if total else 0.0


def decode(box: Sequence[float], anchor: Sequence[float] | None, centres: bool) -> list[float]:
    box = [F(x) for x in box]
    if anchor is None:
        if not centres:
            return box
        p, q, h, w = box
        return [p - h * F(0.5), q - w * F(0.5), p + h * F(0.5), q + w * F(0.5)]
    base = [F(x) for x in anchor]
    if centres:
        p, q = box[0] * base[2] + base[0], box[1] * base[3] + base[1]
        return decode([p, q, base[2] * np.exp(box[2]), base[3] * np.exp(box[3])], None, True)
    order = lambda r: [min(r[0], r[2]), min(r[1], r[3]), max(r[0], r[2]), max(r[1], r[3])]  # noqa: E731
    return [x + y for x, y in zip(order(box), order(base), strict=True)]


def efficient(
    boxes: Any,
    scores: Any,
    anchors: Any = None,
    *,
    keep: int,
    score_threshold: float,
    iou_threshold: float,
    background: int = -1,
    sigmoid: bool = False,
    centres: bool = False,
    agnostic: bool = False,
    per_class: int = 0,
    clip: bool = False,
    limit: int = 5000,
) -> list[list[tuple[list[float], float, int, int]]]:
    """For each image the rows (box, score, class, input box)."""
    threshold = score_threshold
    if sigmoid:
        p = score_threshold
        threshold = -32768.0 if p <= 0 else math.inf if p >= 1 else math.log(p / (1 - p))
    result = []
    for b in range(len(boxes)):
        found = [
            (scores[b, n, c], n, c)
            for n in range(scores.shape[1])
            for c in range(scores.shape[2])
            if scores[b, n, c] >= F(threshold) and c != background
        ]
        found.sort(key=lambda t: -t[0])  # stable
        kept: list[tuple[list[float], int]] = []
        rows: list[tuple[list[float], float, int, int]] = []
        for s, n, c in found[:limit]:
            if len(rows) == keep:
                break
            code = boxes[b, n, c if boxes.shape[2] > 1 else 0]
            anchor = None if anchors is None else anchors[b if len(anchors) > 1 else 0, n]
            box = decode(code, anchor, centres)
            if any((agnostic or k == c) and iou(box, o) >= F(iou_threshold) for o, k in kept):
                continue
            of_class = sum(k == c for _, k in kept)
            kept.append((box, c))
            if per_class and of_class >= per_class:
                continue
            if clip:
                box = [min(max(x, F(0)), F(1)) for x in box]
            rows.append((box, float(1 / (1 + np.exp(-s))) if sigmoid else float(s), c, n))
        result.append(rows)
    return result


def batched(
    boxes: Any,
    scores: Any,
    *,
    keep: int,
    top: int,
    score_threshold: float,
    iou_threshold: float,
    background: int = -1,
    plus_areas: bool = False,
    plus_overlap: bool = False,
    clip: bool = False,
) -> list[list[tuple[list[float], float, int, int]]]:
    result = []
    for b in range(len(boxes)):
        rows = []
        for c in range(scores.shape[2]):
            if c == background:
                continue
            found = [
                (s, n) for n, s in enumerate(scores[b, :, c].tolist()) if s > F(score_threshold)
            ]
            found.sort(key=lambda t: -t[0])
            kept: list[Any] = []
            for s, n in found[:top]:
                box = boxes[b, n, c if boxes.shape[2] > 1 else 0]
                plus = {"plus_areas": plus_areas, "plus_overlap": plus_overlap}
                if any(iou(box, o, **plus) > F(iou_threshold) for o in kept):
                    continue
                kept.append(box)
                out = [min(max(x, F(0)), F(1)) for x in box] if clip else list(box)
                rows.append((out, s, c, n))
        rows.sort(key=lambda r: -r[1])
        result.append(rows[:keep])
    return result
