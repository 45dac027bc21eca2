"""What layers compute, in slow and plain NumPy; written from the definitions, sharing no code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np


def windows(
    x: np.ndarray, window: Sequence[int], stride: Sequence[int], pre: Sequence[int],
    out: Sequence[int], dilation: Sequence[int],
):  # fmt: skip
    """(place of the output, [(place in the window, place in the input)] that lie inside)."""
    for place in itertools.product(*map(range, out)):
        inside = []
        for offset in itertools.product(*map(range, window)):
            at = tuple(
                p * s - a + o * d
                for p, s, a, o, d in zip(place, stride, pre, offset, dilation, strict=True)
            )
            if all(0 <= i < n for i, n in zip(at, x.shape[2:], strict=True)):
                inside.append((offset, at))
        yield place, inside


def paddings(
    mode: str, sizes: Sequence[int], window: Sequence[int], stride: Sequence[int],
    pre: Sequence[int], post: Sequence[int], dilation: Sequence[int],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """(extents of the output, padding before)."""
    outs, before = [], []
    for n, k, s, a, b, d in zip(sizes, window, stride, pre, post, dilation, strict=True):
        reach = d * (k - 1) + 1
        if mode.startswith("SAME"):
            out = math.ceil(n / s)
            total = max(0, (out - 1) * s + reach - n)
            less = total // 2
            a = less if mode == "SAME_UPPER" else total - less
        elif mode == "EXPLICIT_ROUND_UP":
            out = math.ceil((n + a + b - reach) / s) + 1
        else:
            out = math.floor((n + a + b - reach) / s) + 1
        outs.append(out)
        before.append(a)
    return outs, before


def convolution(x, w, bias, stride, pre, post, dilation, groups, mode):
    out, before = paddings(mode, x.shape[2:], w.shape[2:], stride, pre, post, dilation)
    maps, per_group = w.shape[0], w.shape[1]
    y = np.zeros((x.shape[0], maps, *out), np.float64)
    for place, inside in windows(x, w.shape[2:], stride, before, out, dilation):
        for m in range(maps):
            group = m // (maps // groups)
            channels = slice(group * per_group, (group + 1) * per_group)
            for offset, at in inside:
                taken = x[(slice(None), channels, *at)]
                y[(slice(None), m, *place)] += taken @ w[(m, slice(None), *offset)]
    return y + (0 if bias is None else bias.reshape(1, -1, *[1] * len(out)))


def deconvolution(x, w, stride, pre, post, dilation, groups):
    sizes = [
        (n - 1) * s + d * (k - 1) + 1 - a - b
        for n, s, d, k, a, b in zip(
            x.shape[2:], stride, dilation, w.shape[2:], pre, post, strict=True
        )
    ]
    maps = w.shape[1] * groups
    y = np.zeros((x.shape[0], maps, *sizes), np.float64)
    per_in = x.shape[1] // groups
    for place in itertools.product(*map(range, x.shape[2:])):
        for offset in itertools.product(*map(range, w.shape[2:])):
            at = tuple(
                p * s + o * d - a
                for p, s, o, d, a in zip(place, stride, offset, dilation, pre, strict=True)
            )
            if not all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
                continue
            for c in range(x.shape[1]):
                g = c // per_in
                for m in range(w.shape[1]):
                    y[(slice(None), g * w.shape[1] + m, *at)] += (
                        x[(slice(None), c, *place)] * w[(c, m, *offset)]
                    )
    return y


def pooling(x, kind, window, stride, pre, post, mode, excludes, blend=0.0):
    ones = [1] * len(window)
    out, before = paddings(mode, x.shape[2:], window, stride, pre, post, ones)
    top = np.full((*x.shape[:2], *out), -np.inf)
    mean = np.zeros((*x.shape[:2], *out))
    for place, inside in windows(x, window, stride, before, out, ones):
        taken = np.stack([x[(slice(None), slice(None), *at)] for _, at in inside], -1)
        top[(slice(None), slice(None), *place)] = taken.max(-1)
        count = len(inside) if excludes else int(np.prod(window))
        mean[(slice(None), slice(None), *place)] = taken.sum(-1, dtype=np.float64) / count
    return {"MAX": top, "AVERAGE": mean, "MAX_AVERAGE_BLEND": (1 - blend) * top + blend * mean}[
        kind
    ]


def place_of(i: int, out: int, size: int, how: str) -> float:
    if how == "ALIGN_CORNERS":
        return i * (size - 1) / (out - 1) if out > 1 else 0.0
    scale = out / size
    return (i + 0.5) / scale - 0.5 if how == "HALF_PIXEL" else i / scale


_ROUND: dict[str, Callable[[float], int]] = {
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "HALF_UP": lambda v: math.floor(v + 0.5),
    "HALF_DOWN": lambda v: math.ceil(v - 0.5),
}


def resize(x, out, mode, how, rounding="FLOOR"):
    y = x.astype(np.float64)
    for axis, length in enumerate(out):
        size = x.shape[axis]
        if size == length:
            continue
        rows = []
        for i in range(length):
            at = place_of(i, length, size, how)
            if mode == "NEAREST":
                index = min(max(_ROUND[rounding](at), 0), size - 1)
                rows.append(np.take(y, index, axis))
            else:
                at = min(max(at, 0.0), size - 1.0)
                low = math.floor(at)
                high = min(low + 1, size - 1)
                part = at - low
                rows.append(np.take(y, low, axis) * (1 - part) + np.take(y, high, axis) * part)
        y = np.stack(rows, axis)
    return y


def slice_(x, start, size, stride, mode, fill=0.0):
    y = np.full(size, fill, x.dtype)
    for place in itertools.product(*map(range, size)):
        at = [s + p * t for s, p, t in zip(start, place, stride, strict=True)]
        inside = True
        for axis, i in enumerate(at):
            n = x.shape[axis]
            if 0 <= i < n:
                continue
            inside = False
            if mode == "WRAP":
                at[axis] = i % n
            elif mode == "CLAMP":
                at[axis] = min(max(i, 0), n - 1)
            elif mode == "REFLECT":
                while not 0 <= at[axis] < n:
                    at[axis] = -at[axis] if at[axis] < 0 else 2 * (n - 1) - at[axis]
        if inside or mode != "FILL":
            y[place] = x[tuple(at)]
    return y


def iou(a, b, centre: bool) -> float:
    if centre:
        a, b = (
            [v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2] for v in (a, b)
        )
    else:
        a, b = (
            [min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])] for v in (a, b)
        )
    w = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    h = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h
    return w * h / area if area > 0 else 0.0


def nms(boxes, scores, most, iou_limit=0.0, least=0.0, centre=False, limit=5000):
    rows = []
    for image in range(scores.shape[0]):
        order = np.argsort(-scores[image].reshape(-1), kind="stable")[:limit]
        found = []
        for c in range(scores.shape[2]):
            kept: list[int] = []
            for n in sorted(
                (i // scores.shape[2] for i in order if i % scores.shape[2] == c),
                key=lambda n: (-scores[image, n, c], n),
            ):
                box = boxes[image, n] if boxes.ndim == 3 else boxes[image, n, c]
                others = [boxes[image, k] if boxes.ndim == 3 else boxes[image, k, c] for k in kept]
                if scores[image, n, c] <= least or len(kept) >= most:
                    continue
                if all(iou(box, other, centre) <= iou_limit for other in others):
                    kept.append(n)
            found += [(image, c, n) for n in kept]
        rows += sorted(found, key=lambda r: -scores[r[0], r[2], r[1]])
    return np.array(rows, np.int32).reshape(-1, 3)
