"""How each layer but the heads becomes ONNX operators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace.network.darknet.heads import HEADS
from headrace.network.darknet.lowering import DarknetLowering, Lower, activate
from headrace.network.graph_builder import Blob, Shape, size

_EPSILON = 1e-5  # what Darknet adds to variances
_MAX_SIDE = 2**12
_REFUSED = ("antialiasing", "assisted_excitation", "binary", "deform", "flipped", "reverse",
            "rotate", "share_index", "stretch", "stretch_sway", "sway", "xnor")  # fmt: skip


def _convolutional(ctx: DarknetLowering) -> Blob:
    section, x = ctx.section, ctx.image()
    section.refuse(*_REFUSED, least=-(2**31))
    filters = section.integer("filters", 1, least=1)
    kernel = section.integer("size", 1, least=1, most=_MAX_SIDE)
    stride = section.integer("stride", 1, least=1, most=_MAX_SIDE)
    strides = [section.integer(f"stride_{axis}", stride, least=1) for axis in "yx"]
    dilation = section.integer("dilation", 1, least=1, most=_MAX_SIDE)
    pad = kernel // 2 if section.integer("pad", 0) else section.integer("padding", 0)
    pad *= dilation
    groups = section.integer("groups", 1, least=1)
    channels = x.shape[1]
    if channels % groups or filters % groups or pad > _MAX_SIDE:
        raise ctx.error(
            f"{channels} channels and {filters} filters in {groups} groups, padding {pad}",
            expected="both divisible by groups",
        )
    extent = dilation * (kernel - 1) + 1
    sides = [(n + 2 * pad - extent) // s + 1 for n, s in zip(x.shape[2:], strides, strict=True)]
    if any(n + 2 * pad < extent for n in x.shape[2:]):
        raise ctx.error(f"size {kernel} does not fit an input of {x.shape[2]} x {x.shape[3]}")
    norm, bias = None, np.zeros(filters, np.float32)
    if section.integer("batch_normalize", 0):
        bias = ctx.take("biases", filters)
        norm = _norm(ctx, filters)
    elif section.integer("bias", 1):
        bias = ctx.take("biases", filters)
    weight = ctx.take("weights", filters, channels // groups, kernel, kernel)
    weight, bias = _folded(weight, bias, norm)
    y = ctx.op(
        "Conv",
        [x, ctx.constant(weight, name="weight"), ctx.constant(bias, name="bias")],
        (x.shape[0], filters, *sides),
        kernel_shape=[kernel] * 2,
        strides=strides,
        pads=[pad] * 4,
        dilations=[dilation] * 2,
        group=groups,
    )
    return activate(ctx, y, "logistic")


Norm = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]


def _norm(ctx: DarknetLowering, count: int) -> Norm:
    scale, mean, variance = (ctx.take(name, count) for name in ("scales", "means", "variances"))
    return scale, mean, variance


def _folded(
    weight: npt.NDArray[np.float32], bias: npt.NDArray[np.float32], norm: Norm | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Weights and biases with the normalisation in them."""
    if norm is None:
        return weight, bias
    scale, mean, variance = (part.astype(np.float64) for part in norm)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + _EPSILON)
        spread = factor.reshape(-1, *(1,) * (weight.ndim - 1))
        return (weight * spread).astype(np.float32), (bias - mean * factor).astype(np.float32)


def _connected(ctx: DarknetLowering) -> Blob:
    outputs = ctx.section.integer("output", 1, least=1)
    inputs = size(ctx.x.shape[1:])
    bias = ctx.take("biases", outputs)
    if ctx.weights.transposed:
        weight = ctx.take("weights", inputs, outputs).T
    else:
        weight = ctx.take("weights", outputs, inputs)
    norm = _norm(ctx, outputs) if ctx.section.integer("batch_normalize", 0) else None
    weight, bias = _folded(weight, bias, norm)
    x = ctx.graph.reshape(ctx.x, (ctx.x.shape[0], inputs))
    terms = [x, ctx.constant(weight, name="weight"), ctx.constant(bias, name="bias")]
    return activate(ctx, ctx.op("Gemm", terms, (x.shape[0], outputs), transB=1), "logistic")


def _implicit(ctx: DarknetLowering) -> Blob:
    """Learnt numbers, one per channel, that other layers add or multiply."""
    filters = ctx.section.integer("filters", 1, least=1)
    if ctx.section.integer("atoms", 1, least=1) != 1:
        raise ctx.section.error("atoms", "several atoms are not supported", "atoms=1")
    return ctx.constant(ctx.take("weights", filters).reshape(1, filters, 1, 1), name="weight")


def _route(ctx: DarknetLowering) -> Blob:
    """Outputs of layers joined along the channels, or one group of the channels of each."""
    section = ctx.section
    numbers = section.integers("layers", least=-(2**31))
    if not numbers:
        raise ctx.error("layers is not given")
    blobs = [ctx.layer(number, "layers") for number in numbers]
    groups = section.integer("groups", 1, least=1)
    group = section.integer("group_id", 0)
    if groups > 1:
        blobs = [_part(ctx, blob, groups, group) for blob in blobs]
    first = blobs[0]
    if any(b.rank != 4 or b.shape[2:] != first.shape[2:] for b in blobs):
        sizes = ", ".join(" x ".join(map(str, b.shape[2:])) for b in blobs)
        raise ctx.error(f"the layers have different sizes: {sizes}")
    if len(blobs) == 1:
        return first
    channels = sum(b.shape[1] for b in blobs)
    return ctx.op("Concat", blobs, (first.shape[0], channels, *first.shape[2:]), axis=1)


def _part(ctx: DarknetLowering, blob: Blob, groups: int, group: int) -> Blob:
    channels = blob.shape[1]
    if channels % groups or group >= groups:
        raise ctx.error(f"group_id {group} of {groups} groups of {channels} channels")
    step = channels // groups
    return ctx.graph.slice(blob, 1, group * step, (group + 1) * step)


def _shortcut(ctx: DarknetLowering) -> Blob:
    section, y = ctx.section, ctx.image()
    if section.text("weights_type", "none") != "none":
        raise section.error("weights_type", "weighted shortcuts are not supported", "none")
    numbers = section.integers("from", least=-(2**31))
    if not numbers:
        raise ctx.error("from is not given")
    for number in numbers:
        other = ctx.layer(number, "from")
        if other.shape != y.shape:
            raise ctx.error(
                f"layer {number} is {' x '.join(map(str, other.shape[1:]))}, "
                f"the layer before {' x '.join(map(str, y.shape[1:]))}",
                expected="equal shapes",
            )
        y = ctx.same("Add", y, other)
    return activate(ctx, y)


def _pool(operator: str) -> Lower:
    def lower(ctx: DarknetLowering) -> Blob:
        """Padding is the sum of both ends, size - 1 by default; the smaller half comes first."""
        section, x = ctx.section, ctx.image()
        section.refuse("maxpool_depth", "antialiasing")
        stride = section.integer("stride", 1, least=1, most=_MAX_SIDE)
        strides = [section.integer(f"stride_{axis}", stride, least=1) for axis in "yx"]
        kernel = section.integer("size", stride, least=1, most=_MAX_SIDE)
        pad = section.integer("padding", kernel - 1, most=_MAX_SIDE)
        sides = [(n + pad - kernel) // s + 1 for n, s in zip(x.shape[2:], strides, strict=True)]
        if any(n + pad < kernel for n in x.shape[2:]) or pad - pad // 2 >= kernel:
            raise ctx.error(f"size {kernel}, padding {pad} on {x.shape[2]} x {x.shape[3]}",
                            expected="windows that fit")  # fmt: skip
        # windows are counted from the front: what does not fit behind is not padded for
        ends = [max((o - 1) * s + kernel - n - pad // 2, 0)
                for o, s, n in zip(sides, strides, x.shape[2:], strict=True)]  # fmt: skip
        return ctx.op(
            operator,
            [x],
            (*x.shape[:2], *sides),
            kernel_shape=[kernel] * 2,
            strides=strides,
            pads=[pad // 2, pad // 2, *ends],
        )

    return lower


def _avgpool(ctx: DarknetLowering) -> Blob:
    x = ctx.image()
    return ctx.op("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))


def _upsample(ctx: DarknetLowering) -> Blob:
    x = ctx.image()
    stride = ctx.section.integer("stride", 2, least=1, most=_MAX_SIDE)
    sides = [n * stride for n in x.shape[2:]]
    y = ctx.op(
        "Resize",
        [x, None, ctx.constant([1, 1, stride, stride])],
        (*x.shape[:2], *sides),
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )
    scale = ctx.section.number("scale", 1.0)
    return y if scale == 1 else ctx.same("Mul", y, ctx.constant(scale))


def _reorg3d(ctx: DarknetLowering) -> Blob:
    """Each block of pixels becomes channels: place in the block first, then channel."""
    n, c, h, w = ctx.image().shape
    s = ctx.section.integer("stride", 2, least=1, most=_MAX_SIDE)
    if h % s or w % s:
        raise ctx.error(f"stride {s} does not divide {h} x {w}")
    return _reordered(ctx, (n, c, h // s, s, w // s, s), (n, c * s * s, h // s, w // s))


def _reorg(ctx: DarknetLowering) -> Blob:
    """The layer of YOLO v2, which takes its input for a larger image with fewer channels."""
    n, c, h, w = ctx.image().shape
    s = ctx.section.integer("stride", 2, least=1, most=_MAX_SIDE)
    ctx.section.refuse("reverse", "flatten", "extra")
    if h % s or w % s or c % (s * s):
        raise ctx.error(f"stride {s} does not divide {c} x {h} x {w}")
    return _reordered(ctx, (n, c // (s * s), h, s, w, s), (n, c * s * s, h // s, w // s))


def _reordered(ctx: DarknetLowering, parts: Shape, shape: Shape) -> Blob:
    turned = ctx.graph.transpose(ctx.graph.reshape(ctx.x, parts), (0, 3, 5, 1, 2, 4))
    return ctx.graph.reshape(turned, shape)


def _softmax(ctx: DarknetLowering) -> Blob:
    groups = ctx.section.integer("groups", 1, least=1)
    count = size(ctx.x.shape[1:])
    if count % groups or ctx.section.text("tree"):
        raise ctx.error(f"{groups} groups of {count}, or a tree", expected="equal groups, no tree")
    x = ctx.graph.reshape(ctx.x, (ctx.x.shape[0], groups, count // groups))
    temperature = ctx.section.number("temperature", 1.0)
    if temperature != 1:
        x = ctx.same("Div", x, ctx.constant(temperature))
    return ctx.graph.reshape(ctx.same("Softmax", x, axis=2), (ctx.x.shape[0], count))


def _passed_on(ctx: DarknetLowering) -> Blob:
    return ctx.x


def _activation(ctx: DarknetLowering) -> Blob:
    return activate(ctx, ctx.x)


def _with_other(operator: str) -> Lower:
    def lower(ctx: DarknetLowering) -> Blob:
        """The input and, channel by channel or all over, another layer's output."""
        (number,) = ctx.section.integers("from", least=-(2**31), count=1) or (None,)
        if number is None:
            raise ctx.error("from is not given")
        x, other = ctx.image(), ctx.layer(number, "from")
        if ctx.section.kind in ("scale_channels", "se"):
            # the layer named is the image, the layer before has one number per channel
            x, other = other, x
        fits = other.rank == x.rank == 4 and other.shape[1] == x.shape[1]
        sides = other.shape[2:] if other.rank == 4 else ()
        if not fits or sides not in ((1, 1), x.shape[2:]):
            raise ctx.error(f"{x.shape[1:]} and {other.shape[1:]} do not go together")
        return activate(ctx, ctx.same(operator, x, other))

    return lower


LOWERINGS: dict[str, Lower] = {
    **HEADS,
    "activation": _activation,
    "avg": _avgpool,
    "avgpool": _avgpool,
    "conn": _connected,
    "connected": _connected,
    "control_channels": _with_other("Mul"),
    "conv": _convolutional,
    "convolutional": _convolutional,
    "cost": _passed_on,
    "dropout": _passed_on,
    "implicit": _implicit,
    "implicit_add": _implicit,
    "implicit_mul": _implicit,
    "local_avg": _pool("AveragePool"),
    "local_avgpool": _pool("AveragePool"),
    "max": _pool("MaxPool"),
    "maxpool": _pool("MaxPool"),
    "reorg": _reorg,
    "reorg3d": _reorg3d,
    "reorg_old": _reorg,
    "route": _route,
    "sam": _with_other("Mul"),
    "scale_channels": _with_other("Mul"),
    "se": _with_other("Mul"),
    "shift_channels": _with_other("Add"),
    "shortcut": _shortcut,
    "soft": _softmax,
    "softmax": _softmax,
    "upsample": _upsample,
}
"""Name of a section -> the function that makes its nodes."""
