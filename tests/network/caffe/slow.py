"""Slow references: what each layer means, written as loops over elements or plain sums."""

import math

import numpy as np


def conv(x, w, b, stride, pad, dilation, group):
    n, _, h, wd = x.shape
    m, cg, kh, kw = w.shape
    oh = (h + 2 * pad[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (wd + 2 * pad[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, m, oh, ow))
    per = m // group
    for o in range(m):
        for i in range(oh):
            for j in range(ow):
                total = np.full(n, b[o], np.float64)
                for a in range(kh):
                    for e in range(kw):
                        r = i * stride[0] - pad[0] + a * dilation[0]
                        s = j * stride[1] - pad[1] + e * dilation[1]
                        if 0 <= r < h and 0 <= s < wd:
                            first = o // per * cg
                            total += x[:, first : first + cg, r, s] @ w[o, :, a, e]
                y[:, o, i, j] = total
    return y


def deconv(x, w, b, stride, pad, group):
    n, c, h, wd = x.shape
    _, mg, kh, kw = w.shape
    full = np.zeros((n, mg * group, stride * (h - 1) + kh, stride * (wd - 1) + kw))
    per = c // group
    for i in range(c):
        g = i // per
        for r in range(h):
            for s in range(wd):
                part = x[:, i, r, s][:, None, None, None] * w[i]
                full[:, g * mg : g * mg + mg, r * stride : r * stride + kh,
                     s * stride : s * stride + kw] += part  # fmt: skip
    full += b[None, :, None, None]
    return full[:, :, pad : full.shape[2] - pad, pad : full.shape[3] - pad]


def pool(x, kernel, stride, pad, method):
    """Windows rounded up, clipped; averages divide by the window within the padded input."""
    n, c, h, w = x.shape
    sides = []
    for length, k, s, p in zip((h, w), kernel, stride, pad, strict=True):
        side = math.ceil((length + 2 * p - k) / s) + 1
        if (pad[0] or pad[1]) and (side - 1) * s >= length + p:
            side -= 1
        sides.append(side)
    y = np.zeros((n, c, *sides))
    for i in range(sides[0]):
        for j in range(sides[1]):
            top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
            bottom = min(top + kernel[0], h + pad[0])
            right = min(left + kernel[1], w + pad[1])
            count = (bottom - top) * (right - left)
            window = x[:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
            if method == "MAX":
                y[:, :, i, j] = window.max(axis=(2, 3))
            else:
                y[:, :, i, j] = window.sum(axis=(2, 3)) / count
    return y


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def lrn_across(x, size, alpha, beta, k):
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - size // 2) : c + size // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha / size * (near**2).sum(axis=1)) ** beta
    return y


def lrn_within(x, size, alpha, beta):
    y = np.empty_like(x)
    half = size // 2
    for i in range(x.shape[2]):
        for j in range(x.shape[3]):
            near = x[:, :, max(0, i - half) : i + half + 1, max(0, j - half) : j + half + 1]
            mean = (near**2).sum(axis=(2, 3)) / size**2
            y[:, :, i, j] = x[:, :, i, j] * (1 + alpha * mean) ** -beta
    return y


def interp(x, height, width):
    n, c, h, w = x.shape
    y = np.empty((n, c, height, width))
    for i in range(height):
        for j in range(width):
            r = i * (h - 1) / (height - 1) if height > 1 else 0
            s = j * (w - 1) / (width - 1) if width > 1 else 0
            r0, s0 = int(r), int(s)
            r1, s1 = min(r0 + 1, h - 1), min(s0 + 1, w - 1)
            a, b = r - r0, s - s0
            y[:, :, i, j] = (1 - a) * ((1 - b) * x[:, :, r0, s0] + b * x[:, :, r0, s1]) + a * (
                (1 - b) * x[:, :, r1, s0] + b * x[:, :, r1, s1]
            )
    return y


def prior_boxes(height, width, image, least, largest, ratios, *, flip, clip, step, offset):
    """One list of boxes [x1, y1, x2, y2], cell by cell."""
    all_ratios = [1.0]
    for ratio in ratios:
        if any(abs(ratio - known) < 1e-6 for known in all_ratios):
            continue
        all_ratios.append(ratio)
        if flip:
            all_ratios.append(1 / ratio)
    step_h, step_w = step or (image[0] / height, image[1] / width)
    boxes = []
    for row in range(height):
        for column in range(width):
            cx, cy = (column + offset) * step_w, (row + offset) * step_h
            for i, small in enumerate(least):
                sizes = [(small, small)]
                if largest:
                    sizes.append((math.sqrt(small * largest[i]),) * 2)
                sizes += [(small * r**0.5, small / r**0.5) for r in all_ratios[1:]]
                for w, h in sizes:
                    box = [(cx - w / 2) / image[1], (cy - h / 2) / image[0],
                           (cx + w / 2) / image[1], (cy + h / 2) / image[0]]  # fmt: skip
                    boxes.append([min(max(v, 0), 1) for v in box] if clip else box)
    return np.array(boxes)


def decode(prior, variance, t, code, *, in_target=False):
    if in_target:
        variance = (1, 1, 1, 1)
    x1, y1, x2, y2 = prior
    w, h = x2 - x1, y2 - y1
    d = [v * a for v, a in zip(variance, t, strict=True)]
    if code == "CORNER":
        return [x1 + d[0], y1 + d[1], x2 + d[2], y2 + d[3]]
    if code == "CORNER_SIZE":
        return [x1 + d[0] * w, y1 + d[1] * h, x2 + d[2] * w, y2 + d[3] * h]
    cx, cy = d[0] * w + (x1 + x2) / 2, d[1] * h + (y1 + y2) / 2
    bw, bh = math.exp(d[2]) * w, math.exp(d[3]) * h
    return [cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2]


def overlap(a, b):
    """Corners that cross change places, as in TensorRT's plugin."""
    a, b = ([*np.minimum(r[:2], r[2:]), *np.maximum(r[:2], r[2:])] for r in (a, b))
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    both = w * h
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return both / (area - both)


def detections(boxes, scores, *, background, threshold, nms, top_k, keep):
    """Rows (label, score, box) of one image, best first.

    boxes: (classes or 1, priors, 4); scores: (priors, classes).
    """
    rows = []
    for label in range(scores.shape[1]):
        if label == background:
            continue
        own = boxes[label if len(boxes) > 1 else 0]
        order = [i for i in np.argsort(-scores[:, label], kind="stable")
                 if threshold is None or scores[i, label] > threshold]  # fmt: skip
        kept = []
        for i in order[:top_k] if top_k >= 0 else order:
            if all(overlap(own[i], own[j]) <= nms for j in kept):
                kept.append(i)
        rows += [(label, scores[i, label], *own[i]) for i in kept]
    rows.sort(key=lambda row: -row[1])
    return rows[:keep] if keep >= 0 else rows
