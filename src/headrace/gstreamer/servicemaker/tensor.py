"""Tensors in main memory that other packages take by DLPack, and pictures made of them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError


class ColorFormat(Enum):
    """Layouts of a picture's pixels; the value is GStreamer's name."""

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

    def __init__(self, values: npt.NDArray[Any], format: str = "") -> None:
        self.values, self.format = values, format

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    def clone(self) -> Tensor:
        """Copy the values; a tensor of a buffer must be copied to outlive it."""
        return Tensor(self.values.copy(), self.format)

    def wrap(self, format: ColorFormat) -> Any:
        """Make a buffer of a picture, a copy.

        Args:
            format: layout; (height, width, channels) for RGB, BGR and RGBA, (height, width) for
                GRAY, (height * 3 / 2, width) for NV12 and I420.

        Raises:
            MediaError: the tensor has another shape or type.
        """
        from headrace.gstreamer.servicemaker.buffers import picture_buffer

        values = np.ascontiguousarray(self.values)
        if self.format == "CHW" and values.ndim == 3:
            values = np.ascontiguousarray(values.transpose(1, 2, 0))
        channels = _CHANNELS.get(format.value)
        wanted = f"(height, width, {channels})" if channels else "(rows, width)"
        fits = values.shape[2:] == ((channels,) if channels else ()) and values.ndim >= 2
        if values.dtype != np.uint8 or not fits:
            raise MediaError(
                f"a tensor of {values.shape} {values.dtype} is no picture in {format.name}",
                expected=f"{wanted} uint8",
            )
        return picture_buffer(values, format.value)

    def __dlpack__(self, **options: Any) -> Any:
        values = self.values
        if not values.flags.writeable:  # DLPack has no word for that
            values = values.copy()
        return values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.values.__dlpack_device__()
        return int(kind), int(number)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy if copy else None)

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.dtype}{', ' + self.format if self.format else ''})"


def as_tensor(data: Any, format: str = "") -> Tensor:
    """Take an array of another package as a tensor, without a copy where it lies in main memory.

    Args:
        data: anything with `__dlpack__` or `__array__`.
        format: names of the axes, `HWC` or `CHW` for a picture.
    """
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        return Tensor(np.from_dlpack(data), format)
    return Tensor(np.asarray(data), format)
