"""Images of batches as structures of C, and structures of C as images."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from headrace._core.errors import MediaError
from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta.images import (
    C_FORMATS,
    SURFACE_BYTES,
    BatchImages,
    pixels_of,
    planes_in,
)
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.elements.surface import Surface
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, plane_shapes

Image = structure("NvBufSurfaceParams")


def new_surface(width: int = 6, height: int = 5) -> Surface:
    """An image of I420 planes, each of one value."""
    shapes = plane_shapes(PixelFormat.I420, width, height)
    planes = tuple(np.full(s, v, np.uint8) for s, v in zip(shapes, (81, 90, 240), strict=True))
    return Surface(Frame(planes, PixelFormat.I420, width, height))


def new_images(surface: Surface, format: str) -> BatchImages:
    """The images of a batch of two places, one of them filled."""
    batch = pyds.nvds_create_batch_meta(2)
    batch.surfaces.append(surface)
    return BatchImages(batch, format)


def bytes_at(image: Any, plane: int) -> Any:
    """The rows of a plane, (rows, bytes of a row)."""
    params = image.planeParams
    size = params.pitch[plane] * params.height[plane]
    raw = (ctypes.c_uint8 * size).from_address(image.dataPtr + params.offset[plane])
    row = params.width[plane] * params.bytesPerPix[plane]
    return np.frombuffer(raw, np.uint8).reshape(params.height[plane], -1)[:, :row]


@pytest.mark.parametrize("format", C_FORMATS)
def test_every_format_is_described_and_written_through(format: str) -> None:
    surface = new_surface()
    images = new_images(surface, format)
    images.refresh()
    assert (images.surface.batchSize, images.surface.numFilled) == (2, 1)
    image = Image.from_address(images.surface.surfaceList)
    assert (image.width, image.height, image.colorFormat) == (6, 5, C_FORMATS[format])
    params = image.planeParams
    assert params.num_planes == {"NV12": 2, "I420": 3}.get(format, 1)
    last = params.num_planes - 1
    assert image.dataSize == params.offset[last] + params.psize[last]
    before = surface.frame().to_rgb()
    bytes_at(image, 0)[:] = 128
    assert (surface.frame().to_rgb() != before).any()


def test_an_image_that_was_drawn_is_the_same_memory() -> None:
    surface = new_surface()
    images = new_images(surface, "NV12")
    images.refresh()
    address = Image.from_address(images.surface.surfaceList).dataPtr
    surface.draw(Frame.from_array(np.full((5, 6, 3), 255, np.uint8), PixelFormat.RGB))
    images.refresh()
    image = Image.from_address(images.surface.surfaceList)
    assert image.dataPtr == address
    assert (bytes_at(image, 0) == 235).all()
    assert (bytes_at(image, 1) == 128).all()


@pytest.mark.parametrize("format", ["I420", "NV12", "RGBA"])
@pytest.mark.parametrize("box", [(1, 1, 4, 3), (-2, 3, 99, 99), (5, 4, 6, 5), (6, 0, 8, 2)])
def test_the_part_that_a_box_has_is_read(format: str, box: tuple[int, int, int, int]) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (5, 6, 3), np.uint8)
    images = new_images(Surface(Frame.from_array(noise, PixelFormat.RGB)), format)
    images.refresh()
    address = ctypes.addressof(images.surface)
    left, top, right, bottom = (max(0, side) for side in box)
    whole = pixels_of(address, 0)
    assert pixels_of(address, 0, box).tolist() == whole[top:bottom, left:right].tolist()


def test_memory_that_c_may_point_to_outlives_a_change_of_format() -> None:
    surface = new_surface()
    images = new_images(surface, "RGBA")
    images.refresh()
    old = Image.from_address(images.surface.surfaceList).dataPtr
    surface.planes("NV12")
    images.refresh()
    gc.collect()
    assert Image.from_address(images.surface.surfaceList).dataPtr != old
    assert bytes(ctypes.string_at(old, 4))[3] == 255


class Sent:
    """An NvBufSurface as a program in C fills it: no planes, unless asked."""

    def __init__(self, format: str, planes: bool = False) -> None:
        self.pixels = np.arange(6 * 4 * 3 // 2, dtype=np.uint8)
        self.image = Image(width=6, height=4, colorFormat=C_FORMATS[format])
        self.image.dataPtr = self.pixels.ctypes.data
        self.surface = structure("NvBufSurface")(batchSize=1, numFilled=1)
        self.surface.surfaceList = ctypes.addressof(self.image)
        if planes:
            self.image.planeParams.num_planes = 1
            self.image.planeParams.pitch[0] = 8

    def data(self) -> Any:
        return np.frombuffer(bytes(self.surface), np.uint8)


def test_a_structure_of_a_program_is_read() -> None:
    sent = Sent("NV12")
    planes = planes_in(sent.data(), "NV12", 6, 4)
    assert planes is not None
    assert [p.shape for p in planes] == [(4, 6), (2, 6)]
    assert np.concatenate([p.reshape(-1) for p in planes]).tolist() == sent.pixels.tolist()
    wide = Sent("GRAY8", planes=True)
    padded = planes_in(wide.data(), "GRAY8", 6, 4)
    assert padded is not None
    assert padded[0][1].tolist() == [8, 9, 10, 11, 12, 13]


def test_bytes_of_another_size_are_no_structure() -> None:
    assert planes_in(np.zeros(SURFACE_BYTES + 1, np.uint8), "NV12", 6, 4) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8}, "an image of 8x4"),
        ({"colorFormat": 19}, "color format 19"),
        ({"dataPtr": 0}, "points to 0x0"),
        ({"dataPtr": 16}, "points to 0x10"),
        ({"dataPtr": 1 << 63}, "points to 0x8000000000000000"),
    ],
)
def test_a_structure_that_cannot_be_read_is_refused(change: dict[str, int], message: str) -> None:
    sent = Sent("NV12")
    for name, value in change.items():
        setattr(sent.image, name, value)
    with pytest.raises(MediaError, match=message):
        planes_in(sent.data(), "NV12", 6, 4)


def test_a_list_that_is_not_there_is_refused() -> None:
    sent = Sent("NV12")
    sent.surface.surfaceList = 4096
    with pytest.raises(MediaError, match="points to 0x1000"):
        planes_in(sent.data(), "NV12", 6, 4)
