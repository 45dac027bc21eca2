"""Convolution, deconvolution, pooling, padding. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headrace.plugins.types import Dims, DimsHW
from headrace.trt.layers.base import ILayer, Param, weights_param
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.release import versioned
from headrace.trt.types.enums import PaddingMode, PoolingType

_OLD = "<10 deprecated>=8"


class _Spatial(Protocol):
    _spatial: int


def _nd(key: str, fill: int, doc: str) -> property:
    """Make a property of one number per spatial axis; unset it reads as `fill` for each."""

    def show(layer: _Spatial, value: Sequence[int] | None) -> Dims:
        return Dims([fill] * layer._spatial) if value is None else Dims(value)

    return Param(lambda v: tuple(Dims(v)), doc, key=key, show=show)


def _hw(key: str, fill: int, doc: str) -> property:
    """Make the same for two axes, by its older name."""

    def show(layer: ILayer, value: Sequence[int] | None) -> DimsHW:
        return DimsHW([fill, fill] if value is None else value)

    return Param(lambda v: tuple(DimsHW(v)), doc, key=key, show=show)


class _Windowed(ILayer):
    _window_key = "kernel_size"

    @property
    def _spatial(self) -> int:
        return len(self._params.get(self._window_key) or (0, 0))

    stride_nd = _nd("stride", 1, "Steps along each spatial axis.")
    pre_padding = _nd("pre_padding", 0, "Elements before each spatial axis.")
    post_padding = _nd("post_padding", 0, "Elements behind each spatial axis.")
    padding_mode = Param(
        PaddingMode, "How paddings and rounding are decided.",
        initial=PaddingMode["EXPLICIT_ROUND_DOWN"],
    )  # fmt: skip

    @property
    def padding_nd(self) -> Dims:
        """The same padding before and behind; reads the one before."""
        return self.pre_padding  # type: ignore[no-any-return]

    @padding_nd.setter
    def padding_nd(self, value: Sequence[int]) -> None:
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
    def padding(self, value: Sequence[int]) -> None:
        self.padding_nd = DimsHW(value)


@versioned({_OLD: "kernel_size -> kernel_size_nd, dilation -> dilation_nd"})
class _Convolving(_Hw):
    num_output_maps = Param(int, "Channels of the output.")
    num_groups = Param(int, "Groups of channels that do not mix.", initial=1)
    kernel_size_nd = _nd("kernel_size", 1, "Extents of the kernel.")
    kernel_size = _hw("kernel_size", 1, "`kernel_size_nd` of two axes.")
    dilation_nd = _nd("dilation", 1, "Distance of neighbours in the kernel.")
    dilation = _hw("dilation", 1, "`dilation_nd` of two axes.")
    kernel = weights_param("KERNEL", "Weights of the kernel.")
    bias = weights_param("BIAS", "One number per output map, or nothing.")


def _without_batch(f: Fragment, x: str, count: int) -> str:
    """The way on for a network that leaves the batch out, though batches are explicit."""
    if f.offset or f.rank(x) != count + 1:
        return ""
    return (
        "; networks of before TensorRT 10 leave an implicit batch out: compile C++ with "
        "-D NV_TENSORRT_MAJOR=8, run Python with HEADRACE_TRT_VERSION=8.6, or add the batch to the "
        "input's axes"
    )


class IConvolutionLayer(_Convolving):
    """A kernel over the last axes. Weights `[maps, channels / groups, *kernel]`."""

    _kind = "CONVOLUTION"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, (kernel_shape, groups, maps) = required(inputs, 0), _sizes(self)
        count = len(kernel_shape)
        if f.rank(x) != count + 2:
            raise LoweringError(
                f"a convolution over {count} axes needs {count + 2 - f.offset} axes of input, not "
                f"{f.rank(x) - f.offset}{_without_batch(f, x, count)}"
            )
        stride = _spread(self._params.get("stride"), count, 1)
        dilation = _spread(self._params.get("dilation"), count, 1)
        channels = f.shape(x)[1]
        if channels < 0:
            raise LoweringError("the number of channels must be known")
        kernel = _kernel(f, self, inputs, x, [maps, channels // groups, *kernel_shape])
        bias = _bias(f, self, inputs, x, maps)
        reach = _reach(dilation, kernel_shape)
        pre, post, auto = _paddings(self, f.shape(x)[2:], reach, stride)
        post, auto = _by_formula(self, "convolution", f.shape(x)[2:], reach, dilation, post, auto)
        if self._params["padding_mode"].name.endswith("ROUND_UP"):
            # floor((n + s - 1) / s) is ceil(n / s), and zeros more or less at the end add nothing
            post = [p + s - 1 for p, s in zip(post, stride, strict=True)]
        return [
            f.op(
                "Conv", x, kernel, *([bias] if bias else []), kernel_shape=kernel_shape,
                strides=stride, dilations=dilation, group=groups, auto_pad=auto,
                pads=None if auto else [*pre, *post],
            )
        ]  # fmt: skip


class IDeconvolutionLayer(_Convolving):
    """The convolution transposed, its padding cut. Weights `[channels, maps / groups, *kernel]`."""

    _kind = "DECONVOLUTION"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, (kernel_shape, groups, maps) = required(inputs, 0), _sizes(self)
        count = len(kernel_shape)
        if f.rank(x) != count + 2:
            raise LoweringError(
                f"a deconvolution over {count} axes on {f.rank(x)} axes of input"
                f"{_without_batch(f, x, count)}"
            )
        stride = _spread(self._params.get("stride"), count, 1)
        dilation = _spread(self._params.get("dilation"), count, 1)
        channels = f.shape(x)[1]
        kernel = _kernel(f, self, inputs, x, [channels, maps // groups, *kernel_shape])
        bias = _bias(f, self, inputs, x, maps)
        pre = _spread(self._params.get("pre_padding"), count, 0)
        post = _spread(self._params.get("post_padding"), count, 0)
        mode = self._params["padding_mode"].name
        if mode.startswith("SAME"):
            # the convolution's rule read backwards: out = in * stride
            total = [
                max(0, d * (k - 1) + 1 - s)
                for d, k, s in zip(dilation, kernel_shape, stride, strict=True)
            ]
            pre, post = _halves(total, mode)
        elif mode.startswith("CAFFE"):
            post = list(pre)
        reach = _reach(dilation, kernel_shape)
        post, _ = _by_formula(self, "deconvolution", f.shape(x)[2:], reach, dilation, post, None)
        return [
            f.op(
                "ConvTranspose", x, kernel, *([bias] if bias else []), kernel_shape=kernel_shape,
                strides=stride, dilations=dilation, group=groups, pads=[*pre, *post],
            )
        ]  # fmt: skip


@versioned({_OLD: "window_size -> window_size_nd"})
class IPoolingLayer(_Hw):
    """The greatest or mean element of each window, or a blend of both."""

    _kind = "POOLING"
    _window_key = "window_size"
    type = Param(PoolingType, "How a window becomes one number.")
    window_size_nd = _nd("window_size", 1, "Extents of the window.")
    window_size = _hw("window_size", 1, "`window_size_nd` of two axes.")
    blend_factor = Param(float, "Share of the mean in MAX_AVERAGE_BLEND.", initial=0.0)
    average_count_excludes_padding = Param(bool, initial=True)

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        window = [int(k) for k in self._params["window_size"]]
        count = len(window)
        if f.rank(x) != count + 2:
            raise LoweringError(
                f"a pooling over {count} axes on {f.rank(x) - f.offset} axes of input"
                f"{_without_batch(f, x, count)}"
            )
        stride = _spread(self._params.get("stride"), count, 1)
        spatial = f.shape(x)[2:]
        pre, post, auto = _paddings(self, spatial, window, stride)
        post, auto = _by_formula(self, "pooling", spatial, window, [1] * count, post, auto)
        mode, ceil = self._params["padding_mode"].name, 0
        if mode.endswith("ROUND_UP"):
            if -1 in spatial:
                ceil = 1
            else:
                post = [
                    p + _beyond(n, a, p, k, s, caffe=mode.startswith("CAFFE"))
                    for n, a, p, k, s in zip(spatial, pre, post, window, stride, strict=True)
                ]
        kind = self._params["type"].name
        settings = _Pool(window, stride, pre, post, auto, ceil)
        if kind == "MAX":
            return [_max_pool(f, x, settings)]
        average = _average_pool(
            f, x, settings, bool(self._params["average_count_excludes_padding"])
        )
        if kind == "AVERAGE":
            return [average]
        blend = float(self._params["blend_factor"])
        left = f.op("Mul", _max_pool(f, x, settings), f.like(1 - blend, x))
        return [f.op("Add", left, f.op("Mul", average, f.like(blend, x)))]


@versioned({_OLD: "pre_padding -> pre_padding_nd, post_padding -> post_padding_nd"})
class IPaddingLayer(ILayer):
    """Zeros around the last axes; negative numbers cut."""

    _kind = "PADDING"
    pre_padding_nd = Param(lambda v: tuple(Dims(v)), "Before each axis.", key="pre_padding")
    post_padding_nd = Param(lambda v: tuple(Dims(v)), "Behind each axis.", key="post_padding")
    pre_padding = Param(lambda v: tuple(DimsHW(v)))
    post_padding = Param(lambda v: tuple(DimsHW(v)))

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        pre, post = list(self._params["pre_padding"]), list(self._params["post_padding"])
        lead = [0] * (f.rank(x) - len(pre))
        if len(pre) != len(post) or f.rank(x) < len(pre):
            raise LoweringError(f"paddings {tuple(pre)} and {tuple(post)} of {f.rank(x)} axes")
        return [f.op("Pad", x, f.ints(*lead, *pre, *lead, *post))]


class IFullyConnectedLayer(ILayer):
    """The last three axes as a vector times a matrix [maps, elements]; gives [maps, 1, 1]."""

    _kind = "FULLY_CONNECTED"
    _words = "Fully Connected"
    num_output_channels = Param(int, "Rows of the matrix.", key="num_output_maps")
    kernel = weights_param("KERNEL", "The matrix.")
    bias = weights_param("BIAS", "One number per row, or nothing.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x = required(inputs, 0)
        if f.rank(x) < 3 + f.offset:
            raise LoweringError(f"a fully connected layer needs 3 axes, not {f.rank(x) - f.offset}")
        length = int(np.prod(f.shape(x)[-3:]))
        maps = int(self._params["num_output_maps"])
        kernel = _kernel(f, self, inputs, x, [maps, length])
        bias = _bias(f, self, inputs, x, maps)
        lead = list(range(f.rank(x) - 3))
        flat = f.reshape(x, [*[0 for _ in lead], length])
        product = f.op("MatMul", flat, f.transpose(kernel, [1, 0]))
        if bias:
            product = f.op("Add", product, bias)
        return [f.unsqueeze(product, [len(lead) + 1, len(lead) + 2])]


def _sizes(layer: ILayer) -> tuple[list[int], int, int]:
    """Give the kernel's shape, groups and output maps."""
    p = layer._params
    return [int(k) for k in p["kernel_size"]], int(p["num_groups"]), int(p["num_output_maps"])


def _spread(value: Sequence[int] | None, count: int, default: int) -> list[int]:
    if value is None:
        return [default] * count
    if len(value) != count:
        raise LoweringError(f"{len(value)} numbers {tuple(value)} for {count} spatial axes")
    return [int(v) for v in value]


def _reach(dilation: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """How many neighbours a kernel spans on each axis."""
    return [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]


def _paddings(
    layer: ILayer, spatial: Sequence[int], reach: Sequence[int], stride: Sequence[int]
) -> tuple[list[int], list[int], str | None]:
    """Padding before and after each spatial axis.

    The third value is ONNX's automatic mode, if an axis that matters is unknown; else None.
    """
    count = len(reach)
    pre = _spread(layer._params.get("pre_padding"), count, 0)
    post = _spread(layer._params.get("post_padding"), count, 0)
    mode = layer._params["padding_mode"].name
    if mode.startswith("SAME"):
        if -1 in spatial:
            return pre, post, mode
        total = [
            max(0, (-(-n // s) - 1) * s + r - n)
            for n, s, r in zip(spatial, stride, reach, strict=True)
        ]
        return *_halves(total, mode), None
    if mode.startswith("CAFFE"):
        post = list(pre)
    return pre, post, None


def _by_formula(
    layer: _Windowed, kind: str, spatial: Sequence[int], reach: Sequence[int],
    dilation: Sequence[int], post: list[int], auto: str | None,
) -> tuple[list[int], str | None]:  # fmt: skip
    """The padding behind that gives the extents of a formula of TensorRT 7."""
    formula = layer._network._formulas.get(kind)
    if formula is None:
        return post, auto
    if len(reach) != 2 or -1 in spatial:
        raise LoweringError("a formula needs an input of two known spatial axes")
    stride = _spread(layer._params.get("stride"), 2, 1)
    pre = _spread(layer._params.get("pre_padding"), 2, 0)
    kernel = _spread(layer._params.get(layer._window_key), 2, 1)
    extents = formula.compute(spatial, kernel, stride, pre, dilation, name=layer._name)
    rows = zip(spatial, extents, stride, reach, pre, strict=True)
    if kind == "deconvolution":
        return [(n - 1) * s + r - p - out for n, out, s, r, p in rows], auto
    return [(out - 1) * s + r - n - p for n, out, s, r, p in rows], None


def _halves(total: list[int], mode: str) -> tuple[list[int], list[int]]:
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return (less, more) if mode == "SAME_UPPER" else (more, less)


def _beyond(n: int, pre: int, post: int, window: int, stride: int, *, caffe: bool) -> int:
    """Elements that rounding up adds behind the padding."""
    out = -(-(n + pre + post - window) // stride) + 1
    if caffe and (out - 1) * stride >= n + pre:  # no window starts in the padding
        out -= 1
    return (out - 1) * stride + window - (n + pre + post)


@dataclass(frozen=True)
class _Pool:
    window: list[int]
    stride: list[int]
    pre: list[int]
    post: list[int]
    auto: str | None
    ceil: int

    @property
    def attributes(self) -> dict[str, object]:
        return {
            "kernel_shape": self.window, "strides": self.stride, "auto_pad": self.auto,
            "ceil_mode": self.ceil,
        }  # fmt: skip

    @property
    def wide(self) -> bool:
        """Runtimes refuse to pad as much as the window is wide, or to cut."""
        ends = [*zip(self.pre, self.window, strict=True), *zip(self.post, self.window, strict=True)]
        return any(p >= k or p < 0 for p, k in ends)

    @property
    def pads(self) -> list[int] | None:
        return None if self.auto else [*self.pre, *self.post]


def _padded(f: Fragment, x: str, pool: _Pool, value: float) -> str:
    return f.op("Pad", x, f.ints(0, 0, *pool.pre, 0, 0, *pool.post), f.like(value, x))


def _max_pool(f: Fragment, x: str, pool: _Pool) -> str:
    if pool.wide:
        lowest = float(np.finfo(f.dtype(x)).min) if f.is_float(x) else np.iinfo(f.dtype(x)).min
        return f.op("MaxPool", _padded(f, x, pool, lowest), **pool.attributes)
    return f.op("MaxPool", x, pads=pool.pads, **pool.attributes)


def _average_pool(f: Fragment, x: str, pool: _Pool, excludes: bool) -> str:
    if not pool.wide:
        return f.op(
            "AveragePool", x, pads=pool.pads, count_include_pad=int(not excludes), **pool.attributes
        )
    total = f.op("AveragePool", _padded(f, x, pool, 0), **pool.attributes)
    if not excludes:
        return total
    ones = f.op("Add", f.op("Mul", x, f.like(0, x)), f.like(1, x))
    return f.op("Div", total, f.op("AveragePool", _padded(f, ones, pool, 0), **pool.attributes))


def _kernel(f: Fragment, layer: ILayer, inputs: Inputs, x: str, shape: list[int]) -> str:
    """Give input 1 if that is set, else the layer's own weights in this shape."""
    if len(inputs) > 1 and inputs[1] is not None:
        return inputs[1]
    array = layer._weights.get("KERNEL")
    if array is None or array.size == 0:
        raise LoweringError("there are no weights, neither given nor as input 1")
    if array.size != int(np.prod(shape)):
        raise LoweringError(f"{array.size} weights where {' x '.join(map(str, shape))} are needed")
    dtype = f.dtype(x) if f.is_float(x) else array.dtype
    return f.const(array.reshape(shape).astype(dtype, copy=False), role="KERNEL")


def _bias(f: Fragment, layer: ILayer, inputs: Inputs, x: str, maps: int) -> str | None:
    if len(inputs) > 2 and inputs[2] is not None:
        return inputs[2]
    array = layer._weights.get("BIAS")
    if array is None or array.size == 0:
        return None
    if array.size != maps:
        raise LoweringError(f"{array.size} biases for {maps} output maps")
    return f.const(array.reshape(maps).astype(f.dtype(x), copy=False), role="BIAS")
