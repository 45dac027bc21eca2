"""Layers that take the outputs of others: route, shortcut."""

from __future__ import annotations

from noria.network.darknet.lowering import DarknetLowering, Lower, activate
from noria.network.graph_builder import Blob


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
    section, y = ctx.section, ctx.picture()
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


LOWERINGS: dict[str, Lower] = {"route": _route, "shortcut": _shortcut}
