"""Digits as a hand draws them: strokes of a pen, sized and centred as MNIST's."""

import math

import numpy as np
from PIL import Image, ImageDraw


def arc(cx, cy, rx, ry, start, end, steps=24):
    """Points of an ellipse from angle to angle (degrees, clockwise from the right)."""
    angles = [math.radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(cx + rx * math.cos(a), cy + ry * math.sin(a)) for a in angles]


STROKES = {
    0: [arc(0.5, 0.5, 0.3, 0.48, 0, 360)],
    1: [[(0.56, 0.02), (0.44, 0.98)]],
    2: [[*arc(0.48, 0.28, 0.3, 0.26, 190, 395), (0.15, 0.95)], [(0.15, 0.95), (0.88, 0.92)]],
    3: [arc(0.45, 0.27, 0.3, 0.25, 200, 430) + arc(0.45, 0.73, 0.34, 0.25, 280, 520)],
    4: [[(0.25, 0.05), (0.18, 0.5), (0.78, 0.5)], [(0.72, 0.08), (0.64, 0.98)]],
    5: [[(0.82, 0.06), (0.32, 0.06), (0.27, 0.42), *arc(0.46, 0.67, 0.32, 0.28, 230, 510)]],
    6: [[(0.62, 0.03), (0.36, 0.35), (0.25, 0.68), *arc(0.47, 0.75, 0.22, 0.21, 180, 560)]],
    7: [[(0.15, 0.08), (0.82, 0.08), (0.42, 0.98)]],
    8: [arc(0.5, 0.26, 0.22, 0.24, 90, 450) + arc(0.48, 0.74, 0.27, 0.24, 270, 630)],
    9: [[*arc(0.48, 0.28, 0.24, 0.24, 0, 360), (0.7, 0.28), (0.62, 0.98)]],
}


def digit(value, *, width=2.6, slant=0.0, scale=8):
    """(28, 28) float32, 0 to 1, white on black; `width` of the pen in pixels."""
    size = 20 * scale
    canvas = Image.new("L", (28 * scale,) * 2)
    draw = ImageDraw.Draw(canvas)
    for stroke in STROKES[value]:
        points = [
            (4 * scale + (x + slant * (0.5 - y)) * size, 4 * scale + y * size) for x, y in stroke
        ]
        draw.line(points, fill=255, width=round(width * scale), joint="curve")
        for x, y in points:
            r = width * scale / 2
            draw.ellipse((x - r, y - r, x + r, y + r), fill=255)
    small = np.asarray(canvas.resize((28, 28), Image.Resampling.BOX), np.float32) / 255
    rows, columns = np.mgrid[:28, :28]
    dy = round(13.5 - float((rows * small).sum() / small.sum()))
    dx = round(13.5 - float((columns * small).sum() / small.sum()))
    return np.roll(small, (dy, dx), (0, 1))
