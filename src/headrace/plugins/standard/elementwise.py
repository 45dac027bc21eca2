"""LReLU, Clip, Normalize, InstanceNormalization, GroupNormalization, Region.

Source: standard-plugins spec 3.6, 3.8, 4.4, 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import floats, integer, number
from headrace.plugins.standard.layer import Decomposition, Interface, Shape, StandardLayer


class LReLU(StandardLayer):
    """x below 0 times `negSlope`."""

    name = "LReLU_TRT"
    interface = "V2"
    fields = (number("negSlope"),)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        return [inputs[0]]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        return [np.where(x < 0, x * np.float32(self.given.negSlope), x)]

    def decompose(self, graph: Decomposition) -> bool:
        graph.op(
            "LeakyRelu", graph.inputs[0], out=graph.outputs[0], alpha=float(self.given.negSlope)
        )
        return True


class Clip(StandardLayer):
    """x cut to `clipMin`..`clipMax`."""

    name = "Clip_TRT"
    interface = "V2"
    fields = (number("clipMin"), number("clipMax"))

    def check(self) -> None:
        g = self.given
        if not g.clipMin < g.clipMax:
            raise self.error(f"clipMin is {g.clipMin}, clipMax {g.clipMax}",
                             expected="clipMin below clipMax")  # fmt: skip

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        return [inputs[0]]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [np.clip(inputs[0], np.float32(self.given.clipMin), np.float32(self.given.clipMax))]

    def decompose(self, graph: Decomposition) -> bool:
        x, y = graph.inputs[0], graph.outputs[0]
        low, high = float(self.given.clipMin), float(self.given.clipMax)
        if graph.opset >= 11:
            graph.op("Clip", x, graph.constant(low), graph.constant(high), out=y)
        else:
            graph.op("Clip", x, out=y, min=low, max=high)
        return True


class Normalize(StandardLayer):
    """L2 norm over the channels, or over channels and places, times a scale."""

    name = "Normalize_TRT"
    interface = "V2Ext"
    fields = (
        floats("weights"),
        integer("acrossSpatial"),
        integer("channelShared"),
        integer("nbWeights", one_of=(1,)),
        number("eps", low=0),
    )

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = self.rank(inputs, 0, 4)
        channels = 1 if self.given.channelShared else shape[1]
        self.agree(len(self.given.weights), channels, "weights, and the channels they scale")
        return [shape]

    @property
    def _axes(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.given.acrossSpatial else (1,)

    @property
    def _divides(self) -> bool:
        # a quirk of the original, kept
        return bool(self.given.acrossSpatial) and not self.given.channelShared

    def _scale(self) -> Array:
        return np.array(self.given.weights, np.float32).reshape(1, -1, 1, 1)

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        norm = np.sqrt((x * x).sum(self._axes, keepdims=True) + np.float32(self.given.eps))
        return [x / norm / self._scale() if self._divides else x / norm * self._scale()]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.dtype != np.float32:
            return False
        x = graph.inputs[0]
        total = graph.reduce_sum(graph.op("Mul", x, x), self._axes)
        norm = graph.op("Sqrt", graph.op("Add", total, graph.constant(self.given.eps)))
        scale = graph.constant(self._scale())
        kind = "Div" if self._divides else "Mul"
        graph.op(kind, graph.op("Div", x, norm), scale, out=graph.outputs[0])
        return True


class InstanceNormalization(StandardLayer):
    """Each channel of each image with mean 0 and variance 1, times a scale, plus a bias.

    Then, if asked for, values below 0 times alpha.
    """

    name = "InstanceNormalization_TRT"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "Dyn"), ("3", "V3"))
    fields = (
        number("epsilon", low=0),
        floats("scales"),
        floats("bias"),
        integer("relu", 0),
        number("alpha", 0.0),
    )

    def check(self) -> None:
        g = self.given
        if len(g.scales) != len(g.bias):
            raise self.error(f"{len(g.scales)} scales and {len(g.bias)} biases",
                             expected="one of each per channel")  # fmt: skip

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = inputs[0]
        if len(shape) < 3:
            raise self.error(f"input 0 of {self.name} has {len(shape)} axes",
                             expected="batch, channels and places")  # fmt: skip
        self.agree(shape[1], len(self.given.scales), "channels and scales")
        return [shape]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        g = self.given
        axes = tuple(range(2, x.ndim))
        spread = (1, -1, *[1] * len(axes))
        centred = x - x.mean(axes, keepdims=True)
        variance = (centred * centred).mean(axes, keepdims=True)
        y = centred / np.sqrt(variance + np.float32(g.epsilon))
        y = y * np.array(g.scales, np.float32).reshape(spread)
        y = y + np.array(g.bias, np.float32).reshape(spread)
        return [np.where(y < 0, y * np.float32(g.alpha), y) if g.relu else y]

    def decompose(self, graph: Decomposition) -> bool:
        g = self.given
        if graph.opset < 6:
            return False
        last = graph.outputs[0]
        y = graph.op(
            "InstanceNormalization",
            graph.inputs[0],
            graph.constant(g.scales),
            graph.constant(g.bias),
            out=None if g.relu else last,
            epsilon=float(g.epsilon),
        )
        if g.relu:
            graph.op("LeakyRelu", y, out=last, alpha=float(g.alpha))
        return True


class GroupNormalization(StandardLayer):
    """Groups of channels with mean 0 and variance 1, times a scale and plus a bias per channel."""

    name = "GroupNormalizationPlugin"
    interface = "Dyn"
    fields = (number("eps", low=0), integer("num_groups", above=0))
    inputs = (3, 3)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = self.rank(inputs, 0, 3, 4, 5)
        for i in (1, 2):
            self.agree(self.rank(inputs, i, 1)[0], shape[1], "channels, and scales or biases")
        if isinstance(shape[1], int) and shape[1] % self.given.num_groups:
            raise self.error(f"{shape[1]} channels in {self.given.num_groups} groups",
                             expected="groups of the same size")  # fmt: skip
        return [shape]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        x, scale, bias = inputs
        groups = x.reshape(
            len(x), self.given.num_groups, math.prod(x.shape[1:]) // self.given.num_groups
        )
        centred = groups - groups.mean(2, keepdims=True)
        variance = (centred * centred).mean(2, keepdims=True)
        y = (centred / np.sqrt(variance + np.float32(self.given.eps))).reshape(x.shape)
        spread = (1, -1, *[1] * (x.ndim - 2))
        return [y * scale.reshape(spread) + bias.reshape(spread)]

    def decompose(self, graph: Decomposition) -> bool:
        shape = graph.shapes[0]
        if graph.opset < 13 or shape is None:
            return False
        groups = self.given.num_groups
        x, scale, bias = graph.inputs
        flat = graph.op("Reshape", x, graph.integers([0, groups, -1]))
        ones, zeros = graph.constant([1.0] * groups), graph.constant([0.0] * groups)
        y = graph.op("InstanceNormalization", flat, ones, zeros, epsilon=float(self.given.eps))
        y = graph.op("Reshape", y, graph.op("Shape", x))
        spread = graph.integers([1, -1, *[1] * (len(shape) - 2)])
        y = graph.op("Mul", y, graph.op("Reshape", scale, spread))
        graph.op("Add", y, graph.op("Reshape", bias, spread), out=graph.outputs[0])
        return True


class YoloRegion(StandardLayer):
    """The last layer of YOLO v2: sigmoid of places and of confidence, softmax of classes."""

    name = "Region_TRT"
    interface = "V2Ext"
    fields = (
        integer("num", above=0),
        integer("coords", 4, one_of=(4,)),
        integer("classes", above=0),
    )
    refused = MappingProxyType({"smTree": "a softmax tree is not supported"})

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        g = self.given
        shape = self.rank(inputs, 0, 4)
        self.agree(shape[1], g.num * (g.coords + 1 + g.classes), "channels, and those of the boxes")
        return [shape]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        g = self.given
        blocks = x.reshape(len(x), g.num, g.coords + 1 + g.classes, *x.shape[2:])
        y = blocks.copy()
        for part in (slice(0, 2), slice(g.coords, g.coords + 1)):
            y[:, :, part] = 1 / (1 + np.exp(-blocks[:, :, part]))
        logits = blocks[:, :, g.coords + 1 :]
        powers = np.exp(logits - logits.max(2, keepdims=True))
        y[:, :, g.coords + 1 :] = powers / powers.sum(2, keepdims=True)
        return [y.reshape(x.shape)]

    def decompose(self, graph: Decomposition) -> bool:
        shape = graph.shapes[0]
        if graph.opset < 13 or shape is None or None in shape[1:]:
            return False
        g = self.given
        extents = [d for d in shape[2:] if d is not None]
        channels = g.coords + 1 + g.classes
        split = graph.integers([0, g.num, channels, *extents])
        blocks = graph.op("Reshape", graph.inputs[0], split)

        def part(start: int, stop: int) -> str:
            ends = (graph.integers([start]), graph.integers([stop]), graph.integers([2]))
            return graph.op("Slice", blocks, *ends)

        parts = [
            graph.op("Sigmoid", part(0, 2)),
            part(2, g.coords),
            graph.op("Sigmoid", part(g.coords, g.coords + 1)),
            graph.op("Softmax", part(g.coords + 1, channels), axis=2),
        ]
        joined = graph.op("Concat", *parts, axis=2)
        whole = graph.integers([0, g.num * channels, *extents])
        graph.op("Reshape", joined, whole, out=graph.outputs[0])
        return True
