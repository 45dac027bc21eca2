"""PriorBox and GridAnchor: boxes that depend on shapes alone.

Source: standard-plugins spec 3.9, 3.10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.network.prior_boxes import cell_ratios, cell_sizes, prior_boxes
from headrace.plugins.standard.fields import floats, integer, integers, number
from headrace.plugins.standard.layer import Decomposition, Interface, Shape, StandardLayer

_MAX_BOXES = 2**22  # of one layer; SSD 512 has 24,564 in all


def _with_variances(boxes: Array, variances: Sequence[float]) -> Array:
    """(1, 2, boxes * 4, 1): boxes, and the variances of each."""
    flat = boxes.reshape(-1, 4).astype(np.float32)
    spread = np.broadcast_to(np.array(variances, np.float32), flat.shape)
    return np.stack([flat.ravel(), spread.ravel()])[None, :, :, None]


def _constant(graph: Decomposition, priors: Array, out: str) -> None:
    """The same priors for each image of the first input."""
    x = graph.inputs[0]
    batch = graph.op("Slice", graph.op("Shape", x), graph.integers([0]), graph.integers([1]))
    shape = graph.op("Concat", batch, graph.integers([1, 1, 1]), axis=0)
    graph.op("Expand", graph.constant(priors), shape, out=out)


class PriorBox(StandardLayer):
    """Boxes of a feature map's cells, in 0..1 of the image, and their variances."""

    name = "PriorBox_TRT"
    interface = "V2Ext"
    fields = (
        floats("minSize", above=0),
        floats("maxSize", ()),
        floats("aspectRatios", (), above=0),
        integer("flip", 1),
        integer("clip", 0),
        floats("variance", (0.1, 0.1, 0.2, 0.2), length=4),
        integer("imgH", 0, low=0),
        integer("imgW", 0, low=0),
        number("stepH", 0.0, low=0),
        number("stepW", 0.0, low=0),
        number("offset", 0.5),
    )
    inputs = (2, 2)

    def check(self) -> None:
        g = self.given
        if not g.minSize:
            raise self.error("minSize is empty", expected="one size or more")
        pairs = zip(g.minSize, g.maxSize, strict=False)
        if g.maxSize and (
            len(g.maxSize) != len(g.minSize) or any(large <= small for small, large in pairs)
        ):
            raise self.error(f"maxSize is {g.maxSize}",
                             expected=f"none, or one above each of {g.minSize}")  # fmt: skip

    def _sizes(self) -> list[tuple[float, float]]:
        g = self.given
        return cell_sizes(g.minSize, g.maxSize, cell_ratios(g.aspectRatios, flip=bool(g.flip)))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, _, height, width = self.rank(inputs, 0, 4)
        self.rank(inputs, 1, 4)
        cells = self.number(height, "height") * self.number(width, "width")
        if cells == 0:
            raise self.error(f"a feature map of {height} x {width}", expected="at least 1 x 1")
        count = cells * len(self._sizes())
        if count > _MAX_BOXES:
            raise self.error(f"{count} boxes", expected=f"at most {_MAX_BOXES}")
        return [(batch, 2, count * 4, 1)]

    def _priors(self, cells: Sequence[int], input_size: Sequence[int]) -> Array:
        g = self.given
        image = (g.imgH or input_size[0], g.imgW or input_size[1])
        step = (g.stepH or image[0] / cells[0], g.stepW or image[1] / cells[1])
        boxes = prior_boxes(
            (cells[0], cells[1]), self._sizes(), image, step, g.offset, clip=bool(g.clip)
        )
        return _with_variances(boxes, g.variance)

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        features, pixels = inputs
        priors = self._priors(features.shape[2:], pixels.shape[2:])
        return [np.broadcast_to(priors, (len(features), *priors.shape[1:]))]

    def decompose(self, graph: Decomposition) -> bool:
        shapes = graph.shapes
        if graph.opset < 13 or any(s is None or None in s[2:] for s in shapes):
            return False
        features, pixels = ([d for d in s[2:] if d is not None] for s in shapes if s)
        _constant(graph, self._priors(features, pixels), graph.outputs[0])
        return True


class GridAnchorRect(StandardLayer):
    """Boxes of the cells of several feature maps, one output for each, and their variances.

    Inputs are not looked at, only their batch.
    """

    name = "GridAnchorRect_TRT"
    interface: ClassVar[Interface] = "V2Ext"
    fields = (
        number("minSize", 0.2, above=0),
        number("maxSize", 0.95, above=0),
        floats("aspectRatios", above=0),
        integers("featureMapShapes", above=0),
        floats("variance", (0.1, 0.1, 0.2, 0.2), length=4),
        integer("numLayers", 6, above=0),
    )
    inputs = (0, 1024)

    def check(self) -> None:
        g = self.given
        if g.maxSize < g.minSize:
            raise self.error(f"maxSize is {g.maxSize}", expected=f"at least {g.minSize}")
        if len(g.aspectRatios) < 3:
            raise self.error(f"{len(g.aspectRatios)} aspectRatios", expected="3 or more")
        self._maps()
        self.outputs = int(g.numLayers)

    def _maps(self) -> list[tuple[int, int]]:
        """Height and width of each feature map."""
        shapes, layers = self.given.featureMapShapes, self.given.numLayers
        if len(shapes) != 2 * layers:
            raise self.error(f"{len(shapes)} featureMapShapes", expected=f"{2 * layers}: the "
                             f"height and width of each of numLayers = {layers}")  # fmt: skip
        return list(zip(shapes[::2], shapes[1::2], strict=True))

    def _shapes_of(self, layer: int) -> list[tuple[float, float]]:
        """Aspect ratio and scale of the boxes of a cell."""
        g = self.given
        spread = max(g.numLayers - 1, 1)
        scale = [g.minSize + (g.maxSize - g.minSize) * k / spread for k in range(g.numLayers)]
        scale.append(1.0)
        if layer == 0:
            return list(zip(g.aspectRatios[:3], (0.1, scale[0], scale[0]), strict=True))
        own = [(ratio, scale[layer]) for ratio in g.aspectRatios]
        return [*own, (1.0, math.sqrt(scale[layer] * scale[layer + 1]))]

    def _priors(self, layer: int) -> Array:
        height, width = self._maps()[layer]
        sizes = [(s * math.sqrt(r), s / math.sqrt(r)) for r, s in self._shapes_of(layer)]
        boxes = prior_boxes((height, width), sizes, (1, 1), (1 / height, 1 / width), 0.5)
        return _with_variances(boxes, self.given.variance)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch = inputs[0][0] if inputs and inputs[0] else 1
        result: list[Shape] = []
        for k, (height, width) in enumerate(self._maps()):
            count = height * width * len(self._shapes_of(k))
            if count > _MAX_BOXES:
                raise self.error(f"{count} boxes", expected=f"at most {_MAX_BOXES}")
            result.append((batch, 2, count * 4, 1))
        return result

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        batch = len(inputs[0]) if inputs else 1
        every = [self._priors(k) for k in range(self.outputs)]
        return [np.broadcast_to(p, (batch, *p.shape[1:])) for p in every]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.opset < 13 or len(graph.outputs) > self.outputs:
            return False
        for k, out in enumerate(graph.outputs):
            if not out:
                continue
            if graph.inputs:
                _constant(graph, self._priors(k), out)
            else:
                graph.op("Identity", graph.constant(self._priors(k)), out=out)
        return True


class GridAnchor(GridAnchorRect):
    """The same for square feature maps: one length for each."""

    name = "GridAnchor_TRT"

    def _maps(self) -> list[tuple[int, int]]:
        shapes, layers = self.given.featureMapShapes, self.given.numLayers
        if len(shapes) == 1:
            shapes = shapes * layers
        if len(shapes) != layers:
            raise self.error(f"{len(shapes)} featureMapShapes",
                             expected=f"one length for each of numLayers = {layers}")  # fmt: skip
        return [(n, n) for n in shapes]
