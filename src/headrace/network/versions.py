"""The oldest ONNX version in which a model means the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

# What every runtime released since the middle of 2024 takes (onnx 1.16).
SURE_IR = 10
SURE_OPSET = 21


def stamp_older(proto: onnx.ModelProto) -> tuple[str, str] | None:
    """Mark a model in place as of an older version of ONNX if nothing in it needs the newer one.

    Exporters stamp models with the newest version they know, and runtimes refuse versions they do
    not know, although most operators have been the same for years. Models of a version that every
    runtime knows stay as they are; so do those with functions, whose bodies have versions of
    their own.

    Returns:
        Version before and after ("IR 14, opset 27"), None if it stays.
    """
    import onnx

    opset = next((o for o in proto.opset_import if o.domain in ("", "ai.onnx")), None)
    if proto.functions or opset is None:
        return None
    if proto.ir_version <= SURE_IR and opset.version <= SURE_OPSET:
        return None
    needed = SURE_OPSET
    for node in _nodes(proto.graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        try:
            schema = onnx.defs.get_schema(node.op_type, opset.version, "")
        except onnx.defs.SchemaError:
            if opset.version > onnx.defs.onnx_opset_version():
                return None  # it may be newer than the installed onnx
            continue  # a plugin: the same in every version
        if schema.since_version != opset.version:
            needed = max(needed, schema.since_version)
        else:
            needed = opset.version
    before = f"IR {proto.ir_version}, opset {opset.version}"
    opset.version = min(opset.version, needed)
    # Versions of the IR since 10 have added element types and fields about devices.
    if not _has_new_types(proto):
        proto.ir_version = min(proto.ir_version, max(SURE_IR, _ir_of_opset(opset.version)))
    after = f"IR {proto.ir_version}, opset {opset.version}"
    return None if before == after else (before, after)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _nodes(inner)


def _has_new_types(proto: onnx.ModelProto) -> bool:
    """Whether element types occur that came after `SURE_IR`."""
    import onnx

    known = onnx.TensorProto.INT4  # numbers rise with time; INT4 came with IR 10

    def new(value: onnx.ValueInfoProto) -> bool:
        return bool(value.type.tensor_type.elem_type > known)

    graph = proto.graph
    return (
        any(map(new, (*graph.input, *graph.output, *graph.value_info)))
        or any(tensor.data_type > known for tensor in graph.initializer)
        or any(
            attribute.t.data_type > known or (attribute.name in ("to", "output_dtype")
                                              and attribute.i > known)
            for node in _nodes(graph)
            for attribute in node.attribute
        )
        or bool(proto.configuration)
    )  # fmt: skip


def _ir_of_opset(opset: int) -> int:
    """The IR version that was current when an opset came out."""
    import onnx

    table: dict[tuple[str, int], int] = onnx.helper.OP_SET_ID_VERSION_MAP
    return table.get(("ai.onnx", opset), SURE_IR)
