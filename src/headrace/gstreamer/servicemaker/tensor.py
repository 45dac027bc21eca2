"""Tensors in main memory that other packages take by DLPack, and buffers made of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.types import Array, DType
from headrace.gstreamer.elements.bindings import Gst, GstVideo, structure_of
from headrace.gstreamer.elements.surface import CapsReader, packed
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.servicemaker.view import view_of

if TYPE_CHECKING:
    from headrace.gstreamer.servicemaker.metadata import BatchMetadata


class ColorFormat(Enum):
    """Layouts of an image's pixels; the value is GStreamer's name."""

    RGB = "RGB"
    BGR = "BGR"
    RGBA = "RGBA"
    GRAY = "GRAY8"
    NV12 = "NV12"
    I420 = "I420"


_CHANNELS = {"RGB": 3, "BGR": 3, "RGBA": 4}


class Tensor:
    """An array; `torch.utils.dlpack.from_dlpack` and `numpy.from_dlpack` take it without a copy.

    Attributes:
        values: the array.
        format: names of the axes, such as `HWC`.
    """

    def __init__(self, values: Array, format: str = "") -> None:
        self.values, self.format = values, format

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.values.shape

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.values.dtype

    def clone(self) -> Tensor:
        """Copy the values; a tensor of a buffer must be copied to outlive it."""
        return Tensor(self.values.copy(), self.format)

    def wrap(self, format: ColorFormat) -> Any:
        """Make a buffer of an image, a copy.

        Args:
            format: layout; (height, width, channels) for RGB, BGR and RGBA, (height, width) for
                GRAY, (height * 3 / 2, width) for NV12 and I420.

        Raises:
            MediaError: the tensor has another shape or type.
        """
        values = np.ascontiguousarray(self.values)
        if self.format == "CHW" and values.ndim == 3:
            values = np.ascontiguousarray(values.transpose(1, 2, 0))
        channels = _CHANNELS.get(format.value)
        expected_shape = f"(height, width, {channels})" if channels else "(rows, width)"
        fits = values.shape[2:] == ((channels,) if channels else ()) and values.ndim >= 2
        if values.dtype != np.uint8 or not fits:
            raise MediaError(
                f"a tensor of {values.shape} {values.dtype} is no image in {format.name}",
                expected=f"{expected_shape} uint8",
            )
        return image_buffer(values, format.value)

    def __dlpack__(self, **options: Any) -> Any:
        values = self.values
        if not values.flags.writeable:  # DLPack has no word for that
            values = values.copy()
        return values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.values.__dlpack_device__()
        return int(kind), int(number)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy if copy else None)

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.dtype}{', ' + self.format if self.format else ''})"


def as_tensor(data: object, format: str = "") -> Tensor:
    """Take an array of another package as a tensor, without a copy where it lies in main memory.

    Args:
        data: anything with `__dlpack__` or `__array__`.
        format: names of the axes, `HWC` or `CHW` for an image.
    """
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        return Tensor(np.from_dlpack(data), format)
    return Tensor(np.asarray(data), format)


class Buffer:
    """A buffer with its metadata; without arguments an empty one, which ends a stream.

    Attributes:
        gst: GStreamer's buffer; None if it is empty.
    """

    def __init__(self, data: Sequence[int] | bytes | None = None) -> None:
        self.gst: Any = None if data is None else Gst.Buffer.new_wrapped(bytes(data))
        self._caps: Gst.Caps | None = None

    @classmethod
    def of(cls, gst: Gst.Buffer, caps: Gst.Caps | None = None) -> Buffer:
        """Show a buffer that is there; its caps tell the layout of its images."""
        buffer = cls()
        buffer.gst, buffer._caps = gst, caps
        return buffer

    def __bool__(self) -> bool:
        return self.gst is not None

    @property
    def timestamp(self) -> int:
        """Time of presentation, in nanoseconds."""
        return int(self.gst.pts)

    @property
    def batch_meta(self) -> BatchMetadata:
        """The metadata of its batch.

        Raises:
            MediaError: the buffer comes before the multiplexer and has none.
        """
        batch = bridge().get(hash(self.gst))
        if batch is None:
            raise MediaError("a buffer before nvstreammux has no metadata of a batch")
        view: BatchMetadata = view_of(batch)
        return view

    @property
    def batch_size(self) -> int:
        """Number of images."""
        batch = bridge().get(hash(self.gst))
        return 1 if batch is None else len(batch.surfaces)

    def get_chunk_id(self, batch_id: int) -> int:
        """Return 0: no source here numbers its pieces."""
        return 0

    def extract(self, batch_id: int) -> Tensor:
        """Return an image: (height, width, channels) uint8, in the format of the caps.

        The pixels of RGBA are the buffer's own: what is written is shown. YUV comes as RGB.

        Raises:
            MediaError: the buffer has no such image.
        """
        batch = bridge().get(hash(self.gst))
        if not 0 <= batch_id < self.batch_size:
            raise MediaError(f"batch_id {batch_id} of a buffer of {self.batch_size} images")
        format = structure_of(self._caps).get_string("format") if self._caps else "RGB"
        if batch is None:
            if self._caps is None:
                raise MediaError("the buffer has no caps: its layout is unknown")
            surface = CapsReader(self._caps).surface(self.gst)
        else:
            surface = batch.surfaces[batch_id]
        if format == "RGBA" and batch is not None:
            return Tensor(surface.rgba(), "HWC")
        kept = format if format in ("RGB", "BGR", "RGBA") else "RGB"
        return Tensor(packed(surface.frame(), kept), "HWC")


def image_buffer(values: npt.NDArray[np.uint8], format: str) -> Buffer:
    """Make a buffer of an image.

    Args:
        values: (height, width[, channels]); NV12 and I420 have half as many rows again.
        format: GStreamer's name.
    """
    rows, width = values.shape[:2]
    height = rows * 2 // 3 if format in ("NV12", "I420") else rows
    info = GstVideo.VideoInfo.new()
    info.set_format(GstVideo.VideoFormat.from_string(format), width, height)
    flat = values.reshape(rows, -1)
    if info.size == flat.size:
        data = flat.tobytes()
    elif format == "I420" or format == "NV12":
        raise MediaError(f"{format} of {width} x {height}: width and height must be multiples of 4")
    else:  # GStreamer starts each row at a multiple of four bytes
        padded = np.zeros((rows, info.size // rows), np.uint8)
        padded[:, : flat.shape[1]] = flat
        data = padded.tobytes()
    return Buffer.of(Gst.Buffer.new_wrapped(data))
