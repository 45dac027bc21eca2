"""Parts of a graph with plugins as models of their own, to be timed or to see values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from noria.engine.plugin_graph.split import names_read


def without_plugins(
    proto: Any,
    plugins: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    feeds: Mapping[str, npt.NDArray[Any]],
) -> tuple[bytes, list[str]]:
    """Take the plugin nodes out: their outputs become inputs, their inputs become outputs.

    All the runtime's work is in one model then, to be timed.

    Args:
        proto: the `ModelProto`.
        plugins: see `split_graph`.
        feeds: arrays for the graph's inputs and all that plugins give; their shapes are fixed.

    Returns:
        The ONNX message, and the names of its inputs.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    infos = {v.name: v for v in (*graph.value_info, *graph.output)}
    kept = [n for n in graph.node if n.name not in plugins]
    made = {name for n in kept for name in n.output}
    used = {r for n in kept for r in names_read(n)}
    given = {o for _, outs in plugins.values() for o in outs if o}
    inputs = [v.name for v in graph.input if v.name in feeds and v.name in used]
    inputs += sorted(given & used)
    ends = [v.name for v in graph.output if v.name not in given]
    copies = [onnx.ValueInfoProto.FromString(infos[n].SerializeToString()) for n in ends]
    for value in copies:
        value.type.tensor_type.ClearField("shape")
    for name, (reads, _) in plugins.items():
        for index, read in enumerate(reads):
            if read in made:  # under a name that no rewriting of the graph changes
                end = f"{name}:{index}"
                kept.append(onnx.helper.make_node("Identity", [read], [end], name=f"{end}/end"))
                copies.append(onnx.ValueInfoProto(name=end))
    for part in (graph.node, graph.output, graph.input, graph.value_info):
        del part[:]
    graph.node.extend(kept)
    graph.output.extend(copies)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    return bytes(model.SerializeToString(deterministic=True)), inputs


def upstream(
    proto: Any, names: Sequence[str], feeds: Mapping[str, npt.NDArray[Any]]
) -> tuple[bytes, list[str]]:
    """Cut out the part of a graph that makes `names`, beginning at the values in `feeds`.

    Args:
        proto: the `ModelProto`.
        names: of the values to compute.
        feeds: arrays of values where the part begins; their shapes are fixed.

    Returns:
        The ONNX message, and the names of the values that go in.
    """
    import onnx

    nodes = list(proto.graph.node)
    producer = {o: i for i, n in enumerate(nodes) for o in n.output if o}
    initializers = {t.name: t for t in proto.graph.initializer}
    needed: set[int] = set()
    inputs: dict[str, None] = {}
    weights: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in initializers:
            weights[name] = None
        elif name in feeds:
            inputs[name] = None
        elif name in producer and producer[name] not in needed:
            needed.add(producer[name])
            stack += [r for r in names_read(nodes[producer[name]]) if r]
    model = onnx.ModelProto()
    model.ir_version = max(proto.ir_version, 4)
    model.opset_import.extend(proto.opset_import)
    model.functions.extend(proto.functions)
    graph = model.graph
    graph.name = "upstream"
    graph.node.extend(nodes[i] for i in sorted(needed))
    graph.initializer.extend(initializers[n] for n in weights)
    for name in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(feeds[name].dtype)
        shape = list(feeds[name].shape)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    for name in names:
        graph.output.add().name = name
    return bytes(model.SerializeToString()), list(inputs)
