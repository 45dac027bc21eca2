"""Images of a batch as C code maps them: an `NvBufSurface` over main memory.

The memory of a batch's buffer holds a number, and the library asks for the structure of that number
when C code first maps the buffer. From then on the planes that it points to are the image: elements
in Python read what C code wrote.
"""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.types import Array
from headrace.gstreamer.cmeta import native
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.cmeta.views import CStruct
from headrace.gstreamer.pyds.meta import NvDsBatchMeta
from headrace.gstreamer.pyds.surfaces import NvBufSurfaceColorFormat, NvBufSurfaceMemType

C_FORMATS: dict[str, int] = {
    gst: NvBufSurfaceColorFormat[f"NVBUF_COLOR_FORMAT_{name}"]
    for gst, name in {
        "GRAY8": "GRAY8", "I420": "YUV420", "NV12": "NV12", "RGBA": "RGBA", "BGRx": "BGRx",
        "RGB": "RGB", "BGR": "BGR",
    }.items()
}  # fmt: skip
"""Formats of GStreamer as C code knows them."""

SURFACE_BYTES = ctypes.sizeof(structure("NvBufSurface"))
"""Size of the memory that stands for the images of a batch."""


class BatchImages:
    """The images of one batch in one format.

    Attributes:
        surface: the structure that C code gets.
    """

    def __init__(self, batch: NvDsBatchMeta, format: str) -> None:
        self._format, self._surfaces = format, batch.surfaces
        room = max(1, len(batch.surfaces), int(batch.max_frames_in_batch))
        self._list: Any = (structure("NvBufSurfaceParams") * room)()
        self._planes: list[tuple[Array, ...] | None] = [None] * room
        # What C code may still point to, if Python wrote in another format since.
        self._kept: list[tuple[Array, ...]] = []
        self.surface: CStruct = structure("NvBufSurface")()
        self.surface.batchSize = room
        self.surface.memType = NvBufSurfaceMemType.NVBUF_MEM_CUDA_UNIFIED
        self.surface.surfaceList = ctypes.addressof(self._list)

    def refresh(self) -> int:
        """Let the structure describe the images as they are now; returns its address."""
        self.surface.numFilled = len(self._surfaces)
        for index, one in enumerate(self._surfaces):
            planes = one.planes(self._format)
            if planes is not self._planes[index]:
                self._planes[index] = planes
                self._kept.append(planes)
                describe(self._list[index], planes, self._format)
        return ctypes.addressof(self.surface)


def describe(image: CStruct, planes: tuple[Array, ...], format: str) -> None:
    """Write the sizes and addresses of an image into its structure.

    Args:
        image: `NvBufSurfaceParams`.
        planes: (height, width) or (height, width, channels) uint8 each, contiguous.
        format: of GStreamer.
    """
    address = int(planes[0].__array_interface__["data"][0])
    image.height, image.width = planes[0].shape[:2]
    image.colorFormat, image.dataPtr = C_FORMATS[format], address
    image.pitch = planes[0].strides[0]
    params = image.planeParams
    params.num_planes = len(planes)
    end = 0
    for i, plane in enumerate(planes):
        # Planes lie where they lie: an offset of 32 bits counts from the first one.
        at = int(plane.__array_interface__["data"][0]) - address
        params.height[i], params.width[i] = plane.shape[:2]
        params.pitch[i], params.psize[i], params.offset[i] = plane.strides[0], plane.nbytes, at
        params.bytesPerPix[i] = plane.shape[2] if plane.ndim == 3 else 1
        end = max(end, at + plane.nbytes)
    image.dataSize = end


_FORMAT_BITS = 4
_ORDER = list(C_FORMATS)
_numbers = count(1)
_batches: WeakValueDictionary[int, NvDsBatchMeta] = WeakValueDictionary()


def add_images(buffer: int, batch: NvDsBatchMeta, format: str) -> None:
    """Give a buffer without memory the images of a batch.

    Args:
        buffer: its address.
        batch: with the images; it lives as long as a buffer has it.
        format: of GStreamer, in which C code gets them.
    """
    number = next(_numbers) << _FORMAT_BITS | _ORDER.index(format)
    _batches[number] = batch
    native.call("headrace_add_images", ctypes.c_void_p, ctypes.c_uint64)(buffer, number)


def images_at(number: int) -> int:
    """Return the address of the structure of a number; 0 once the batch is gone."""
    batch = _batches.get(number)
    if batch is None:
        return 0
    format = _ORDER[number & (1 << _FORMAT_BITS) - 1]
    images = batch.images.get(format)
    if images is None:
        images = batch.images[format] = BatchImages(batch, format)
    return int(images.refresh())


@cache
def serve_images() -> Any:
    """Let C code map the images of buffers, from now on.

    Returns:
        The callback, which the cache keeps.
    """

    def answer(number: int) -> int:
        try:
            return images_at(number)
        except Exception:  # C cannot take it
            traceback.print_exc()
            return 0

    callback = native.AskNumber(answer)
    native.call("headrace_serve_images", native.AskNumber)(callback)
    return callback


def pixels_of(surface: int, index: int, box: tuple[int, int, int, int] | None = None) -> Array:
    """Copy an image of a structure of C, or the part that a box has of it.

    Args:
        surface: address of an `NvBufSurface`.
        index: of the image.
        box: left, top, right, bottom, in pixels; it may reach beyond the image.

    Returns:
        (height, width, 3) uint8 RGB.

    Raises:
        MediaError: there is no such image.
    """
    whole = structure("NvBufSurface").from_address(surface)
    if not 0 <= index < whole.batchSize:
        raise MediaError(f"there is no image {index} in an NvBufSurface of {whole.batchSize}")
    kind = structure("NvBufSurfaceParams")
    image = kind.from_address(whole.surfaceList + index * ctypes.sizeof(kind))
    left, top, right, bottom = box or (0, 0, image.width, image.height)
    left, top = max(0, left), max(0, top)
    width, height = min(right, image.width) - left, min(bottom, image.height) - top
    rgb = np.empty((max(0, height), max(0, width), 3), np.uint8)
    area = (ctypes.c_uint32 * 4)(top, left, rgb.shape[1], rgb.shape[0])
    read = native.call("headrace_read_rgb", *[ctypes.c_void_p] * 3, result=ctypes.c_int)
    if rgb.size and read(ctypes.addressof(image), area, rgb.ctypes.data) != 0:
        raise MediaError(f"an NvBufSurface has an image of color format {image.colorFormat}")
    return rgb


def planes_in(data: Array, format: str, width: int, height: int) -> tuple[Array, ...] | None:
    """Read the first image that C code sends as a structure of its own in a buffer.

    Args:
        data: the bytes of the buffer.
        format: of GStreamer, from its caps.
        width: in pixels, as the caps say.
        height: likewise.

    Returns:
        Copies of the planes, (rows, bytes of a row) each; None if the buffer is none of a
        structure's size.

    Raises:
        MediaError: the structure holds no such image.
    """
    if data.size != SURFACE_BYTES:
        return None
    surface = structure("NvBufSurface").from_buffer_copy(data.tobytes())
    return _image_planes(surface.surfaceList, format, width, height)


def sent_images(buffer: int, format: str, width: int, height: int) -> Iterator[tuple[Array, ...]]:
    """Read all images of a buffer that C code made; none if it holds no structure.

    Args:
        buffer: its address.
        format: of GStreamer, from the caps.
        width: in pixels, as the caps say.
        height: likewise.

    Raises:
        MediaError: see `planes_in`.
    """
    raw = (ctypes.c_uint8 * SURFACE_BYTES)()
    extract = native.call(
        "headrace_read_structure", ctypes.c_void_p, ctypes.c_void_p, result=ctypes.c_int
    )
    if extract(buffer, ctypes.addressof(raw)):
        surface = structure("NvBufSurface").from_buffer_copy(raw)
        size = ctypes.sizeof(structure("NvBufSurfaceParams"))
        for index in range(surface.numFilled or surface.batchSize):
            yield _image_planes((surface.surfaceList or 0) + index * size, format, width, height)


def is_of_elements(buffer: int) -> bool:
    """True for a buffer that an element of ours made: its memory stands for images."""
    ask = native.call("headrace_has_images", ctypes.c_void_p, result=ctypes.c_int)
    return bool(ask(buffer))


def _image_planes(address: int, format: str, width: int, height: int) -> tuple[Array, ...]:
    kind = structure("NvBufSurfaceParams")
    image = kind.from_buffer_copy(_read(address, ctypes.sizeof(kind)))
    if (image.width, image.height) != (width, height) or image.colorFormat != C_FORMATS[format]:
        raise MediaError(
            f"an NvBufSurface has an image of {image.width}x{image.height}, color format "
            f"{image.colorFormat}",
            expected=f"{width}x{height}, color format {C_FORMATS[format]} ({format}), as its caps",
        )
    params = image.planeParams
    planes = []
    end = 0
    for i, (rows, row) in enumerate(_plane_bytes(format, width, height)):
        known = i < params.num_planes and params.pitch[i] >= row
        # Programs that fill a structure themselves leave its planes out: rows without a gap.
        pitch = params.pitch[i] if known else row
        start = params.offset[i] if known and (params.offset[i] or not i) else end
        end = start + pitch * rows
        raw = np.frombuffer(_read((image.dataPtr or 0) + start, pitch * rows), np.uint8)
        planes.append(np.ascontiguousarray(raw.reshape(rows, pitch)[:, :row]))
    return tuple(planes)


def _plane_bytes(format: str, width: int, height: int) -> list[tuple[int, int]]:
    """Rows and bytes of a row of each plane."""
    half_w, half_h = (width + 1) // 2, (height + 1) // 2
    if format == "NV12":
        return [(height, width), (half_h, 2 * half_w)]
    if format == "I420":
        return [(height, width), (half_h, half_w), (half_h, half_w)]
    return [(height, width * {"GRAY8": 1, "RGB": 3, "BGR": 3}.get(format, 4))]


def _read(address: int | None, size: int) -> bytes:
    """Copy memory of C: an address that is not there is an error, and no crash.

    Raises:
        MediaError: there are no such bytes.
    """
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            raw = os.pread(memory.fileno(), size, address or 0)
    except (OSError, OverflowError):
        raw = b""
    if len(raw) != size or not address:
        raise MediaError(
            f"an NvBufSurface points to {address or 0:#x}, where no {size} bytes are",
            fix="fill surfaceList and dataPtr before the buffer is sent",
        )
    return raw
