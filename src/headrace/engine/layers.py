"""List the layers of a plan, from the graph that it holds, and time them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headrace._core.errors import EngineError
from headrace.engine.backends import Backend, RunnerOptions, get_backend
from headrace.engine.plan import Plan
from headrace.engine.precision.rounded import half_tensors
from headrace.network.network import OPENVINO_DOMAIN
from headrace.network.openvino.reader import parse_openvino

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

    from headrace._core.types import Array
    from headrace.engine.backends.protocol import DLPackTensor


_QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "QLinear", "ConvInteger", "MatMulInteger",
              "QAttention", "QGemm")  # fmt: skip
_FLOATS = {1: "fp32", 10: "fp16", 16: "bf16", 11: "fp64"}
_OTHERS = {2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 5: "int16", 4: "uint16"}

_OPENVINO_TYPES = {"i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64", "boolean": "bool"}


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One node of the graph.

    Attributes:
        name: as the model calls it; else its first output's name.
        operator: with its domain, if not ONNX's own.
        inputs, outputs: names of tensors, without weights.
        shape: of the first output, as far as the graph says.
        precision: what it computes in: `int8` where its inputs come from dequantise nodes, `fp16`
            where its result is rounded to FP16, else the type of its first output; empty if the
            graph does not say.
        parameters: elements of its weights.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int | str | None, ...] | None
    precision: str
    parameters: int


def layers_of(plan: Plan) -> tuple[LayerInfo, ...]:
    """The layers of `plan`, in order of computation; those inside If and Loop are left out.

    Raises:
        EngineError: the model in the plan cannot be read.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(plan.whole_model())
    except DecodeError as error:
        where = str(plan.path) if plan.path else None
        raise EngineError("the model in the plan is damaged", where=where) from error
    return layers_of_model(model)


def layers_of_model(model: ModelProto) -> tuple[LayerInfo, ...]:
    """`layers_of` for a ModelProto."""
    graph = model.graph
    if [node.domain for node in graph.node] == [OPENVINO_DOMAIN]:
        return _layers_of_openvino(graph.node[0].attribute[0].s)
    weights = {t.name: (t.data_type, math.prod(t.dims)) for t in graph.initializer}
    known = {name: (kind, None) for name, (kind, _) in weights.items()}
    for info in (*graph.input, *_inferred(model), *graph.output):
        tensor = info.type.tensor_type
        shape: Any = None
        if tensor.HasField("shape"):
            shape = tuple(
                d.dim_value if d.HasField("dim_value") else _axis_name(d.dim_param)
                for d in tensor.shape.dim
            )
        known[info.name] = (tensor.elem_type, shape)
    made_by = {out: node for node in graph.node for out in node.output}
    halves = half_tensors(graph) - {value.name for value in graph.input}
    layers = []
    for node in graph.node:
        kind, shape = known.get(node.output[0], (0, None)) if node.output else (0, None)
        own = node.domain in ("", "ai.onnx")
        layer = LayerInfo(
            name=node.name or (node.output[0] if node.output else node.op_type),
            operator=node.op_type if own else f"{node.domain}::{node.op_type}",
            inputs=tuple(n for n in node.input if n and n not in weights),
            outputs=tuple(n for n in node.output if n),
            shape=shape,
            precision="fp16"
            if node.output and node.output[0] in halves and node.op_type != "Cast"
            else _precision(node, kind, made_by),
            parameters=sum(weights[n][1] for n in node.input if n in weights),
        )
        layers.append(layer)
    return tuple(layers)


def _layers_of_openvino(xml: bytes) -> tuple[LayerInfo, ...]:
    """Layers of the OpenVINO model that a node holds."""
    model = parse_openvino(xml, Path("model.xml"))
    constants = {layer.id for layer in model.layers.values() if layer.kind == "Const"}
    names = model.tensor_names
    layers = []
    for layer in model.layers.values():
        if layer.kind in ("Const", "Parameter", "Result"):
            continue
        first = next(iter(layer.outputs.values()), None)
        precision = "" if first is None else first.precision.lower()
        layers.append(
            LayerInfo(
                name=layer.name,
                operator=layer.kind,
                inputs=tuple(names[port] for port in layer.inputs if port[0] not in constants),
                outputs=tuple(names[layer.id, port] for port in layer.outputs),
                shape=None if first is None else first.axes,
                precision=_OPENVINO_TYPES.get(precision, precision),
                parameters=sum(
                    model.layers[source].outputs[port].elements
                    for source, port in layer.inputs
                    if source in constants
                ),
            )
        )
    return tuple(layers)


def _precision(node: NodeProto, kind: int, made_by: dict[str, NodeProto]) -> str:
    if node.op_type.startswith(_QUANTIZED):
        return "int8"
    pair = [made_by.get(name) for name in node.input[:2]]
    if len(pair) == 2 and all(n is not None and n.op_type == "DequantizeLinear" for n in pair):
        return "int8"
    return _FLOATS.get(kind) or _OTHERS.get(kind, "")


def _inferred(model: ModelProto) -> list[ValueInfoProto]:
    """Types and shapes of the tensors inside, as ONNX derives them."""
    import onnx

    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:  # shapes of constants matter, weights do not
        if len(tensor.raw_data) > 4096:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", "left-out"
    try:
        return list(onnx.shape_inference.infer_shapes(light).graph.value_info)
    except Exception:  # any kind comes out of the checker; then only what the graph says is known
        return list(model.graph.value_info)


def _axis_name(name: str) -> str | None:
    """A free axis's name; None if shape inference made it up."""
    return None if name.startswith("unk__") else name or None


@runtime_checkable
class ProfilingBackend(Backend, Protocol):
    """A runtime that times layers."""

    def profile(
        self, model: bytes, options: RunnerOptions, feeds: Mapping[str, DLPackTensor], runs: int
    ) -> list[tuple[str, list[float]]]:
        """Layers in order, each with its milliseconds of every run."""
        ...


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Milliseconds of one layer: of all runs together, on average, and the median."""

    name: str
    total_ms: float
    mean_ms: float
    median_ms: float
    percent: float


def layer_times(
    plan: Plan, options: RunnerOptions, feeds: Mapping[str, Array], runs: int
) -> Sequence[LayerTime]:
    """Run a plan and time each layer, under its name after the runtime fused layers.

    Raises:
        EngineError: the runtime does not time layers, or fails.
    """
    backend = get_backend(plan.header.runtime.name)
    if not isinstance(backend, ProfilingBackend):
        raise EngineError(f"{backend.name} does not time single layers")
    if plan.header.plugins:
        raise EngineError("plugins compute between its layers: headrace trace-plugins times them")
    if plan.is_large:
        raise EngineError("layers of models over 2 GiB are not timed")
    rows = backend.profile(plan.whole_model(), options, feeds, runs)
    whole = sum(sum(times) for _, times in rows) or 1.0
    return [
        LayerTime(
            name=name,
            total_ms=sum(times),
            mean_ms=sum(times) / runs,
            median_ms=statistics.median(times),
            percent=100 * sum(times) / whole,
        )
        for name, times in rows
    ]
