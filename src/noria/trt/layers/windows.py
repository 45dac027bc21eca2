"""Layers that move a window over the spatial axes."""

from __future__ import annotations

from typing import Any

from noria.plugins.types import Dims, DimsHW
from noria.trt.api.enums import PaddingMode, PoolingType
from noria.trt.layers.base import ILayer, param, weights_param
from noria.trt.release import versioned

_OLD = "<10 deprecated>=8"


def _nd(key: str, fill: int, doc: str) -> Any:
    """A property of one number per spatial axis; unset it reads as `fill` for each."""

    def get(self: _Windowed) -> Dims:
        value = self._params.get(key)
        return Dims([fill] * self._spatial) if value is None else Dims(value)

    def put(self: _Windowed, value: Any) -> None:
        self._set_param(key, tuple(Dims(value)))

    return property(get, put, doc=doc)


def _hw(key: str, fill: int, doc: str) -> Any:
    """The same for two axes, by its older name."""

    def get(self: _Windowed) -> DimsHW:
        value = self._params.get(key)
        return DimsHW([fill, fill] if value is None else value)

    def put(self: _Windowed, value: Any) -> None:
        self._set_param(key, tuple(DimsHW(value)))

    return property(get, put, doc=doc)


class _Windowed(ILayer):
    _window_key = "kernel_size"

    @property
    def _spatial(self) -> int:
        return len(self._params.get(self._window_key) or (0, 0))

    stride_nd = _nd("stride", 1, "Steps along each spatial axis.")
    pre_padding = _nd("pre_padding", 0, "Elements before each spatial axis.")
    post_padding = _nd("post_padding", 0, "Elements behind each spatial axis.")
    padding_mode = param("padding_mode", PaddingMode, "How paddings and rounding are decided.")

    @property
    def padding_nd(self) -> Dims:
        """The same padding before and behind; reads the one before."""
        return self.pre_padding  # type: ignore[no-any-return]

    @padding_nd.setter
    def padding_nd(self, value: Any) -> None:
        self.pre_padding = value
        self.post_padding = value


@versioned({_OLD: "stride -> stride_nd, padding -> padding_nd"})
class _Hw(_Windowed):
    stride = _hw("stride", 1, "`stride_nd` of two axes.")

    @property
    def padding(self) -> DimsHW:
        """`padding_nd` of two axes."""
        return DimsHW(list(self.pre_padding) or [0, 0])

    @padding.setter
    def padding(self, value: Any) -> None:
        self.padding_nd = DimsHW(value)


@versioned({_OLD: "kernel_size -> kernel_size_nd, dilation -> dilation_nd"})
class _Convolving(_Hw):
    num_output_maps = param("num_output_maps", int, "Channels of the output.")
    num_groups = param("num_groups", int, "Groups of channels that do not mix.")
    kernel_size_nd = _nd("kernel_size", 1, "Extents of the kernel.")
    kernel_size = _hw("kernel_size", 1, "`kernel_size_nd` of two axes.")
    dilation_nd = _nd("dilation", 1, "Distance of neighbours in the kernel.")
    dilation = _hw("dilation", 1, "`dilation_nd` of two axes.")
    kernel = weights_param("KERNEL", "Weights of the kernel.")
    bias = weights_param("BIAS", "One number per output map, or nothing.")


class IConvolutionLayer(_Convolving):
    """Weights [maps, channels / groups, *kernel]. Source: tensorrt-api spec 3.4."""


class IDeconvolutionLayer(_Convolving):
    """Weights [channels, maps / groups, *kernel]. Source: tensorrt-api spec 3.4."""


@versioned({_OLD: "window_size -> window_size_nd"})
class IPoolingLayer(_Hw):
    """Greatest or mean element of a window."""

    _window_key = "window_size"
    type = param("type", PoolingType, "How a window becomes one number.")
    window_size_nd = _nd("window_size", 1, "Extents of the window.")
    window_size = _hw("window_size", 1, "`window_size_nd` of two axes.")
    blend_factor = param("blend_factor", float, "Share of the mean in MAX_AVERAGE_BLEND.")
    average_count_excludes_padding = param("average_count_excludes_padding", bool)


@versioned({_OLD: "pre_padding -> pre_padding_nd, post_padding -> post_padding_nd"})
class IPaddingLayer(ILayer):
    """Zeros around the last axes; negative numbers cut."""

    pre_padding_nd = param("pre_padding", lambda v: tuple(Dims(v)), "Before each axis.")
    post_padding_nd = param("post_padding", lambda v: tuple(Dims(v)), "Behind each axis.")
    pre_padding = param("pre_padding", lambda v: tuple(DimsHW(v)))
    post_padding = param("post_padding", lambda v: tuple(DimsHW(v)))


class IFullyConnectedLayer(ILayer):
    """The last three axes as a vector times a matrix [maps, elements]."""

    num_output_channels = param("num_output_maps", int, "Rows of the matrix.")
    kernel = weights_param("KERNEL", "The matrix.")
    bias = weights_param("BIAS", "One number per row, or nothing.")
