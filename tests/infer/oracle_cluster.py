"""Slow, independent model of clustering and attaching, written from the spec's text alone.

Every number is a NumPy float32 scalar, one operation at a time. Nothing of `headrace.infer` is
used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

f32 = np.float32
f64 = np.float64
ZERO = f32(0)


@dataclass
class Box:
    """One box with the input rows it stands for (the first is its place in the order)."""

    class_id: int
    ltwh: tuple[np.float32, ...]
    score: np.float32
    rows: list[int]
    merged: bool = False


@dataclass
class Params:
    """Keys of one class under their config names; defaults of the original. Source: spec 0.3."""

    pre: float = 0.2
    post: float = 0.0
    iou: float = 0.3
    topk: int = -1
    eps: float = 0.0
    group_threshold: int = 0
    min_boxes: int = 0
    min_score: float = 0.0


@dataclass
class Outcome:
    boxes: list[Box]
    why: dict[int, str] = field(default_factory=dict)  # of each row that is in no output


def cluster(
    boxes: np.ndarray, scores: np.ndarray, class_ids: np.ndarray, per_class: list[Params], mode: int
) -> Outcome:
    with np.errstate(all="ignore"):
        return _cluster(boxes, scores, class_ids, per_class, mode)


def _cluster(
    boxes: Any, scores: Any, class_ids: Any, per_class: list[Params], mode: int
) -> Outcome:
    out = Outcome([])
    for class_id, p in enumerate(per_class):
        mine = []
        for row in range(len(boxes)):
            if class_ids[row] != class_id:
                continue
            if scores[row] < f32(p.pre):
                out.why[row] = "below_pre_threshold"
            else:
                mine.append(Box(class_id, tuple(f32(v) for v in boxes[row]), scores[row], [row]))
        if mode == 0:
            mine = group_rectangles(mine, p, out)
        elif mode == 1:
            if p.min_boxes > 0:
                mine = dbscan(mine, p, out)
            mine = _split(mine, [not b.score < f32(p.post) for b in mine], out)
            mine = topk(mine, p, out)
        elif mode in (2, 3):
            if mode == 3 and p.min_boxes > 0:
                labels = dbscan_labels(mine, p)
                keep = [b for b, label in zip(mine, labels, strict=True) if label is not None]
                _lost(mine, keep, "noise", out)
                mine = keep
            mine = nms(mine, p, out)
            mine = _split(mine, [b.score > f32(p.post) for b in mine], out)
            mine = topk(mine, p, out)
        else:
            mine = topk(mine, p, out)
        out.boxes += mine
    for row in range(len(boxes)):
        if not 0 <= class_ids[row] < len(per_class):
            out.why[row] = "class_out_of_range"
    return out


def _lost(before: list[Box], after: list[Box], why: str, out: Outcome) -> None:
    alive = {id(b) for b in after}
    for b in before:
        if id(b) not in alive:
            out.why.update(dict.fromkeys(b.rows, why))


def _split(boxes: list[Box], keep: list[Any], out: Outcome) -> list[Box]:
    kept = [b for b, stays in zip(boxes, keep, strict=True) if stays]
    _lost(boxes, kept, "post_threshold", out)
    return kept


def by_score(boxes: list[Box]) -> list[Box]:
    """Stable, descending; NaN last."""
    numbers = [b for b in boxes if not math.isnan(b.score)]
    return sorted(numbers, key=lambda b: -float(b.score)) + [
        b for b in boxes if math.isnan(b.score)
    ]


def topk(boxes: list[Box], p: Params, out: Outcome) -> list[Box]:
    if p.topk < 0:
        return boxes
    kept = by_score(boxes)[: p.topk]
    _lost(boxes, kept, "topk", out)
    return kept


def overlap1d(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    if a0 > b0:
        a0, a1, b0, b1 = b0, b1, a0, a1
    if a1 < b0:
        return ZERO
    return min(a1, b1) - b0


def iou(a: Box, b: Box) -> Any:
    al, at, aw, ah = a.ltwh
    bl, bt, bw, bh = b.ltwh
    inter = overlap1d(al, al + aw, bl, bl + bw) * overlap1d(at, at + ah, bt, bt + bh)
    union = aw * ah + bw * bh - inter
    return ZERO if union == 0 else inter / union


def nms(boxes: list[Box], p: Params, out: Outcome) -> list[Box]:
    kept: list[Box] = []
    for b in by_score(boxes):
        if all(iou(b, k) <= f32(p.iou) for k in kept):
            kept.append(b)
    _lost(boxes, kept, "suppressed", out)
    return kept


def _distance(a: Box, b: Box) -> Any:
    if any(math.isnan(v) for v in (*a.ltwh, *b.ltwh)):
        return f32(math.nan)
    al, at, aw, ah = a.ltwh
    bl, bt, bw, bh = b.ltwh
    w = min(al + aw, bl + bw) - max(al, bl)
    h = min(at + ah, bt + bh) - max(at, bt)
    inter = w * h if w > 0 and h > 0 else ZERO
    return f32(1) - inter / (aw * ah + bw * bh - inter)


def dbscan_labels(boxes: list[Box], p: Params) -> list[int | None]:
    n = len(boxes)
    near = [
        [j for j in range(n) if j != i and _distance(boxes[i], boxes[j]) < f32(p.eps)]
        for i in range(n)
    ]
    dense = [len(near[i]) + 1 >= p.min_boxes for i in range(n)]
    label: list[int | None] = [None] * n
    visited = [False] * n
    c = 0
    for i in range(n):
        if visited[i]:
            continue
        visited[i] = True
        if not dense[i]:
            continue
        label[i] = c
        for j in near[i]:
            if not visited[j]:
                visited[j] = True
                if dense[j]:
                    label[j] = c
        c += 1
    return label


def dbscan(boxes: list[Box], p: Params, out: Outcome) -> list[Box]:
    labels = dbscan_labels(boxes, p)
    merged = []
    for c in sorted({x for x in labels if x is not None}):
        members = [b for b, label in zip(boxes, labels, strict=True) if label == c]
        total, best = ZERO, ZERO
        sums = [ZERO] * 4
        for b in members:
            total = total + b.score
            if b.score > best:
                best = b.score
            sums = [s + b.score * v for s, v in zip(sums, b.ltwh, strict=True)]
        rows = [r for b in members for r in b.rows]
        box = [s / total for s in sums]
        ratio = np.sqrt(box[2] * box[3]) / f32(len(members) + 1)
        if total < f32(p.min_score) or total == 0:
            out.why.update(dict.fromkeys(rows, "min_score"))
        elif ratio > f32(60):
            out.why.update(dict.fromkeys(rows, "area_to_hit_ratio"))
        else:
            merged.append(Box(members[0].class_id, tuple(box), best, rows, merged=True))
    noise = [b for b, label in zip(boxes, labels, strict=True) if label is None]
    _lost(noise, [], "noise", out)
    return merged


def _to_int(value: float) -> int:
    if math.isnan(value):
        return 0
    return int(max(-(2.0**31), min(2.0**31 - 1, float(value))))


def _half_even(value: float) -> int:
    return 0 if math.isnan(value) else round(max(-(2.0**31), min(2.0**31 - 1, float(value))))


def group_rectangles(boxes: list[Box], p: Params, out: Outcome) -> list[Box]:
    rects = [tuple(_to_int(v) for v in b.ltwh) for b in boxes]
    score = f32(-0.1)
    if p.group_threshold <= 0:
        return [
            Box(b.class_id, tuple(f32(v) for v in r), score, b.rows)
            for b, r in zip(boxes, rects, strict=True)
        ]
    eps = float(f32(p.eps))

    def similar(a: Sequence[int], b: Sequence[int]) -> bool:
        delta = eps * (min(a[2], b[2]) + min(a[3], b[3])) * 0.5
        edges = ((0, 0), (1, 0), (0, 2), (1, 3))  # left, top, right, bottom
        ends = [
            abs((a[k] + (a[s] if s else 0)) - (b[k] + (b[s] if s else 0))) <= delta
            for k, s in edges
        ]
        return all(ends)

    left = list(range(len(rects)))
    clusters: list[list[int]] = []
    while left:  # flood fill from the first rectangle without a cluster
        group, todo = [], [left.pop(0)]
        while todo:
            i = todo.pop()
            group.append(i)
            near = [j for j in left if similar(rects[i], rects[j])]
            left = [j for j in left if j not in near]
            todo += near
        clusters.append(sorted(group))
    means = []
    for group in clusters:
        reciprocal = f32(1) / f32(len(group))
        means.append(
            [_half_even(f32(sum(rects[i][k] for i in group)) * reciprocal) for k in range(4)]
        )
    result = []
    for i, (group, a) in enumerate(zip(clusters, means, strict=True)):
        rows = [r for k in group for r in boxes[k].rows]
        if len(group) <= p.group_threshold:
            out.why.update(dict.fromkeys(rows, "group_threshold"))
            continue
        inside = False
        for j, b in enumerate(means):
            if i == j or len(clusters[j]) <= p.group_threshold:
                continue
            dx, dy = _half_even(b[2] * eps), _half_even(b[3] * eps)
            if (
                a[0] >= b[0] - dx
                and a[1] >= b[1] - dy
                and a[0] + a[2] <= b[0] + b[2] + dx
                and a[1] + a[3] <= b[1] + b[3] + dy
                and (len(clusters[j]) > max(3, len(group)) or len(group) < 3)
            ):
                inside = True
        if inside:
            out.why.update(dict.fromkeys(rows, "contained"))
        else:
            ltwh = tuple(f32(v) for v in a)
            result.append(Box(boxes[group[0]].class_id, ltwh, score, rows, merged=True))
    return result


# --- B.6, one object at a time ---------------------------------------------------------------


def attach(
    ltwh: Sequence[float],
    ratios: tuple[float, float],
    offsets: tuple[int, int],
    frame_wh: tuple[int, int],
    attrs: Mapping[str, int],
    *,
    filtered: bool = False,
    crop: bool = False,
    generation: str = "9.1",
    roi: Sequence[float] | None = None,
    clip: bool = True,
    parent: Sequence[float] | None = None,
) -> tuple[list[np.float32], None] | tuple[None, str]:
    """The rectangle in the frame, or the key of the test that drops it. Source: spec B.6."""
    network = [f32(v) for v in ltwh]
    origin = [0, 0] if roi is None else [int(max(0, v)) for v in roi[:2]]
    pos = [f32(f64(network[k] - f32(offsets[k])) / f64(ratios[k]) + f64(origin[k])) for k in (0, 1)]
    size = [f32(f64(network[k + 2]) / f64(ratios[k])) for k in (0, 1)]
    if roi is not None and clip:
        for k in (0, 1):
            low = f32(roi[k])
            high = low + f32(roi[k + 2])
            if pos[k] + size[k] > high:
                size[k] = high - pos[k]
                if generation == "9.1" and size[k] < 0:
                    size[k] = ZERO
            if pos[k] < low:
                if generation == "9.1":
                    size[k] = size[k] - (low - pos[k])
                    if size[k] < 0:
                        size[k] = ZERO
                pos[k] = low
    if generation == "9.1":
        pos = [ZERO if v < 0 else v for v in pos]
    if filtered:
        return None, "filter-out-class-ids"
    for k, name in ((0, "w"), (1, "h")):
        if size[k] < f32(attrs.get(f"detected-min-{name}", 0)):
            return None, f"detected-min-{name}"
    for k, name in ((0, "w"), (1, "h")):
        most = attrs.get(f"detected-max-{name}", 0)
        if most > 0 and size[k] > f32(most):
            return None, f"detected-max-{name}"
    line = f32(attrs.get("roi-top-offset", 0))
    limit = f32((frame_wh[1] - attrs.get("roi-bottom-offset", 0)) % 2**32)
    if not crop:
        if pos[1] < line:
            return None, "roi-top-offset"
        if pos[1] + size[1] > limit:
            return None, "roi-bottom-offset"
    else:
        if generation == "6.2" and pos[0] < 0:
            pos[0] = ZERO
        if pos[1] < line:
            pos[1] = line
        if pos[0] + size[0] >= f32(frame_wh[0]):
            size[0] = f32(frame_wh[0]) - pos[0]
        if pos[1] + size[1] > limit:
            size[1] = limit - pos[1]
    if parent is not None:
        pos = [pos[0] + f32(parent[0]), pos[1] + f32(parent[1])]
    return [*pos, *size], None
