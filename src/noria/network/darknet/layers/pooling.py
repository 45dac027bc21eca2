"""Layers without weights on one input: pooling, upsampling, reorg, soft-max."""

from __future__ import annotations

from noria.network.darknet.lowering import DarknetLowering, Lower, activate
from noria.network.graph_builder import Blob, size

_MAX_SIDE = 2**12


def _pool(operator: str) -> Lower:
    def lower(ctx: DarknetLowering) -> Blob:
        """Padding is the sum of both ends, size - 1 by default; the smaller half comes first."""
        section, x = ctx.section, ctx.picture()
        for key in ("maxpool_depth", "antialiasing"):
            if section.integer(key, 0):
                raise section.error(key, f"{key} is not supported", f"{key}=0, or none")
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
    x = ctx.picture()
    return ctx.op("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))


def _upsample(ctx: DarknetLowering) -> Blob:
    x = ctx.picture()
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
    x = ctx.picture()
    n, c, h, w = x.shape
    s = ctx.section.integer("stride", 2, least=1, most=_MAX_SIDE)
    if h % s or w % s:
        raise ctx.error(f"stride {s} does not divide {h} x {w}")
    parts = ctx.graph.reshape(x, (n, c, h // s, s, w // s, s))
    turned = ctx.graph.transpose(parts, (0, 3, 5, 1, 2, 4))
    return ctx.graph.reshape(turned, (n, c * s * s, h // s, w // s))


def _reorg(ctx: DarknetLowering) -> Blob:
    """The layer of YOLO v2, which takes its input for a larger picture with fewer channels."""
    x = ctx.picture()
    n, c, h, w = x.shape
    s = ctx.section.integer("stride", 2, least=1, most=_MAX_SIDE)
    for key in ("reverse", "flatten", "extra"):
        if ctx.section.integer(key, 0):
            raise ctx.section.error(key, f"{key} is not supported", f"{key}=0, or none")
    if h % s or w % s or c % (s * s):
        raise ctx.error(f"stride {s} does not divide {c} x {h} x {w}")
    parts = ctx.graph.reshape(x, (n, c // (s * s), h, s, w, s))
    turned = ctx.graph.transpose(parts, (0, 3, 5, 1, 2, 4))
    return ctx.graph.reshape(turned, (n, c * s * s, h // s, w // s))


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
        x, other = ctx.picture(), ctx.layer(number, "from")
        if ctx.section.kind in ("scale_channels", "se"):
            # the layer named is the picture, the layer before has one number per channel
            x, other = other, x
        fits = other.rank == x.rank == 4 and other.shape[1] == x.shape[1]
        sides = other.shape[2:] if other.rank == 4 else ()
        if not fits or sides not in ((1, 1), x.shape[2:]):
            raise ctx.error(f"{x.shape[1:]} and {other.shape[1:]} do not go together")
        return activate(ctx, ctx.same(operator, x, other))

    return lower


LOWERINGS: dict[str, Lower] = {
    "activation": _activation,
    "avg": _avgpool,
    "avgpool": _avgpool,
    "control_channels": _with_other("Mul"),
    "cost": _passed_on,
    "dropout": _passed_on,
    "local_avg": _pool("AveragePool"),
    "local_avgpool": _pool("AveragePool"),
    "max": _pool("MaxPool"),
    "maxpool": _pool("MaxPool"),
    "reorg": _reorg,
    "reorg3d": _reorg3d,
    "reorg_old": _reorg,
    "sam": _with_other("Mul"),
    "scale_channels": _with_other("Mul"),
    "se": _with_other("Mul"),
    "shift_channels": _with_other("Add"),
    "soft": _softmax,
    "softmax": _softmax,
    "upsample": _upsample,
}
