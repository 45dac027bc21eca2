"""ROIAlign, CropAndResize, PyramidROIAlign, MultilevelCropAndResize.

Source: standard-plugins spec 3.7, 4.2, 4.5, 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import integer, integers, number
from headrace.plugins.standard.layer import (
    Decomposition,
    Extent,
    Interface,
    Shape,
    StandardLayer,
)
from headrace.plugins.standard.maths.sampling import (
    Outside,
    adaptive_counts,
    crop_and_resize,
    sample_regions,
)


class ROIAlign(StandardLayer):
    """ONNX's RoiAlign: bins of regions, the mean or the largest of bilinear samples."""

    name = "ROIAlign_TRT"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    native = True
    fields = (
        integer("coordinate_transformation_mode", 1, one_of=(0, 1)),
        integer("mode", 1, one_of=(0, 1)),
        integer("output_height", 1, above=0),
        integer("output_width", 1, above=0),
        integer("sampling_ratio", 0, low=0),
        number("spatial_scale", 1.0, above=0),
    )
    inputs = (3, 3)
    integer_inputs = frozenset((2,))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        channels = self.rank(inputs, 0, 4)[1]
        count, four = self.rank(inputs, 1, 2)
        self.agree(four, 4, "numbers of a region")
        self.agree(self.rank(inputs, 2, 1)[0], count, "images, and the regions they are of")
        return [(count, channels, self.given.output_height, self.given.output_width)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        features, rois, images = inputs
        g = self.given
        if len(images) and not 0 <= images.min() <= images.max() < len(features):
            raise self.error(f"a region of image {images.min()} or {images.max()}",
                             expected=f"images 0 to {len(features) - 1}")  # fmt: skip
        size = (g.output_height, g.output_width)
        shift = np.float32(0.5 if g.coordinate_transformation_mode else 0)
        corners = rois * np.float32(g.spatial_scale) - shift
        starts = corners[:, [1, 0]]
        extents = corners[:, [3, 2]] - starts
        if not g.coordinate_transformation_mode:
            extents = np.maximum(extents, 1)
        counts = g.sampling_ratio or adaptive_counts(extents, size, least=0)
        steps = extents / np.array(size, np.float32)
        return [
            sample_regions(
                features, images, starts, steps, counts, size,
                offset=0.5, outside=Outside.ZERO_FAR, largest=not g.mode,
            )
        ]  # fmt: skip

    def decompose(self, graph: Decomposition) -> bool:
        g = self.given
        if graph.opset < 16 or not g.mode:  # of the largest, runtimes differ
            return False
        x, rois, images = graph.inputs
        graph.op(
            "RoiAlign", x, rois, graph.op("Cast", images, to=7), out=graph.outputs[0], mode="avg",
            coordinate_transformation_mode=(
                "half_pixel" if g.coordinate_transformation_mode else "output_half_pixel"
            ),
            output_height=int(g.output_height), output_width=int(g.output_width),
            sampling_ratio=int(g.sampling_ratio), spatial_scale=float(g.spatial_scale),
        )  # fmt: skip
        return True


class CropAndResizeDynamic(StandardLayer):
    """TensorFlow's crop_and_resize of the regions of each image."""

    name = "CropAndResizeDynamic"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    native = True
    fields = (integer("crop_width", above=0), integer("crop_height", above=0))
    inputs = (2, 2)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, channels, _, _ = self.rank(inputs, 0, 4)
        rois = self.rank(inputs, 1, 4)
        self.agree(rois[0], batch, "images of features and of regions")
        self.agree(rois[2], 4, "numbers of a region")
        self.agree(rois[3], 1, "the last axis of the regions")
        return [(batch, rois[1], channels, self.given.crop_height, self.given.crop_width)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        features, rois = inputs
        batch, count = rois.shape[:2]
        size = (self.given.crop_height, self.given.crop_width)
        images = np.repeat(np.arange(batch), count)
        out = crop_and_resize(features, images, rois.reshape(-1, 4), size)
        return [out.reshape(batch, count, *out.shape[1:])]


class CropAndResize(CropAndResizeDynamic):
    """The same for fixed axes."""

    name = "CropAndResize"
    interface = "V2Ext"


def _pyramid(layer: StandardLayer, inputs: Sequence[Shape]) -> tuple[Extent, Extent, Extent]:
    """Batch, regions and channels of regions [B, R, 4] and maps [B, C, H, W]."""
    batch, count, four = layer.rank(inputs, 0, 3)
    layer.agree(four, 4, "numbers of a region")
    channels = layer.rank(inputs, 1, 4)[1]
    for i in range(1, len(inputs)):
        shape = layer.rank(inputs, i, 4)
        layer.agree(shape[0], batch, "images of regions and of maps")
        layer.agree(shape[1], channels, "channels of the maps")
    return batch, count, channels


def _levels(area: Array, threshold: float, count: int) -> Array:
    """The level of each area: above the threshold the second, above 4 times that the third."""
    limits = np.float32(threshold) * np.float32(4) ** np.arange(count - 1, dtype=np.float32)
    levels: Array = (area[:, None] > limits).sum(axis=1)
    return levels


class PyramidROIAlign(StandardLayer):
    """Bins of regions, each from the map of a feature pyramid that suits its size."""

    name = "PyramidROIAlign_TRT"
    interface = "V2Ext"
    native = True
    fields = (
        integer("fpn_scale", 224, above=0),
        integer("pooled_size", 7, above=0),
        integers("image_size", (1024, 1024), above=0),
        integer("roi_coords_absolute", 1),
        integer("roi_coords_swap", 0),
        integer("roi_coords_plusone", 0),
        integer("roi_coords_transform", 2, one_of=(-1, 0, 1, 2)),
        integer("sampling_ratio", 0, low=0),
        integer("legacy", 0),
    )
    inputs = (5, 5)

    def check(self) -> None:
        if len(self.given.image_size) < 2:
            raise self.error(f"image_size is {self.given.image_size}", expected="height, width")
        if self.given.roi_coords_transform == -1 and self.given.pooled_size < 2:
            raise self.error("pooled_size is 1 with roi_coords_transform -1", expected="2 or more")

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, count, channels = _pyramid(self, inputs)
        return [(batch, count, channels, self.given.pooled_size, self.given.pooled_size)]

    def _regions(self, rois: Array) -> Array:
        """(R, 4): y1, x1, y2, x2 in order, in 0..1."""
        g = self.given
        pairs = rois.reshape(-1, 2, 2)
        if not g.roi_coords_swap:
            pairs = pairs[:, :, ::-1]
        first, second = pairs.min(axis=1), pairs.max(axis=1)
        corners = np.concatenate([first, second], axis=1)
        if g.roi_coords_absolute:
            image = np.array(g.image_size[-2:] * 2, np.float32)
            result: Array = np.clip(corners, 0, image) / image
        else:
            result = np.clip(corners, 0, 1)
        return result

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        g = self.given
        rois, maps = inputs[0], inputs[1:]
        batch, count = rois.shape[:2]
        regions = self._regions(rois)
        images = np.repeat(np.arange(batch), count)
        extents = regions[:, 2:] - regions[:, :2]
        height, width = g.image_size[-2:]
        more = np.array([1 / height, 1 / width] if g.roi_coords_plusone else [0, 0], np.float32)
        area = (extents + more).prod(axis=1)
        levels = _levels(area, g.fpn_scale**2 / (height * width) / 4, len(maps))
        size = (g.pooled_size, g.pooled_size)
        out = np.zeros((batch * count, maps[0].shape[1], *size), np.float32)
        for level, features in enumerate(maps):
            (rows,) = np.nonzero(levels == level)
            if not len(rows):
                continue
            starts, ends, steps = self._grid(regions[rows], features)
            counts = g.sampling_ratio or adaptive_counts(ends - starts, size, least=1)
            offset = 0.5 if g.roi_coords_transform > 0 else 0.0
            sample_regions(
                features, images[rows], starts, steps, counts, size,
                offset=offset, outside=Outside.EDGE, out=out, rows=rows,
            )  # fmt: skip
        return [out.reshape(batch, count, *out.shape[1:])]

    def _grid(self, regions: Array, features: Array) -> tuple[Array, Array, Array]:
        mode, bins = self.given.roi_coords_transform, self.given.pooled_size
        size = np.array(features.shape[2:], np.float32)
        if mode == -1:
            size, shift, bins = size - 1, np.float32(0), bins - 1
        else:
            shift = np.float32(0.5 if mode == 2 else 0)
        starts, ends = regions[:, :2] * size - shift, regions[:, 2:] * size - shift
        return starts, ends, (ends - starts) / np.float32(bins)


class MultilevelCropAndResize(StandardLayer):
    """One sample in the middle of each bin, from the map that suits the region's size.

    Regions are y1, x1, y2, x2 in pixels; one that is outside of the image or empty gives zeros.
    """

    name = "MultilevelCropAndResize_TRT"
    interface = "V2Ext"
    native = True
    fields = (
        integer("pooled_size", above=0),
        integers("image_size", (3, 832, 1344), length=3, above=0),
    )
    inputs = (6, 6)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, count, channels = _pyramid(self, inputs)
        return [(batch, count, channels, self.given.pooled_size, self.given.pooled_size)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        rois, maps = inputs[0].reshape(-1, 4), inputs[1:]
        batch, count = inputs[0].shape[:2]
        images = np.repeat(np.arange(batch), count)
        limit = np.array(self.given.image_size[1:] * 2, np.float32)
        valid = ((rois >= 0) & (rois <= limit)).all(axis=1)
        extents = rois[:, 2:] - rois[:, :2]
        valid &= (extents > 0).all(axis=1)
        levels = _levels(extents.prod(axis=1), 224 * 224 / 4, len(maps))
        bins = self.given.pooled_size
        out = np.zeros((len(rois), maps[0].shape[1], bins, bins), np.float32)
        for level, features in enumerate(maps):
            (rows,) = np.nonzero((levels == level) & valid)
            stride = np.float32(2 ** (level + 2))
            sample_regions(
                features, images[rows], rois[rows, :2] / stride,
                extents[rows] / stride / np.float32(bins), 1, (bins, bins),
                offset=0.5, outside=Outside.EDGE, out=out, rows=rows,
            )  # fmt: skip
        return [out.reshape(batch, count, *out.shape[1:])]
