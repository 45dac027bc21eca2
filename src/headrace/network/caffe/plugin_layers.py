"""Layers that plugins compute: those of a factory by their name, unknown types by the registry.

Plugins see what TensorRT's parser shows them: every blob has channels, height and width, and what
has further axes before these counts as so many images. Source: tensorrt-plugins spec 4.3, 10.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace._core.proto_text import Scalar
from headrace.network.caffe.fields import Fields
from headrace.network.caffe.lowering import CaffeLowering
from headrace.network.graph_builder import BATCH, PLUGIN_DOMAIN, Blob, GraphBuilder
from headrace.network.importer import PluginMaker, plugin_nodes

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace.network.graph_builder import Shape


_AXES = 3
_SUFFIXES = ("", "_TRT")
"""A layer of type Normalize is computed by the plugin Normalize_TRT."""
_INTEGERS = ("INT8", "INT16", "INT32", "INT64")
_FLOATS = {"FLOAT16": 65504.0, "FLOAT32": 3.4028234663852886e38, "FLOAT64": sys.float_info.max}
_OPEN = ("UNKNOWN", "CHAR", "DIMS")
_OWN_WEIGHTS = ("weights", "bias")
"""Fields that get the layer's weight blobs, in their order in the file."""


def by_image(graph: GraphBuilder, blob: Blob) -> Blob:
    """Return a tensor of several items for each image with an axis for the images."""
    if not blob.shape or blob.shape[0] >= BATCH:
        return blob
    return graph.reshape(blob, (BATCH, -blob.shape[0], *blob.shape[1:]))


def factory_layer(ctx: CaffeLowering, plugins: PluginMaker) -> list[Blob]:
    """The layer as the factory makes it."""
    inputs = _inputs(ctx)
    shapes = [(b.shape, b.dtype) for b in inputs]
    output_types = plugins.make_by_factory(ctx.layer.name, ctx.all_weights(), {}, shapes)
    if len(output_types) != len(ctx.layer.tops):
        raise ctx.error(
            f"its plugin has {len(output_types)} outputs",
            expected=f"{len(ctx.layer.tops)}, one for a top",
        )
    return _placed(ctx, plugins, inputs, output_types)


def registered_layer(ctx: CaffeLowering, plugins: PluginMaker) -> list[Blob] | None:
    """The layer as a registered plugin of its type makes it; None if there is none."""
    kind, names = next(
        ((k, n) for s in _SUFFIXES if (n := plugins.fields(k := ctx.layer.type + s)) is not None),
        ("", None),
    )
    if names is None:
        return None
    values = _values(ctx, kind, names)
    inputs = _inputs(ctx)
    shapes = [(b.shape, b.dtype) for b in inputs]
    output_types = plugins.make(ctx.layer.name, kind, values, shapes)
    return None if output_types is None else _placed(ctx, plugins, inputs, output_types)


def _inputs(ctx: CaffeLowering) -> list[Blob]:
    padded = []
    for blob in ctx.inputs:
        blob = by_image(ctx.graph, blob)
        missing = 1 + _AXES - blob.rank
        padded.append(ctx.graph.reshape(blob, blob.shape + (1,) * missing) if missing > 0 else blob)
    return padded


def _placed(
    ctx: CaffeLowering,
    plugins: PluginMaker,
    inputs: Sequence[Blob],
    output_types: Sequence[tuple[Shape, npt.DTypeLike]],
) -> list[Blob]:
    blobs = plugin_nodes(
        plugins,
        ctx.graph,
        ctx.layer.type,
        inputs,
        output_types,
        name=ctx.layer.name,
        image=ctx.image,
        domain=PLUGIN_DOMAIN,
    )
    return [
        ctx.graph.reshape(b, (BATCH * b.shape[1], *b.shape[2:]))
        if b.rank == 2 + _AXES and b.shape[0] == BATCH
        else b
        for b in blobs
    ]


def _values(ctx: CaffeLowering, kind: str, names: Mapping[str, str]) -> dict[str, object]:
    """Return the values of the text for a plugin's fields: `min_size` fits minSize and min_size."""
    by_name = {_plain(name): name for name in names}
    by_field: dict[str, object] = {}
    groups = [ctx.layer.fields.message(n) for n in ctx.layer.fields.groups()]
    for group in groups:
        for entry in group.names():
            field = by_name.get(_plain(entry))
            if field is None:
                expected = ", ".join(names) or "none"
                raise group.error(entry, f"plugin {kind} has no field {entry!r}", expected)
            by_field[field] = _value(group, entry, names[field])
    for index, array in enumerate(ctx.all_weights()):
        name = _OWN_WEIGHTS[index] if index < len(_OWN_WEIGHTS) else ""
        if name not in names:
            raise ctx.error(
                f"the caffemodel has {ctx.weight_count} weight blobs for the layer",
                expected=f"fields {' and '.join(_OWN_WEIGHTS)} of plugin {kind} for them",
            )
        by_field[name] = array
    return by_field


def _plain(name: str) -> str:
    return re.sub("_", "", name).lower()


def _value(group: Fields, name: str, declared: str) -> object:
    scalars = [_scalar(group, name, s, declared) for s in group.scalars(name)]
    return scalars[0] if len(scalars) == 1 else scalars


def _scalar(group: Fields, name: str, scalar: Scalar, declared: str) -> object:
    """A value as the field's type wants it; as it is written where the type leaves that open."""
    value = _plain_value(scalar)
    if declared in _INTEGERS or (declared in _OPEN and isinstance(value, int)):
        kind = declared if declared in _INTEGERS else "INT32"
        limit = 2 ** (int(kind.removeprefix("INT")) - 1)
        if not isinstance(value, int) or not -limit <= value < limit:
            expected = f"{kind}: a whole number from {-limit} to {limit - 1}"
            raise group.error(name, f"{name}: {_written(scalar)}", expected)
    elif declared in _FLOATS:
        word = scalar.text.lower().lstrip("+-")
        if scalar.kind != "string" and word in ("nan", "inf", "infinity"):
            return float(scalar.text)
        most = _FLOATS[declared]
        if isinstance(value, str) or not abs(value) <= most:
            expected = f"{declared}: a number from {-most:g} to {most:g}"
            raise group.error(name, f"{name}: {_written(scalar)}", expected)
    return value


def _plain_value(scalar: Scalar) -> float | int | str:
    word = scalar.text.lower()
    if scalar.kind == "number":
        is_integer = re.fullmatch(r"[+-]?(0x[0-9a-f]+|0|[1-9]\d*|0[0-7]+)", word) is not None
        if is_integer:  # 010 is octal, as in protobuf
            return int(word, 8 if re.fullmatch(r"[+-]?0[0-7]+", word) else 0)
        return float(word.rstrip("f"))
    if scalar.kind != "string" and word in ("true", "false"):
        return int(word == "true")
    return scalar.text


def _written(scalar: Scalar) -> str:
    return f'"{scalar.text}"' if scalar.kind == "string" else scalar.text
