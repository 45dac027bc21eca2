"""Image buffers of the original (`NvBufSurface`), over main memory."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np

from headrace._core.types import Array
from headrace.gstreamer.pyds.functions import image_pixels
from headrace.gstreamer.pyds.struct import Nested, Struct, capsule_of


class NvBufSurfaceMemType(IntEnum):
    """Kinds of memory; here all of them are main memory."""

    NVBUF_MEM_DEFAULT = 0
    NVBUF_MEM_CUDA_PINNED = 1
    NVBUF_MEM_CUDA_DEVICE = 2
    NVBUF_MEM_CUDA_UNIFIED = 3
    NVBUF_MEM_SURFACE_ARRAY = 4
    NVBUF_MEM_HANDLE = 5
    NVBUF_MEM_SYSTEM = 6


class NvBufSurfaceMemMapFlags(IntEnum):
    """Purposes of a mapping."""

    NVBUF_MAP_READ = 0
    NVBUF_MAP_WRITE = 1
    NVBUF_MAP_READ_WRITE = 2


class NvBufSurfaceLayout(IntEnum):
    """Order of the pixels in memory."""

    NVBUF_LAYOUT_PITCH = 0
    NVBUF_LAYOUT_BLOCK_LINEAR = 1


_FORMATS = """
INVALID GRAY8 YUV420 YVU420 YUV420_ER YVU420_ER NV12 NV12_ER NV21 NV21_ER UYVY UYVY_ER VYUY VYUY_ER
YUYV YUYV_ER YVYU YVYU_ER YUV444 RGBA BGRA ARGB ABGR RGBx BGRx xRGB xBGR RGB BGR NV12_10LE NV12_12LE
YUV420_709 YUV420_709_ER NV12_709 NV12_709_ER YUV420_2020 NV12_2020 NV12_10LE_ER NV12_10LE_709
NV12_10LE_709_ER NV12_10LE_2020 SIGNED_R16G16 LAST
"""  # LAST ends the names that the bindings have; the headers of each release have more

NvBufSurfaceColorFormat = IntEnum(  # type: ignore[misc]  # its names are of a table
    "NvBufSurfaceColorFormat",
    {f"NVBUF_COLOR_FORMAT_{name}": number for number, name in enumerate(_FORMATS.split())},
    module=__name__,
)
"""Formats of pixels."""

_BYTES = {1: 1, **dict.fromkeys(range(19, 27), 4), 27: 3, 28: 3}
"""Bytes of a pixel of the formats with one plane."""


class NvBufSurfacePlaneParams(Struct):
    """Sizes of the planes of an image, four of each."""

    num_planes = 0

    def __init__(self) -> None:
        self.width, self.height, self.pitch = [0] * 4, [0] * 4, [0] * 4
        self.offset, self.psize, self.bytesPerPix = [0] * 4, [0] * 4, [0] * 4


class NvBufSurfaceMappedAddr(Struct):
    """Addresses of the planes while they are mapped, 0 else."""

    eglImage = 0

    def __init__(self) -> None:
        self.addr = [0] * 4


class NvBufSurfaceParams(Struct):
    """One image of a buffer; `dataPtr` is its address in main memory."""

    width = 0
    height = 0
    pitch = 0
    colorFormat: int = 0
    layout: int = 0
    bufferDesc = 0
    dataSize = 0
    dataPtr = 0
    planeParams = Nested(NvBufSurfacePlaneParams)
    mappedAddr = Nested(NvBufSurfaceMappedAddr)
    _values: Array | None = None


class NvBufSurfaceCreateParams(Struct):
    """Wishes for a buffer."""

    gpuId = 0
    width = 0
    height = 0
    size = 0
    isContiguous = False
    colorFormat: int = 0
    layout: int = 0
    memType: int = 0


class NvBufSurface(Struct):
    """Images of one kind.

    Attributes:
        surfaces: all images; `surfaceList` is the first, as the original's pointer is.
    """

    gpuId = 0
    batchSize = 0
    numFilled = 0
    isContiguous = False
    memType: int = 0

    def __init__(self) -> None:
        self.surfaces: list[NvBufSurfaceParams] = []

    @property
    def surfaceList(self) -> NvBufSurfaceParams | None:
        """The first image."""
        return self.surfaces[0] if self.surfaces else None


def _chosen(surf: NvBufSurface, index: int) -> list[NvBufSurfaceParams] | None:
    """The images that an index means, -1 all of them; None for one that is not there."""
    if index == -1:
        return surf.surfaces
    return surf.surfaces[index : index + 1] or None if index >= 0 else None


def NvBufSurfaceCreate(surf: NvBufSurface, batchSize: int, params: NvBufSurfaceCreateParams) -> int:
    """Make images of zeros, of a format with one plane; returns 0, or -1 for another format.

    Args:
        surf: is filled.
        batchSize: number of images.
        params: their size in pixels, and format.
    """
    pixel = _BYTES.get(int(params.colorFormat))
    if pixel is None or batchSize < 1 or params.width < 1 or params.height < 1:
        return -1
    surf.gpuId, surf.batchSize, surf.memType = params.gpuId, batchSize, params.memType
    surf.surfaces = []
    for _ in range(batchSize):
        one, plane = NvBufSurfaceParams(), None
        values = np.zeros((params.height, params.width * pixel), np.uint8)
        one.width, one.height, one.colorFormat = params.width, params.height, params.colorFormat
        one.layout, one.pitch, one.dataSize = params.layout, values.strides[0], values.nbytes
        one.dataPtr, one._values = int(values.__array_interface__["data"][0]), values
        plane = one.planeParams
        plane.num_planes, plane.width[0], plane.height[0] = 1, params.width, params.height
        plane.pitch[0], plane.psize[0], plane.bytesPerPix[0] = one.pitch, values.nbytes, pixel
        surf.surfaces.append(one)
    return 0


def NvBufSurfaceDestroy(surf: NvBufSurface) -> int:
    """Give the images back; returns 0."""
    surf.surfaces, surf.batchSize, surf.numFilled = [], 0, 0
    return 0


def NvBufSurfaceMap(surf: NvBufSurface, index: int, plane: int, type: int) -> int:
    """Set the addresses of images that are mapped; returns 0, or -1 if there is no such image."""
    chosen = _chosen(surf, index)
    for one in chosen or ():
        one.mappedAddr.addr[0] = one.dataPtr
    return -1 if chosen is None else 0


def NvBufSurfaceUnMap(surf: NvBufSurface, index: int, plane: int) -> int:
    """Take back the addresses of `NvBufSurfaceMap`; returns 0, or -1 if there is no such image."""
    chosen = _chosen(surf, index)
    for one in chosen or ():
        one.mappedAddr.addr[0] = 0
    return -1 if chosen is None else 0


def NvBufSurfaceSyncForCpu(surf: NvBufSurface, index: int, plane: int) -> int:
    """Return 0, or -1 if there is no such image: images lie in main memory."""
    return -1 if _chosen(surf, index) is None else 0


NvBufSurfaceSyncForDevice = NvBufSurfaceSyncForCpu


def NvBufSurfaceCopy(srcSurf: NvBufSurface, dstSurf: NvBufSurface) -> int:
    """Copy the images; returns 0, or -1 if sizes or formats differ."""
    pairs = list(zip(srcSurf.surfaces, dstSurf.surfaces, strict=False))
    if len(srcSurf.surfaces) != len(dstSurf.surfaces) or not all(
        a.dataSize == b.dataSize and a.colorFormat == b.colorFormat and a.width == b.width
        for a, b in pairs
    ):
        return -1
    for a, b in pairs:
        ctypes.memmove(b.dataPtr, a.dataPtr, a.dataSize)
    dstSurf.numFilled = srcSurf.numFilled
    return 0


def NvBufSurfaceMemSet(surf: NvBufSurface, index: int, plane: int, value: int) -> int:
    """Set all bytes of images; returns 0, or -1 if there is no such image."""
    chosen = _chosen(surf, index)
    for one in chosen or ():
        ctypes.memset(one.dataPtr, int(value) & 0xFF, one.dataSize)
    return -1 if chosen is None else 0


def NvBufSurfaceFromFd(dmabuf: int, buffer: object) -> int:
    """Refuse: there are no buffers of hardware here.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(f"NvBufSurfaceFromFd: there is no hardware buffer {dmabuf} on a CPU")


def NvBufSurfaceMapEglImage(surf: NvBufSurface, index: int) -> int:
    """Refuse: there is no EGL here.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "NvBufSurfaceMapEglImage: images lie in main memory; NvBufSurfaceMap maps them"
    )


def glist_get_nvds_Surface_Params(data: Any) -> NvBufSurfaceParams:
    """Return `data`, as the capsules of a list's nodes are cast in the original."""
    params: NvBufSurfaceParams = data
    return params


def get_nvds_buf_surface_gpu(
    address: int, batch_id: int
) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...], Any, int]:
    """Return the image of a frame by its address, which is one of main memory.

    The stand-in `cupy` of `headrace exec`, NumPy and ctypes read it; CUDA's own cupy cannot.

    Args:
        address: `hash(buffer)`.
        batch_id: of the frame's metadata.

    Returns:
        Type (uint8), shape (height, width, 4), strides in bytes, a capsule of the address, and the
        number of bytes.

    Raises:
        RuntimeError: the buffer has no such frame.
    """
    pixels = image_pixels("get_nvds_buf_surface_gpu", address, batch_id)
    capsule = capsule_of(pixels.__array_interface__["data"][0])
    return pixels.dtype, pixels.shape, pixels.strides, capsule, pixels.nbytes
