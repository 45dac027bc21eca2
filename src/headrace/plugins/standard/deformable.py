"""Layers that read at computed places: deformable attention and convolution.

Source: standard-plugins spec 4.7, 4.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core import _native
from headrace._core.types import Array
from headrace.plugins.standard.fields import integer, integers
from headrace.plugins.standard.layer import Extent, Interface, Shape, StandardLayer


class MultiscaleDeformableAttention(StandardLayer):
    """Weighted sums of bilinear samples of several maps, 0 outside, for each query and head."""

    name = "MultiscaleDeformableAttnPlugin_TRT"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    native = True
    inputs = (5, 5)
    integer_inputs = frozenset((1, 2))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, _, heads, depth = self.rank(inputs, 0, 4)
        levels, two = self.rank(inputs, 1, 2)
        starts = self.rank(inputs, 2, 1)
        locations, weights = self.rank(inputs, 3, 6), self.rank(inputs, 4, 5)
        self.agree(two, 2, "numbers of a level's shape")
        self.agree(starts[0], levels, "starts, and levels")
        self.agree(locations[5], 2, "numbers of a place")
        for i, name in enumerate(("images", "queries", "heads", "levels", "points")):
            self.agree(locations[i], weights[i], f"{name} of places and of weights")
        self.agree(locations[0], batch, "images of places and of the value")
        self.agree(locations[2], heads, "heads of places and of the value")
        self.agree(locations[3], levels, "levels of places and of the value")
        return [(batch, locations[1], heads, depth)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        value, shapes, starts, locations, weights = inputs
        sizes = shapes.astype(np.int64)
        ends = starts.astype(np.int64) + sizes.prod(axis=1)
        if (sizes < 0).any() or (starts < 0).any() or (ends > value.shape[1]).any():
            raise self.error(
                f"levels of shape {shapes.tolist()} from {starts.tolist()} on",
                expected=f"parts of the {value.shape[1]} places of the value",
            )
        batch, _, heads, depth = value.shape
        out = np.empty((batch, locations.shape[1], heads, depth), np.float32)
        floats = (np.ascontiguousarray(a, np.float32) for a in (value, locations, weights))
        dense, where, factors = floats
        _native.deformable_attention(
            dense,
            np.ascontiguousarray(shapes, np.int32),
            np.ascontiguousarray(starts, np.int32),
            where,
            factors,
            out,
        )
        return [out]


class ModulatedDeformConv2d(StandardLayer):
    """DCN v2: a convolution with taps moved by offsets and weighted by a mask."""

    name = "ModulatedDeformConv2d"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    native = True
    fields = (
        integers("stride", length=2, above=0),
        integers("padding", length=2, low=0),
        integers("dilation", length=2, above=0),
        integer("group", above=0),
        integer("deformable_group", above=0),
    )
    inputs = (4, 5)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        g = self.given
        batch, channels, height, width = self.rank(inputs, 0, 4)
        offset, mask, weight = (self.rank(inputs, i, 4) for i in (1, 2, 3))
        out_channels, per_group, kernel_y, kernel_x = weight
        self.agree(channels, per_group * g.group, "channels, and those of the weights")
        for extent, what in ((channels, "channels"), (out_channels, "output channels")):
            if isinstance(extent, int) and extent % g.group:
                raise self.error(f"{extent} {what} in {g.group} groups", expected="equal groups")
        if isinstance(channels, int) and channels % g.deformable_group:
            raise self.error(f"{channels} channels in {g.deformable_group} deformable groups",
                             expected="equal groups")  # fmt: skip
        taps = kernel_y * kernel_x
        out = [
            (extent + 2 * g.padding[i] - g.dilation[i] * (kernel - 1) - 1) // g.stride[i] + 1
            for i, (extent, kernel) in enumerate(((height, kernel_y), (width, kernel_x)))
        ]
        for shape, factor, what in ((offset, 2, "offsets"), (mask, 1, "the mask")):
            self.agree(shape[0], batch, f"images of {what}")
            self.agree(shape[1], taps * (factor * g.deformable_group), f"channels of {what}")
            self.agree(shape[2], out[0], f"rows of {what}, and of the output")
            self.agree(shape[3], out[1], f"columns of {what}, and of the output")
        if len(inputs) == 5:
            self.agree(self.rank(inputs, 4, 1)[0], out_channels, "biases, and output channels")
        # offsets are as large as the output: their axes are simpler than the formula
        rows: Extent = offset[2]
        return [(batch, out_channels, rows, offset[3])]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        x, offset, mask, weight = (np.ascontiguousarray(a, np.float32) for a in inputs[:4])
        g = self.given
        batch, channels = x.shape[:2]
        out_channels, per_group, kernel_y, kernel_x = weight.shape
        rows, columns = offset.shape[2:]
        taps, positions = kernel_y * kernel_x, rows * columns
        numbers = (
            kernel_y, kernel_x, rows, columns, *g.stride, *g.padding, *g.dilation,
            g.deformable_group,
        )  # fmt: skip
        read = np.empty((channels * taps, positions), np.float32)
        flat = weight.reshape(g.group, out_channels // g.group, per_group * taps)
        out = np.empty((batch, out_channels, rows, columns), np.float32)
        groups = g.deformable_group
        for b in range(batch):
            _native.deformed_columns(
                x, b, numbers, offset[b].reshape(groups, taps * 2, positions),
                mask[b].reshape(groups, taps, positions), read,
            )  # fmt: skip
            by_group = read.reshape(g.group, per_group * taps, positions)
            out[b] = np.matmul(flat, by_group).reshape(out_channels, rows, columns)
        if len(inputs) == 5:
            out += inputs[4].reshape(1, -1, 1, 1)
        return [out]
