"""Plugins that move values without changing them, and CoordConv's coordinates.

Source: standard-plugins spec 3.8, 4.4, 4.6, 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import integer, integers, number, text
from headrace.plugins.standard.layer import (
    Decomposition,
    Extent,
    Interface,
    Shape,
    StandardLayer,
)


class ResizeNearest(StandardLayer):
    """out(y, x) = in(floor(y / scale), floor(x / scale))."""

    name = "ResizeNearest_TRT"
    interface = "V2Ext"
    fields = (number("scale", above=0),)

    def _length(self, extent: Extent, what: str) -> int:
        return int(np.float32(self.number(extent, what)) * np.float32(self.given.scale))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, channels, height, width = self.rank(inputs, 0, 4)
        return [(batch, channels, self._length(height, "height"), self._length(width, "width"))]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        rows, columns = (
            np.minimum((np.arange(self._length(n, "")) / np.float32(self.given.scale)), n - 1)
            .astype(np.intp)
            for n in x.shape[2:]
        )  # fmt: skip
        return [x[:, :, rows[:, None], columns]]

    def decompose(self, graph: Decomposition) -> bool:
        scale = float(self.given.scale)
        if graph.opset < 11 or scale != int(scale):
            return False  # with other scales rounding may differ
        scales = graph.constant([1, 1, scale, scale], np.float32)
        graph.op(
            "Resize", graph.inputs[0], "", scales, out=graph.outputs[0], mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )  # fmt: skip
        return True


class FlattenConcat(StandardLayer):
    """Each input of an image flattened, row by row, then joined."""

    name = "FlattenConcat_TRT"
    interface = "V2Ext"
    fields = (integer("axis", one_of=(1, 2, 3)), integer("ignoreBatch", 0))
    inputs = (1, 1024)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        axis = self.given.axis
        total: Extent = 0
        first = self.rank(inputs, 0, 4)
        for i in range(len(inputs)):
            shape = self.rank(inputs, i, 4)
            self.agree(shape[0], first[0], "images of the inputs")
            for other in {1, 2, 3} - {axis}:
                self.agree(shape[other], first[other], f"axis {other} of the inputs")
            total = total + shape[1] * shape[2] * shape[3]
        out: list[Extent] = [first[0], 1, 1, 1]
        out[axis] = total
        return [tuple(out)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        joined = np.concatenate([x.reshape(len(x), math.prod(x.shape[1:])) for x in inputs], axis=1)
        shape = [len(joined), 1, 1, 1]
        shape[self.given.axis] = joined.shape[1]
        return [joined.reshape(shape)]

    def decompose(self, graph: Decomposition) -> bool:
        flat = [graph.op("Flatten", x, axis=1) for x in graph.inputs]
        joined = graph.op("Concat", *flat, axis=1)
        shape = [0, 1, 1]
        shape.insert(self.given.axis, -1)
        graph.op("Reshape", joined, graph.integers(shape), out=graph.outputs[0])
        return graph.opset >= 5


class BatchTile(StandardLayer):
    """The second input as often as the first has images."""

    name = "BatchTilePlugin_TRT"
    interface = "V2Ext"
    inputs = (2, 2)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch = self.rank(inputs, 0, 4)[0]
        tile = self.rank(inputs, 1, 4)
        if tile[0] == 0 and batch != 0:
            raise self.error("there is nothing to repeat", expected="one item at least")
        return [(batch, *tile[1:])]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        a, b = inputs
        return [np.broadcast_to(b[:1], (len(a), *b.shape[1:]))]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.opset < 13:
            return False
        a, b = graph.inputs
        batch = graph.op("Slice", graph.op("Shape", a), graph.integers([0]), graph.integers([1]))
        shape = graph.op("Concat", batch, graph.integers([1, 1, 1]), axis=0)
        first = graph.op("Slice", b, graph.integers([0]), graph.integers([1]), graph.integers([0]))
        graph.op("Expand", first, shape, out=graph.outputs[0])
        return True


class SpecialSlice(StandardLayer):
    """The first four of six numbers of each detection."""

    name = "SpecialSlice_TRT"
    interface = "V2Ext"

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, count, numbers = self.rank(inputs, 0, 3)
        self.agree(numbers, 6, "numbers of a detection")
        return [(batch, count, 4)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [inputs[0][..., :4]]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.opset < 10:
            return False
        ends = (graph.integers([0]), graph.integers([4]), graph.integers([2]))
        graph.op("Slice", graph.inputs[0], *ends, out=graph.outputs[0])
        return True


class Reorg(StandardLayer):
    """Squares of stride x stride places become channels: YOLO v2's passthrough."""

    name = "Reorg_TRT"
    interface: ClassVar[Interface] = "V2Ext"
    later = (("2", "Dyn"),)
    fields = (integer("stride", above=0),)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, channels, height, width = self.rank(inputs, 0, 4)
        s = self.given.stride
        for extent, what in ((height, "height"), (width, "width")):
            if isinstance(extent, int) and extent % s:
                raise self.error(f"{what} {extent} and stride {s}", expected=f"a multiple of {s}")
        return [(batch, channels * (s * s), height // s, width // s)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        s = self.given.stride
        batch, channels, height, width = x.shape
        cells = x.reshape(batch, channels, height // s, s, width // s, s)
        moved = cells.transpose(0, 3, 5, 1, 2, 4)
        return [moved.reshape(batch, channels * s * s, height // s, width // s)]

    def decompose(self, graph: Decomposition) -> bool:
        graph.op(
            "SpaceToDepth", graph.inputs[0], out=graph.outputs[0], blocksize=int(self.given.stride)
        )
        return True


class CoordConv(StandardLayer):
    """Two more channels: the row and the column of each place, from -1 to 1."""

    name = "CoordConvAC"
    interface = "V2Ext"

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, channels, height, width = self.rank(inputs, 0, 4)
        return [(batch, channels + 2, height, width)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        height, width = x.shape[2:]
        more = _coordinates(height, width)
        return [np.concatenate([x, np.broadcast_to(more, (len(x), *more.shape[1:]))], axis=1)]

    def decompose(self, graph: Decomposition) -> bool:
        shape = graph.shapes[0]
        if shape is None or graph.opset < 13 or shape[2] is None or shape[3] is None:
            return False
        x = graph.inputs[0]
        grid = graph.constant(_coordinates(shape[2], shape[3]))
        batch = graph.op("Slice", graph.op("Shape", x), graph.integers([0]), graph.integers([1]))
        wide = graph.op("Concat", batch, graph.integers([1, 1, 1]), axis=0)
        graph.op("Concat", x, graph.op("Expand", grid, wide), axis=1, out=graph.outputs[0])
        return True


def _coordinates(height: int, width: int) -> Array:
    rows, columns = (np.linspace(-1, 1, n, dtype=np.float32) for n in (height, width))
    grid = np.empty((1, 2, height, width), np.float32)
    grid[0, 0], grid[0, 1] = rows[:, None], columns
    return grid


class Split(StandardLayer):
    """Pieces of the given lengths along an axis."""

    name = "Split"
    interface = "Dyn"
    fields = (integer("axis"), integers("output_lengths", above=0))
    any_type = True

    def check(self) -> None:
        if not self.given.output_lengths:
            raise self.error("output_lengths is empty", expected="a length for each output")
        self.outputs = len(self.given.output_lengths)

    def _axis(self, rank: int) -> int:
        axis = self.given.axis
        if not -rank <= axis < rank:
            raise self.error(f"axis is {axis}, the input has {rank} axes",
                             expected=f"{-rank} to {rank - 1}")  # fmt: skip
        return int(axis % rank)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = inputs[0]
        axis = self._axis(len(shape))
        self.agree(shape[axis], sum(self.given.output_lengths), "the axis, and all pieces")
        return [(*shape[:axis], n, *shape[axis + 1 :]) for n in self.given.output_lengths]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        return np.split(x, np.cumsum(self.given.output_lengths)[:-1], axis=self._axis(x.ndim))

    def decompose(self, graph: Decomposition) -> bool:
        lengths, axis = list(self.given.output_lengths), int(self.given.axis)
        x, outputs = graph.inputs[0], graph.outputs
        if len(outputs) != len(lengths) or (graph.opset < 11 and axis < 0):
            return False
        if graph.opset >= 13:
            graph.ops("Split", [x, graph.integers(lengths)], outputs, axis=axis)
        else:
            graph.ops("Split", [x], outputs, axis=axis, split=lengths)
        return True


class ScatterND(StandardLayer):
    """data with updates put where indices say; of equal indices the last counts."""

    name = "ScatterND"
    interface = "Dyn"
    inputs = (3, 3)
    integer_inputs = frozenset((1,))
    any_type = True

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        data, indices, updates = inputs
        if not indices or not data:
            raise self.error(f"{self.name} of a scalar", expected="at least one axis")
        depth = self.number(indices[-1], "the length of an index")
        if depth > len(data):
            raise self.error(f"indices of {depth} numbers, data of {len(data)} axes")
        expected = (*indices[:-1], *data[depth:])
        if len(updates) != len(expected):
            raise self.error(f"updates have {len(updates)} axes", expected=f"{len(expected)}")
        for got, want in zip(updates, expected, strict=True):
            self.agree(got, want, "an axis of updates, and that of data or indices")
        return [data]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        data, indices, updates = inputs
        result = data.copy()
        depth = indices.shape[-1]
        limits = np.array(data.shape[:depth], np.int64)
        rows = indices.reshape(-1, depth).astype(np.int64)
        rows = np.where(rows < 0, rows + limits, rows)
        if ((rows < 0) | (rows >= limits)).any():
            raise self.error(f"an index is outside of data, {data.shape}")
        result[tuple(rows.T)] = updates.reshape(len(rows), *data.shape[depth:])
        return [result]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.opset < 11:
            return False
        data, indices, updates = graph.inputs
        graph.op("ScatterND", data, graph.op("Cast", indices, to=7), updates, out=graph.outputs[0])
        return True


class ScatterElements(StandardLayer):
    """data with updates put, or added, multiplied, compared, along an axis."""

    name = "ScatterElements"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    fields = (
        integer("axis", 0),
        text("reduction", "none", one_of=("none", "add", "mul", "max", "min", "mean")),
    )
    inputs = (3, 3)
    integer_inputs = frozenset((1,))
    any_type = True

    def _axis(self, rank: int) -> int:
        axis = self.given.axis
        if not -rank <= axis < rank:
            raise self.error(f"axis is {axis}, data has {rank} axes")
        return int(axis % rank)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        data, indices, updates = inputs
        self._axis(len(data))
        if not len(data) == len(indices) == len(updates):
            raise self.error("data, indices and updates have "
                             f"{len(data)}, {len(indices)} and {len(updates)} axes",
                             expected="the same number")  # fmt: skip
        for a, b in zip(indices, updates, strict=True):
            self.agree(a, b, "an axis of indices and of updates")
        return [data]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        data, indices, updates = inputs
        axis = self._axis(data.ndim)
        size = data.shape[axis]
        index = np.where(indices < 0, indices + size, indices)
        others = [d for i, d in enumerate(data.shape) if i != axis]
        fits = all(n <= d for n, d in zip(np.delete(indices.shape, axis), others, strict=True))
        if not fits or ((index < 0) | (index >= size)).any():
            raise self.error(f"an index is outside of data, {data.shape}")
        grid = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
        grid[axis] = index
        where = tuple(grid)
        result = data.copy()
        if self.given.reduction == "none":
            result[where] = updates
            return [result]
        _REDUCE[self.given.reduction].at(result, where, updates)
        if self.given.reduction == "mean":
            number_of = np.ones(data.shape, np.float32)
            np.add.at(number_of, where, np.float32(1))
            result = result / number_of
        return [result]

    def decompose(self, graph: Decomposition) -> bool:
        reduction = self.given.reduction
        needed = {"none": 11, "add": 16, "mul": 16, "max": 18, "min": 18}.get(reduction)
        if needed is None or graph.opset < needed:
            return False
        data, indices, updates = graph.inputs
        attributes = {} if reduction == "none" else {"reduction": reduction}
        graph.op(
            "ScatterElements", data, indices, updates, out=graph.outputs[0],
            axis=int(self.given.axis), **attributes,
        )  # fmt: skip
        return True


_REDUCE = {
    "add": np.add,
    "mean": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


class TopkLastDim(StandardLayer):
    """The k largest or smallest values along an axis, sorted, and where they are."""

    name = "TopkLastDim"
    interface = "V3"
    fields = (
        integer("type_id", one_of=(0, 1, 3, 7)),
        integer("k", above=0),
        integer("is_largest", one_of=(0, 1)),
        integer("axis", -1),
    )
    outputs = 2
    integer_outputs = frozenset((1,))
    any_type = True

    def _axis(self, shape: Sequence[Extent]) -> int:
        axis: int = self.given.axis
        if not -len(shape) <= axis < len(shape):
            raise self.error(f"axis is {axis}, the tensor has {len(shape)} axes",
                             expected=f"{-len(shape)} to {len(shape) - 1}")  # fmt: skip
        return axis % len(shape)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = list(inputs[0])
        axis = self._axis(shape)
        extent = shape[axis]
        if isinstance(extent, int) and extent < self.given.k:
            raise self.error(f"k is {self.given.k}, axis {axis} has {extent}",
                             expected="at most as many as there are")  # fmt: skip
        shape[axis] = self.given.k
        return [tuple(shape)] * 2

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        (x,) = inputs
        axis = self._axis(x.shape)
        falling = np.flip(x, axis) if self.given.is_largest else x
        order = np.argsort(falling, axis, kind="stable")
        if self.given.is_largest:  # of equal values the first comes first
            order = np.flip(x.shape[axis] - 1 - order, axis)
        chosen = np.take(order, np.arange(self.given.k), axis)
        return [np.take_along_axis(x, chosen, axis), chosen.astype(np.int32)]

    def decompose(self, graph: Decomposition) -> bool:
        if graph.opset < 11:
            return False
        values, places = graph.outputs
        found = f"{graph.label}/places"
        graph.ops(
            "TopK", [graph.inputs[0], graph.integers([self.given.k])], [values, found],
            axis=self.given.axis, largest=self.given.is_largest, sorted=1,
        )  # fmt: skip
        graph.op("Cast", found, out=places, to=6)
        return True
