"""Convolution, deconvolution, pooling, padding. Source: tensorrt-api spec 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.fragment import Fragment, Inputs, LoweringError, lowers, required


def _spread(value: Sequence[int] | None, count: int, default: int) -> list[int]:
    if value is None:
        return [default] * count
    if len(value) != count:
        raise LoweringError(f"{len(value)} numbers {tuple(value)} for {count} spatial axes")
    return [int(v) for v in value]


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
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return (less, more, None) if mode == "SAME_UPPER" else (more, less, None)
    if mode.startswith("CAFFE"):
        post = list(pre)
    return pre, post, None


@lowers("CONVOLUTION")
def convolution(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Convolve with a kernel over the last axes."""
    x = required(inputs, 0)
    kernel_shape = [int(k) for k in layer._params["kernel_size"]]
    count, groups = len(kernel_shape), int(layer._params["num_groups"])
    if f.rank(x) != count + 2:
        raise LoweringError(
            f"a convolution over {count} axes needs {count + 2 - f.offset} axes of input, not "
            f"{f.rank(x) - f.offset}"
        )
    stride = _spread(layer._params.get("stride"), count, 1)
    dilation = _spread(layer._params.get("dilation"), count, 1)
    maps, channels = int(layer._params["num_output_maps"]), f.shape(x)[1]
    if channels < 0:
        raise LoweringError("the number of channels must be known")
    kernel = _weights(f, layer, inputs, "KERNEL", x, [maps, channels // groups, *kernel_shape])
    bias = _bias(f, layer, inputs, x, maps)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel_shape, strict=True)]
    pre, post, auto = _paddings(layer, f.shape(x)[2:], reach, stride)
    if layer._params["padding_mode"].name.endswith("ROUND_UP"):
        # floor((n + s - 1) / s) is ceil(n / s), and zeros more or less at the end add nothing
        post = [p + s - 1 for p, s in zip(post, stride, strict=True)]
    return [
        f.op(
            "Conv", x, kernel, *([bias] if bias else []), kernel_shape=kernel_shape,
            strides=stride, dilations=dilation, group=groups, auto_pad=auto,
            pads=None if auto else [*pre, *post],
        )
    ]  # fmt: skip


@lowers("DECONVOLUTION")
def deconvolution(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Convolve transposed, with the padding cut from the result."""
    x = required(inputs, 0)
    kernel_shape = [int(k) for k in layer._params["kernel_size"]]
    count, groups = len(kernel_shape), int(layer._params["num_groups"])
    if f.rank(x) != count + 2:
        raise LoweringError(f"a deconvolution over {count} axes on {f.rank(x)} axes of input")
    stride = _spread(layer._params.get("stride"), count, 1)
    dilation = _spread(layer._params.get("dilation"), count, 1)
    maps, channels = int(layer._params["num_output_maps"]), f.shape(x)[1]
    kernel = _weights(f, layer, inputs, "KERNEL", x, [channels, maps // groups, *kernel_shape])
    bias = _bias(f, layer, inputs, x, maps)
    pre = _spread(layer._params.get("pre_padding"), count, 0)
    post = _spread(layer._params.get("post_padding"), count, 0)
    mode = layer._params["padding_mode"].name
    if mode.startswith("SAME"):
        # the convolution's rule read backwards: out = in * stride
        total = [
            max(0, d * (k - 1) + 1 - s)
            for d, k, s in zip(dilation, kernel_shape, stride, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        pre, post = (less, more) if mode == "SAME_UPPER" else (more, less)
    elif mode.startswith("CAFFE"):
        post = list(pre)
    return [
        f.op(
            "ConvTranspose", x, kernel, *([bias] if bias else []), kernel_shape=kernel_shape,
            strides=stride, dilations=dilation, group=groups, pads=[*pre, *post],
        )
    ]  # fmt: skip


@lowers("FULLY_CONNECTED")
def fully_connected(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """The last three axes as one vector. Output: K x 1 x 1 behind the leading axes."""
    x = required(inputs, 0)
    if f.rank(x) < 3 + f.offset:
        raise LoweringError(f"a fully connected layer needs 3 axes, not {f.rank(x) - f.offset}")
    length = int(np.prod(f.shape(x)[-3:]))
    maps = int(layer._params["num_output_maps"])
    kernel = _weights(f, layer, inputs, "KERNEL", x, [maps, length])
    bias = _bias(f, layer, inputs, x, maps)
    lead = list(range(f.rank(x) - 3))
    flat = f.reshape(x, [*[0 for _ in lead], length])
    made = f.op("MatMul", flat, f.transpose(kernel, [1, 0]))
    if bias:
        made = f.op("Add", made, bias)
    return [f.unsqueeze(made, [len(lead) + 1, len(lead) + 2])]


@lowers("POOLING")
def pooling(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Reduce each window to its maximum, mean or a blend of both."""
    x = required(inputs, 0)
    window = [int(k) for k in layer._params["window_size"]]
    count = len(window)
    if f.rank(x) != count + 2:
        raise LoweringError(f"a pooling over {count} axes on {f.rank(x) - f.offset} axes of input")
    stride = _spread(layer._params.get("stride"), count, 1)
    spatial = f.shape(x)[2:]
    pre, post, auto = _paddings(layer, spatial, window, stride)
    mode, ceil = layer._params["padding_mode"].name, 0
    if mode.endswith("ROUND_UP"):
        if -1 in spatial:
            ceil = 1
        else:
            post = [
                p + _beyond(n, a, p, k, s, caffe=mode.startswith("CAFFE"))
                for n, a, p, k, s in zip(spatial, pre, post, window, stride, strict=True)
            ]
    kind = layer._params["type"].name
    settings = _Pool(window, stride, pre, post, auto, ceil)
    if kind == "MAX":
        return [_max_pool(f, x, settings)]
    average = _average_pool(f, x, settings, bool(layer._params["average_count_excludes_padding"]))
    if kind == "AVERAGE":
        return [average]
    blend = float(layer._params["blend_factor"])
    left = f.op("Mul", _max_pool(f, x, settings), f.like(1 - blend, x))
    return [f.op("Add", left, f.op("Mul", average, f.like(blend, x)))]


def _beyond(n: int, pre: int, post: int, window: int, stride: int, *, caffe: bool) -> int:
    """Elements that rounding up adds behind the padding."""
    out = -(-(n + pre + post - window) // stride) + 1
    if caffe and (out - 1) * stride >= n + pre:  # no window starts in the padding
        out -= 1
    return (out - 1) * stride + window - (n + pre + post)


class _Pool:
    def __init__(
        self, window: list[int], stride: list[int], pre: list[int], post: list[int],
        auto: str | None, ceil: int,
    ) -> None:  # fmt: skip
        self.window, self.stride, self.pre, self.post = window, stride, pre, post
        self.attributes: dict[str, Any] = {
            "kernel_shape": window, "strides": stride, "auto_pad": auto, "ceil_mode": ceil,
        }  # fmt: skip

    @property
    def wide(self) -> bool:
        """Runtimes refuse to pad as much as the window is wide, or to cut."""
        ends = [*zip(self.pre, self.window, strict=True), *zip(self.post, self.window, strict=True)]
        return any(p >= k or p < 0 for p, k in ends)

    @property
    def pads(self) -> list[int] | None:
        return None if self.attributes["auto_pad"] else [*self.pre, *self.post]


def _padded(f: Fragment, x: str, pool: _Pool, value: float) -> str:
    pads = f.ints(0, 0, *pool.pre, 0, 0, *pool.post)
    return f.op("Pad", x, pads, f.like(value, x))


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
    share = f.op("AveragePool", _padded(f, ones, pool, 0), **pool.attributes)
    return f.op("Div", total, share)


@lowers("PADDING")
def padding(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """Add zeros around the last two axes, or cut them."""
    x = required(inputs, 0)
    pre, post = list(layer._params["pre_padding"]), list(layer._params["post_padding"])
    lead = [0] * (f.rank(x) - len(pre))
    if len(pre) != len(post) or f.rank(x) < len(pre):
        raise LoweringError(f"paddings {tuple(pre)} and {tuple(post)} of {f.rank(x)} axes")
    return [f.op("Pad", x, f.ints(*lead, *pre, *lead, *post))]


def _weights(
    f: Fragment, layer: ILayer, inputs: Inputs, role: str, x: str, shape: list[int]
) -> str:
    """The kernel: input 1 if that is set, else the layer's own weights in this shape."""
    if len(inputs) > 1 and inputs[1] is not None:
        return inputs[1]
    array = layer._weights.get(role)
    if array is None or array.size == 0:
        raise LoweringError("there are no weights, neither given nor as input 1")
    if array.size != int(np.prod(shape)):
        raise LoweringError(f"{array.size} weights where {' x '.join(map(str, shape))} are needed")
    dtype = f.dtype(x) if f.is_float(x) else array.dtype
    return f.const(array.reshape(shape).astype(dtype, copy=False), role=role)


def _bias(f: Fragment, layer: ILayer, inputs: Inputs, x: str, maps: int) -> str | None:
    if len(inputs) > 2 and inputs[2] is not None:
        return inputs[2]
    array = layer._weights.get("BIAS")
    if array is None or array.size == 0:
        return None
    if array.size != maps:
        raise LoweringError(f"{array.size} biases for {maps} output maps")
    return f.const(array.reshape(maps).astype(f.dtype(x), copy=False), role="BIAS")
