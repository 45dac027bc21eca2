"""Images of a batch: views on decoders' buffers, or arrays that applications write into."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace.gstreamer.cmeta.images import planes_in
from headrace.gstreamer.elements.bindings import GstVideo, structure_of
from headrace.gstreamer.pyds.struct import function
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane, plane_shapes
from headrace.media.pixels import plane_views
from headrace.media.resizing import reformatted, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.gstreamer.elements.bindings import Gst


RAW_FORMATS = ("NV12", "I420", "RGBA", "BGRx", "RGB", "BGR", "GRAY8")
_PLANAR = {"NV12": PixelFormat.NV12, "I420": PixelFormat.I420, "GRAY8": PixelFormat.GRAY}
_PACKED = {"RGB": PixelFormat.RGB, "BGR": PixelFormat.BGR}
_ORDERS: dict[str, list[int]] = {
    "RGBA": [0, 1, 2], "RGB": [0, 1, 2], "BGRx": [2, 1, 0], "BGR": [2, 1, 0],
}  # fmt: skip
_AV_FORMATS = {
    "NV12": "nv12", "I420": "yuv420p", "RGBA": "rgba", "BGRx": "bgr0", "RGB": "rgb24",
    "BGR": "bgr24", "GRAY8": "gray",
}  # fmt: skip
VIEWS = "headrace-views"
"""Field of caps behind the dewarper: `kind:number` of each image in a buffer."""
_MAP_READ = 1
_MAP_INFO_BYTES, _DATA_AT, _SIZE_AT = 104, 16, 24  # GstMapInfo on machines of 64 bits


@cache
def _library() -> tuple[Callable[..., int], Callable[..., object]]:
    library = ctypes.CDLL("libgstreamer-1.0.so.0")
    mapping = function(library.gst_buffer_map, ctypes.c_int, c_void_p, c_void_p, ctypes.c_int)
    return mapping, function(library.gst_buffer_unmap, None, c_void_p, c_void_p)


class MappedBuffer:
    """The bytes of a GStreamer buffer, which live as long as this.

    Attributes:
        data: (size,) uint8.

    Raises:
        MediaError: the buffer cannot be mapped.
    """

    def __init__(self, buffer: Gst.Buffer) -> None:
        self._buffer = buffer  # holds a reference
        self._info = ctypes.create_string_buffer(_MAP_INFO_BYTES)
        mapping, self._unmap = _library()
        if not mapping(hash(buffer), self._info, _MAP_READ):
            raise MediaError("a buffer's memory cannot be mapped")
        address = c_void_p.from_buffer(self._info, _DATA_AT).value
        size = c_size_t.from_buffer(self._info, _SIZE_AT).value
        memory: Any = (ctypes.c_uint8 * size).from_address(address or 0)
        self.data: Plane = np.frombuffer(memory, np.uint8)
        self.data.flags.writeable = False

    def __del__(self) -> None:
        if hasattr(self, "data"):
            self._unmap(hash(self._buffer), self._info)


class Surface:
    """One image: planes as a decoder gave them, or in the format that an application asked for.

    Attributes:
        width, height: in pixels.
    """

    def __init__(self, frame: Frame | None, rgba: npt.NDArray[np.uint8] | None = None) -> None:
        self._frame = frame
        self._written: tuple[str, tuple[Plane, ...]] | None = None
        if frame is not None:
            self.width, self.height, self._color = frame.width, frame.height, frame.color
        elif rgba is not None:
            self._written = "RGBA", (rgba,)
            self.height, self.width = rgba.shape[:2]
            self._color = ColorSpace.BT601

    def rgba(self) -> npt.NDArray[np.uint8]:
        """Return the image as (height, width, 4) RGBA; writes change it from now on."""
        return self.planes("RGBA")[0]

    def planes(self, format: str) -> tuple[Plane, ...]:
        """Return the planes of the image in a format of GStreamer; writes change it from now on.

        Returns:
            (height, width) or (height, width, channels) uint8 each, contiguous.
        """
        if self._written is None or self._written[0] != format:
            self._written = format, writable_planes(self.frame(), format)
            self._frame = None
        return self._written[1]

    @property
    def is_rgba(self) -> bool:
        """True once an application asked for RGBA."""
        return self._written is not None and self._written[0] == "RGBA"

    def frame(self, **attributes: Any) -> Frame:
        """Return the image as a frame; a copy if an application may write into it.

        Args:
            attributes: source, number and time of the frame.
        """
        known = self._frame
        if known is not None:
            return Frame(
                known.planes, known.format, known.width, known.height, known.color,
                owner=known.owner, **attributes,
            )  # fmt: skip
        assert self._written is not None
        format, planes = self._written
        if format in _ORDERS:
            rgb = planes[0][:, :, _ORDERS[format]].copy()
            return Frame.from_array(rgb, PixelFormat.RGB, **attributes)
        copies = tuple(plane.copy() for plane in planes)
        kind = _PLANAR[format]
        return Frame(copies, kind, self.width, self.height, self._color, **attributes)

    def draw(self, frame: Frame) -> None:
        """Replace the image by one that was drawn over it; writers keep their planes."""
        if self._written is None:
            self._frame = frame
        elif self.is_rgba:
            self.rgba()[:, :, :3] = frame.to_rgb()
        else:
            format, planes = self._written
            for plane, drawn in zip(planes, writable_planes(frame, format), strict=True):
                plane[...] = drawn


def of_planes(planes: tuple[Plane, ...], format: str, width: int, height: int) -> Surface:
    """Make an image of rows of bytes, as `images.planes_in` reads them.

    Args:
        planes: (rows, bytes of a row) uint8 each.
        format: of GStreamer.
        width: in pixels.
        height: likewise.
    """
    if format in _PLANAR:
        kind = _PLANAR[format]
        shapes = plane_shapes(kind, width, height)
        parts = tuple(p.reshape(shape) for p, shape in zip(planes, shapes, strict=True))
        return Surface(Frame(parts, kind, width, height))
    rgb = planes[0].reshape(height, width, -1)[:, :, _ORDERS[format]].copy()
    return Surface(Frame.from_array(rgb, PixelFormat.RGB))


def writable_planes(frame: Frame, format: str) -> tuple[Plane, ...]:
    """Copy a frame into the planes of a format of GStreamer, one behind the other in memory."""
    if format not in _PLANAR:
        return (packed(frame, format),)
    kind = _PLANAR[format]
    planes = tuple(frame.planes)
    if frame.format is not kind:
        image = reformatted(frame, _AV_FORMATS[format], 0, 0)
        planes = plane_views(image, kind, frame.width, frame.height)
    return joined(planes)


def joined(planes: Sequence[Plane]) -> tuple[Plane, ...]:
    """Copy planes into one piece of memory: C code counts from the first one."""
    ends = np.cumsum([plane.size for plane in planes]).tolist()
    whole = np.empty(ends[-1], np.uint8)
    parts: list[Plane] = []
    for plane, end in zip(planes, ends, strict=True):
        part = whole[end - plane.size : end].reshape(plane.shape)
        part[...] = plane
        parts.append(part)
    return tuple(parts)


def packed(frame: Frame, format: str, width: int = 0, height: int = 0) -> npt.NDArray[np.uint8]:
    """Convert a frame to a packed format of GStreamer, scaled if a size is given.

    Returns:
        (height, width, channels) uint8, writable.
    """
    image = reformatted(frame, _AV_FORMATS[format], width, height)
    channels = {"RGBA": 4, "BGRx": 4, "RGB": 3, "BGR": 3}[format]
    plane = image.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(image.height, plane.line_size)
    return rows[:, : channels * image.width].reshape(image.height, image.width, channels).copy()


def system_bytes(surface: Surface, format: str, info: GstVideo.VideoInfo) -> bytes:
    """Lay an image out as GStreamer has it in system memory.

    Args:
        surface: the image; it is scaled to the size of `info`.
        format: of GStreamer.
        info: a `GstVideo.VideoInfo`: sizes, offsets and strides of planes.
    """
    width, height = info.width, info.height
    if format == "RGBA" and surface.is_rgba and (surface.width, surface.height) == (width, height):
        planes: tuple[npt.NDArray[np.uint8], ...] = (surface.rgba(),)
    elif format in _PLANAR:
        frame, kind = scaled(surface.frame(), width, height), _PLANAR[format]
        if frame.format is kind:
            planes = tuple(frame.planes)
        else:
            image = reformatted(frame, _AV_FORMATS[format], 0, 0)
            planes = tuple(plane.copy() for plane in plane_views(image, kind, width, height))
    else:
        planes = (packed(surface.frame(), format, width, height),)
    target = np.zeros(info.size, np.uint8)
    offsets, strides = info.offset, info.stride
    for i, plane in enumerate(planes):
        rows = plane.reshape(plane.shape[0], -1) if plane.ndim == 3 else plane
        into = target[offsets[i] : offsets[i] + strides[i] * len(rows)].reshape(len(rows), -1)
        into[:, : rows.shape[1]] = rows
    return target.tobytes()


def video_info(caps: Gst.Caps) -> GstVideo.VideoInfo:
    """Return the layout of images in system memory.

    Raises:
        MediaError: GStreamer has none for images of that size.
    """
    try:
        return GstVideo.VideoInfo.new_from_caps(caps)
    except TypeError:  # its constructor gave nothing
        raise MediaError(f"no image has these caps: {caps.to_string()}") from None


class CapsReader:
    """Reads buffers of one set of caps as frames.

    Attributes:
        width, height: in pixels.
        views: kind and number of each of the dewarper's images in a buffer; none of other caps.
    """

    def __init__(self, caps: Gst.Caps) -> None:
        structure = structure_of(caps)
        self.format = str(structure.get_string("format"))
        if self.format not in RAW_FORMATS:
            raise MediaError(
                f"images of format {self.format}", expected="one of " + ", ".join(RAW_FORMATS)
            )
        info = video_info(caps)
        self.width, self.height = info.width, info.height
        self._planes, self._bytes = info.finfo.n_planes, info.size
        pairs = (structure.get_string(VIEWS) or "").split()
        self.views = [
            (int(kind), int(index)) for kind, _, index in (p.partition(":") for p in pairs)
        ]
        self._offsets, self._strides = list(info.offset), list(info.stride)
        color = structure.get_string("colorimetry") or ""
        self._color = ColorSpace.BT709 if "bt709" in color else ColorSpace.BT601
        self._is_nvmm = "memory:NVMM" in caps.get_features(0).to_string()

    def surface(self, buffer: Gst.Buffer, view: int = 0, **attributes: Any) -> Surface:
        """Make a surface over a buffer, without a copy where its format allows.

        Args:
            buffer: of these caps.
            view: which of the dewarper's images, which lie one behind the other.
            attributes: of the frame.
        """
        mapped: MappedBuffer | None = MappedBuffer(buffer)
        assert mapped is not None
        offsets, strides = self._offsets, self._strides
        if (meta := GstVideo.buffer_get_video_meta(buffer)) is not None:
            offsets, strides = list(meta.offset), list(meta.stride)
        data = mapped.data[view * self._bytes :]
        if self._is_nvmm and (sent := planes_in(data, self.format, self.width, self.height)):
            data, mapped = np.concatenate([plane.reshape(-1) for plane in sent]), None
            offsets, strides = _close_layout(sent)
        if self.format in ("RGBA", "BGRx"):
            shape = (self.height, self.width, 4)
            pixels = _strided(data, offsets[0], shape, strides[0])
            order = [0, 1, 2, 3] if self.format == "RGBA" else [2, 1, 0, 3]
            return Surface(None, np.ascontiguousarray(pixels[:, :, order]))
        kind = _PLANAR.get(self.format) or _PACKED[self.format]
        planes: list[Plane] = [
            _strided(data, offsets[i], shape, strides[i])
            for i, shape in enumerate(plane_shapes(kind, self.width, self.height))
        ]
        return Surface(
            Frame(
                tuple(planes), kind, self.width, self.height, self._color, owner=mapped,
                **attributes,
            )
        )  # fmt: skip


def _close_layout(planes: Sequence[Plane]) -> tuple[list[int], list[int]]:
    """Offsets and strides, in bytes, of planes that follow each other without a gap."""
    offsets = [0, *np.cumsum([plane.size for plane in planes]).tolist()]
    return offsets, [plane.shape[1] for plane in planes]


def _strided(data: Plane, offset: int, shape: tuple[int, ...], stride: int) -> Plane:
    """View a plane of a buffer.

    Raises:
        MediaError: the buffer is shorter than its caps or its metadata say.
    """
    strides = (stride, 1) if len(shape) == 2 else (stride, shape[2], 1)
    row = shape[1] if len(shape) == 2 else shape[1] * shape[2]
    end = offset + stride * (shape[0] - 1) + row
    if stride < row or not row <= end <= data.size:
        raise MediaError(
            f"a buffer of {data.size} bytes, with rows of {stride}, is too short for its caps",
            expected=f"at least {end} bytes, and rows of {row}",
        )
    # as_strided takes eight times as long
    return np.ndarray(shape, np.uint8, data, offset, strides)


def planar(frame: Frame) -> Frame:
    """Convert a frame to I420."""
    image = reformatted(frame, "yuv420p", 0, 0)
    planes = plane_views(image, PixelFormat.I420, frame.width, frame.height)
    return Frame(planes, PixelFormat.I420, frame.width, frame.height, frame.color, owner=image)
