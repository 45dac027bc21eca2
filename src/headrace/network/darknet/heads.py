"""The detection heads: from cells and anchors to boxes.

What comes out are rows (x1, y1, x2, y2, score, class), in pixels of the network's input, one for
each anchor and cell: anchors outermost, then rows, then columns. That is what the well-known YOLO
library for DeepStream gives, so its parser, and the built-in one for its name, read it.
Source: custom-library facts 4.1.
"""

from __future__ import annotations

import numpy as np

from headrace.network.darknet.lowering import DarknetLowering, Lower
from headrace.network.graph_builder import BATCH, Blob

_MAX_ANCHORS = 1000


def _yolo(ctx: DarknetLowering) -> None:
    section = ctx.section
    anchors = _anchors(ctx)
    mask = section.integers("mask") or list(range(len(anchors)))
    if any(m >= len(anchors) for m in mask):
        raise section.error("mask", f"mask={section.text('mask')}", f"below {len(anchors)} anchors")
    ctx.heads.append(_Head(ctx, anchors[mask]).yolo())


def _region(ctx: DarknetLowering) -> None:
    if ctx.section.text("tree"):
        raise ctx.section.error("tree", "a tree of classes is not supported")
    ctx.heads.append(_Head(ctx, _anchors(ctx)).region())


def _anchors(ctx: DarknetLowering) -> np.ndarray:
    values = ctx.section.numbers("anchors")
    count = ctx.section.integer("num", len(values) // 2 or 1, least=1, most=_MAX_ANCHORS)
    if len(values) < 2 * count:
        raise ctx.error(f"{len(values)} numbers for {count} anchors", expected="width and height "
                        "of each")  # fmt: skip
    return np.array(values[: 2 * count], np.float32).reshape(count, 2)


class _Head:
    def __init__(self, ctx: DarknetLowering, anchors: np.ndarray) -> None:
        self.ctx = ctx
        self.anchors = anchors
        self.classes = ctx.section.integer("classes", 20, least=1)
        x = ctx.image()
        self.rows, self.columns = x.shape[2:]
        self.values = 5 + self.classes
        count = len(anchors)
        if x.shape[1] != count * self.values:
            raise ctx.error(
                f"{x.shape[1]} channels for {count} anchors and {self.classes} classes",
                expected=f"{count * self.values}: filters of the layer before",
            )
        self.shape = (BATCH, count, self.rows, self.columns)
        parts = ctx.graph.reshape(x, (BATCH, count, self.values, self.rows, self.columns))
        self.cells = ctx.graph.transpose(parts, (0, 1, 3, 4, 2))

    def part(self, start: int, end: int) -> Blob:
        return self.ctx.graph.slice(self.cells, 4, start, end)

    def yolo(self) -> Blob:
        ctx, section = self.ctx, self.ctx.section
        scale = section.number("scale_x_y", 1.0)
        raw = bool(section.integer("new_coords", 0))
        centre, size, scores = self.part(0, 2), self.part(2, 4), self.part(4, self.values)
        if not raw:
            centre, scores = ctx.same("Sigmoid", centre), ctx.same("Sigmoid", scores)
        if scale != 1:
            centre = ctx.same("Mul", centre, ctx.constant(scale))
            centre = ctx.same("Add", centre, ctx.constant(-(scale - 1) / 2))
        if raw:
            doubled = ctx.same("Mul", size, ctx.constant(2.0))
            size = ctx.same("Mul", doubled, doubled)
        else:
            size = ctx.same("Exp", size)
        objectness = ctx.graph.slice(scores, 4, 0, 1)
        classes = ctx.graph.slice(scores, 4, 1, self.values - 4)
        return self.boxes(centre, size, self.anchors, objectness, classes)

    def region(self) -> Blob:
        """Anchors are in cells, classes exclude each other."""
        ctx = self.ctx
        centre = ctx.same("Sigmoid", self.part(0, 2))
        size = ctx.same("Exp", self.part(2, 4))
        objectness = ctx.same("Sigmoid", self.part(4, 5))
        classes = ctx.same("Softmax", self.part(5, self.values), axis=4)
        return self.boxes(centre, size, self.anchors * self.cell(), objectness, classes)

    def cell(self) -> np.ndarray:
        """Width and height of a cell in pixels."""
        height, width = self.ctx.size
        return np.array([width / self.columns, height / self.rows], np.float32)

    def boxes(
        self, centre: Blob, size: Blob, anchors: np.ndarray, objectness: Blob, classes: Blob
    ) -> Blob:
        """`centre` is within the cell, 0 to 1; `size` a factor of the anchors (pixels)."""
        ctx, pair = self.ctx, (*self.shape, 2)
        across = np.zeros((1, 1, 1, self.columns, 2), np.float32)
        across[..., 0] = np.arange(self.columns)
        down = np.zeros((1, 1, self.rows, 1, 2), np.float32)
        down[..., 1] = np.arange(self.rows)[:, None]
        centre = ctx.op("Add", [centre, ctx.constant(across, name="columns")], pair)
        centre = ctx.op("Add", [centre, ctx.constant(down, name="rows")], pair)
        centre = ctx.op("Mul", [centre, ctx.constant(self.cell())], pair)
        half = ctx.constant(anchors.reshape(1, -1, 1, 1, 2) / 2, name="anchors")
        half = ctx.op("Mul", [size, half], pair)
        corners = [ctx.same("Sub", centre, half), ctx.same("Add", centre, half)]
        one = (*self.shape, 1)
        best = ctx.op("ReduceMax", [classes], one, axes=[4], keepdims=1)
        score = ctx.same("Mul", objectness, best)
        label = ctx.op("ArgMax", [classes], one, dtype=np.int64, axis=4, keepdims=1)
        label = ctx.op("Cast", [label], one, to=1)
        table = ctx.op("Concat", [*corners, score, label], (*self.shape, 6), axis=4)
        return ctx.graph.reshape(table, (BATCH, len(self.anchors) * self.rows * self.columns, 6))


HEADS: dict[str, Lower] = {"region": _region, "yolo": _yolo}
