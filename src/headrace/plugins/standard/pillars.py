"""PointPillars: points to pillars, pillars to a map, a map's rows to boxes.

Where the original's order is left to chance, pillars and boxes come out by their place.
Source: standard-plugins spec 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import floats, integer, integers, number
from headrace.plugins.standard.layer import Shape, StandardLayer

_CHANNELS = 64


class VoxelGenerator(StandardLayer):
    """Points (x, y, z, …) sorted into pillars: features of each point, place and number of pillars.

    Features are the point, its distance from the pillar's mean, and from the pillar's middle.
    """

    name = "VoxelGeneratorPlugin"
    interface = "Dyn"
    fields = (
        integer("max_num_points_per_voxel", above=0),
        integer("max_voxels", above=0),
        floats("point_cloud_range", length=6),
        integer("voxel_feature_num", above=0),
        floats("voxel_size", length=3, above=0),
    )
    inputs = (2, 2)
    outputs = 3
    integer_inputs = frozenset((1,))
    integer_outputs = frozenset((1, 2))
    half = False

    def check(self) -> None:
        g = self.given
        low, high = g.point_cloud_range[:3], g.point_cloud_range[3:]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            raise self.error(f"point_cloud_range is {g.point_cloud_range}",
                             expected="x0, y0, z0 below x1, y1, z1")  # fmt: skip

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        g = self.given
        batch, _, values = self.rank(inputs, 0, 3)
        self.agree(self.rank(inputs, 1, 1)[0], batch, "images of points and of counts")
        if isinstance(values, int) and (
            values not in (4, 5) or g.voxel_feature_num not in (values + 5, values + 6)
        ):
            raise self.error(
                f"points of {values} numbers, voxel_feature_num {g.voxel_feature_num}",
                expected="points of 4 or 5 numbers, and 5 or 6 features more",
            )
        return [
            (batch, g.max_voxels, g.max_num_points_per_voxel, g.voxel_feature_num),
            (batch, g.max_voxels, 4),
            (batch,),
        ]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        points, counts = inputs
        g = self.given
        low = np.array(g.point_cloud_range[:3], np.float32)
        high = np.array(g.point_cloud_range[3:], np.float32)
        size = np.array(g.voxel_size, np.float32)
        columns, rows = (int(n) for n in np.rint((high - low)[:2] / size[:2]))
        most = g.max_num_points_per_voxel
        batch = len(points)
        features = np.zeros((batch, g.max_voxels, most, g.voxel_feature_num), np.float32)
        coordinates = np.zeros((batch, g.max_voxels, 4), np.int32)
        number_of = np.zeros(batch, np.int32)
        for b in range(batch):
            own = points[b, : max(int(counts[b]), 0)]
            own = own[((own[:, :3] >= low) & (own[:, :3] < high)).all(axis=1)]
            at = np.floor((own[:, :2] - low[:2]) / size[:2]).astype(np.int64)
            inside = (at[:, 0] < columns) & (at[:, 1] < rows)
            own, at = own[inside], at[inside]
            pillar = at[:, 1] * columns + at[:, 0]
            order = np.argsort(pillar, kind="stable")
            own, pillar = own[order], pillar[order]
            ids, first, lengths = np.unique(pillar, return_index=True, return_counts=True)
            row = np.repeat(np.arange(len(ids)), lengths)  # pillar of each point
            slot = np.arange(len(own)) - first[row]
            keep = (slot < most) & (row < g.max_voxels)
            own, row, slot = own[keep], row[keep], slot[keep]
            count = min(len(ids), g.max_voxels)
            number_of[b] = count
            ids, lengths = ids[:count], np.minimum(lengths[:count], most)
            cells = np.stack([ids % columns, ids // columns], axis=1)
            coordinates[b, :count, 2:] = cells[:, ::-1]
            sums = np.zeros((count, 3), np.float32)
            np.add.at(sums, row, own[:, :3])
            means = sums / np.maximum(lengths, 1).astype(np.float32)[:, None]
            middle = np.zeros((count, 3), np.float32)
            middle[:, :2] = cells
            middle = size / np.float32(2) + middle * size + low
            parts = [own, own[:, :3] - means[row], own[:, :3] - middle[row]]
            features[b, row, slot] = np.concatenate(parts, axis=1)[:, : g.voxel_feature_num]
        return [features, coordinates, number_of]


class PillarScatter(StandardLayer):
    """Features of pillars put where they lie; zeros elsewhere."""

    name = "PillarScatterPlugin"
    interface = "Dyn"
    fields = (integers("dense_shape", length=2, above=0),)
    inputs = (3, 3)
    integer_inputs = frozenset((1, 2))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, count, channels = self.rank(inputs, 0, 3)
        coordinates = self.rank(inputs, 1, 3)
        self.agree(channels, _CHANNELS, "features of a pillar, and those that the original knows")
        self.agree(coordinates[0], batch, "images of features and of places")
        self.agree(coordinates[1], count, "pillars and places")
        self.agree(coordinates[2], 4, "numbers of a place")
        self.agree(self.rank(inputs, 2, 1)[0], batch, "images of features and of counts")
        return [(batch, channels, *self.given.dense_shape)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        features, coordinates, counts = inputs
        height, width = self.given.dense_shape
        out = np.zeros((len(features), features.shape[2], height, width), np.float32)
        for b in range(len(features)):
            count = min(max(int(counts[b]), 0), features.shape[1])
            y, x = coordinates[b, :count, 2], coordinates[b, :count, 3]
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            out[b][:, y[inside], x[inside]] = features[b, :count][inside].T
        return [out]


class DecodeBbox3D(StandardLayer):
    """Boxes x, y, z, dx, dy, dz, yaw, class, score of the places that are sure enough."""

    name = "DecodeBbox3DPlugin"
    interface = "Dyn"
    fields = (
        floats("point_cloud_range", length=6),
        floats("anchors"),
        floats("anchor_bottom_height"),
        number("dir_offset"),
        number("dir_limit_offset"),
        integer("num_dir_bins", above=0),
        number("score_thresh"),
    )
    inputs = (3, 3)
    outputs = 2
    integer_outputs = frozenset((1,))
    half = False

    def check(self) -> None:
        g = self.given
        count = len(g.anchors) // 4
        if not count or len(g.anchors) % 4 or len(g.anchor_bottom_height) < -(-count // 2):
            raise self.error(
                f"{len(g.anchors)} numbers of anchors, {len(g.anchor_bottom_height)} heights",
                expected="4 numbers of each anchor, a height for every two",
            )

    @property
    def _anchors(self) -> Array:
        """(A, 5): dx, dy, dz, rotation, z of the middle."""
        anchors = np.array(self.given.anchors, np.float32).reshape(-1, 4)
        heights = np.array(self.given.anchor_bottom_height, np.float32)
        middle = anchors[:, 2] / 2 + heights[np.arange(len(anchors)) // 2]
        return np.concatenate([anchors, middle[:, None]], axis=1)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        scores, boxes, directions = (self.rank(inputs, i, 4) for i in range(3))
        count = len(self.given.anchors) // 4
        if isinstance(scores[3], int) and (scores[3] == 0 or scores[3] % count):
            raise self.error(f"{scores[3]} scores of a place", expected=f"a multiple of {count}")
        self.agree(boxes[3], 7 * count, "numbers of a place, and 7 of each anchor")
        self.agree(directions[3], 2 * count, "directions of a place, and 2 of each anchor")
        for i in range(3):
            self.agree(boxes[i], scores[i], f"axis {i} of boxes and of scores")
            self.agree(directions[i], scores[i], f"axis {i} of directions and of scores")
        return [(scores[0], scores[1] * scores[2] * count, 9), (scores[0],)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        anchors = self._anchors
        batch, height, width, _ = inputs[0].shape
        count = len(anchors)
        scores, codes, directions = (
            x.reshape(batch, height, width, count, -1) for x in inputs
        )  # fmt: skip
        best = 1 / (1 + np.exp(-scores.max(axis=4)))
        labels = scores.argmax(axis=4)
        x0, y0, _, x1, y1, _ = (np.float32(v) for v in g.point_cloud_range)
        x = x0 + np.arange(width, dtype=np.float32) * (x1 - x0) / np.float32(max(width - 1, 1))
        y = y0 + np.arange(height, dtype=np.float32) * (y1 - y0) / np.float32(max(height - 1, 1))
        size = anchors[:, :3]
        diagonal = np.sqrt(size[:, 0] ** 2 + size[:, 1] ** 2)
        out = np.empty((batch, height, width, count, 9), np.float32)
        out[..., 0] = codes[..., 0] * diagonal + x[None, None, :, None]
        out[..., 1] = codes[..., 1] * diagonal + y[None, :, None, None]
        out[..., 2] = codes[..., 2] * size[:, 2] + anchors[:, 4]
        out[..., 3:6] = np.exp(codes[..., 3:6]) * size
        out[..., 6] = self._yaw(codes[..., 6] + anchors[:, 3], directions)
        out[..., 7], out[..., 8] = labels, best
        rows = out.reshape(batch, -1, 9)
        result, number_of = np.zeros_like(rows), np.zeros(batch, np.int32)
        for b in range(batch):
            kept = rows[b][rows[b, :, 8] >= np.float32(g.score_thresh)]
            result[b, : len(kept)], number_of[b] = kept, len(kept)
        return [result, number_of]

    def _yaw(self, turned: Array, directions: Array) -> Array:
        g = self.given
        label = np.where(directions[..., 0] > directions[..., 1], 0, 1)
        period = np.float32(2 * math.pi / g.num_dir_bins)
        value = turned - np.float32(g.dir_offset)
        turns = np.floor(value / period + np.float32(g.dir_limit_offset))
        yaw: Array = value - turns * period + np.float32(g.dir_offset) + period * label
        return yaw
