"""INT8, explicit in the graph: QuantizeLinear and DequantizeLinear around INT8 layers.

TensorRT's rules: activations symmetric with one scale per tensor, weights symmetric with one scale
per output channel, zero points 0, biases in floating point. Quantised are the inputs of layers
with weights (Conv, ConvTranspose, Gemm, MatMul); what follows them up to the next such layer is
left to the runtime to fuse. The pairs are inserted by ONNX Runtime's quantisation tools.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from headrace._core.errors import EngineError
from headrace._core.lazy import as_guest
from headrace.engine.precision.choice import TensorChoice
from headrace.engine.precision.even import even_out, evened, set_ranges
from headrace.engine.precision.prepare import PrecisionReport, Proto, sort_nodes
from headrace.network.graph_builder import fresh

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


MIN_OPSET = 13  # scales per channel
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_WEIGHT_INPUT = 1

Layout = Literal["inputs", "all"]


def to_qdq(
    proto: Proto,
    scales: Mapping[str, float],
    *,
    keep: Collection[str] = (),
    only: Collection[str] | None = None,
    layout: Layout = "inputs",
    weight_bits: Literal[7, 8] = 8,
    unsigned: bool = False,
    tensors: Mapping[str, TensorChoice] = MappingProxyType({}),
    own_zeros: bool = False,
) -> tuple[Proto, PrecisionReport]:
    """Put Q/DQ pairs into a prepared model.

    Args:
        proto: from `prepare`, of opset 13 or newer.
        scales: activation -> scale; 0 counts as none.
        keep: names of nodes to leave as they are.
        only: names of the only nodes to convert, if not all.
        layout: `inputs` quantises what goes into layers with weights, as TensorRT and OpenVINO
            want it; `all` every tensor with a scale, so that runtimes which compute whole chains
            in INT8, such as ONNX Runtime, find a pair on each side.
        weight_bits: 7 keeps weights within 64, for processors that add products of bytes in 16
            bits.
        unsigned: activations as bytes around 128 in the place of signed ones: the same values.
        tensors: activation -> its range and factors, in the place of its scale. Not with `all`.
        own_zeros: `tensors` get unsigned bytes with the zero point of their range; False:
            symmetric ones that hold it.

    Raises:
        EngineError: the tools refuse the model; nothing is left to quantise.
    """
    report = PrecisionReport()
    weights = {t.name: t for t in proto.graph.initializer}
    chosen = []
    for node in proto.graph.node:
        if node.op_type not in WEIGHTED or node.domain not in ("", "ai.onnx"):
            continue
        if only is not None and node.name not in only:
            continue
        why = _why_not(node, weights, scales, keep)
        if why is None:
            chosen.append(node.name)
        else:
            report.kept[node.name] = why
            if why == _NO_SCALE and node.input[0] not in report.missing:
                report.missing.append(node.input[0])
    if not chosen:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(report.kept.items())[:3])
        problem = "no layer can be quantised"
        if scales and not scales.keys() & _tensors(proto):
            problem += (
                ": the calibration table (int8-calib-file) names no tensor of this model, it "
            )
            problem += "is the table of another one"
        raise EngineError(
            problem,
            expected="at least one convolution or matrix product with weights and a scale",
            fix=[reasons] if reasons else (),
        )
    report.converted = chosen
    if only is not None:  # chains between them are not wanted
        layout = "inputs"
    if tensors and layout == "inputs":
        proto = even_out(proto, tensors, chosen, 63 if weight_bits == 7 else 127)
        own = {evened(n) if t.factors else n: t.scale for n, t in tensors.items()}
        scales = {**scales, **own}
    quantised = _insert(proto, scales, chosen, keep, layout, weight_bits)
    if unsigned:
        _around_128(quantised.graph)
    if own_zeros and layout == "inputs":
        set_ranges(quantised.graph, tensors)
    return quantised, report


_NO_SCALE = "its input has no scale"


def _tensors(proto: Proto) -> set[str]:
    names = {name for node in proto.graph.node for name in node.output}
    return names | {value.name for value in proto.graph.input}


def _why_not(
    node: NodeProto,
    weights: Mapping[str, TensorProto],
    scales: Mapping[str, float],
    keep: Collection[str],
) -> str | None:
    if node.name in keep:
        return "asked for"
    if len(node.input) <= _WEIGHT_INPUT or node.input[_WEIGHT_INPUT] not in weights:
        return "its weights are computed"
    weight = weights[node.input[_WEIGHT_INPUT]]
    if weight.data_type != TensorProto.FLOAT:
        return "its weights are not FP32"
    if node.op_type == "MatMul" and len(weight.dims) != 2:
        return "its weights are no matrix"
    if node.input[0] in weights:
        return "its input is constant"
    return None if scales.get(node.input[0], 0.0) > 0 else _NO_SCALE


def _insert(
    proto: Proto,
    scales: Mapping[str, float],
    chosen: list[str],
    keep: Collection[str],
    layout: Layout,
    weight_bits: int,
) -> Proto:
    positive_scales = {name: scale for name, scale in scales.items() if scale > 0}
    weighted = set(chosen)
    nodes, operators = chosen, list(WEIGHTED)
    options: dict[str, object] = {
        "ActivationSymmetric": True,
        "WeightSymmetric": True,
        "QuantizeBias": layout == "all",
        "QDQKeepRemovableActivations": True,
        "OpTypesToExcludeOutputQuantization": operators if layout == "inputs" else [],
    }
    if layout == "all":
        left = {n.name for n in proto.graph.node if n.op_type in WEIGHTED} - weighted
        nodes = [
            n.name
            for n in proto.graph.node
            if n.name not in left and n.name not in keep and _all_scaled(n, proto, positive_scales)
        ]
        operators = sorted({n.op_type for n in proto.graph.node if n.name in set(nodes)})
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    try:
        with _quiet():
            model = _quantised(model, positive_scales, nodes, operators, options, weight_bits == 7)
    except Exception as error:  # the tools raise whatever an odd graph makes them raise
        said = (str(error) or type(error).__name__).splitlines()[0][:300]
        raise EngineError(f"the quantisation tools refuse the model: {said}") from error
    if layout == "inputs":
        _only_for(model.graph, weighted)
    sort_nodes(model.graph)
    return model


def _only_for(graph: GraphProto, chosen: Collection[str]) -> None:
    """Let nodes that are not chosen, and the model's outputs, take tensors as they were.

    The tools put a pair behind a tensor for everyone who takes it.
    """
    outputs = {value.name for value in graph.output}
    quantized = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "QuantizeLinear"}
    before = {
        node.output[0]: quantized[node.input[0]]
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in quantized
    }
    # the tools give an output's name to the end of its pair; now it goes back to the tensor
    back = {old: name for name, old in before.items() if name in outputs}
    ends = {name: f"{name}_dequantized" for name in back.values()}
    for node in graph.node:
        pair = node.op_type in ("QuantizeLinear", "DequantizeLinear")
        for index, name in enumerate(node.input):
            if name in before and not pair and node.name not in chosen:
                name = before[name]
            node.input[index] = back.get(name) or ends.get(name, name)
        for index, name in enumerate(node.output):
            node.output[index] = back.get(name) or ends.get(name, name)


def _around_128(graph: GraphProto) -> None:
    """Let every pair of activations store unsigned bytes with the zero point 128."""
    taken = {tensor.name for tensor in graph.initializer}
    zero = fresh("zero_point_128", taken)
    stored = {n.output[0] for n in graph.node if n.op_type == "QuantizeLinear"}
    for node in graph.node:
        pair = node.output[0] in stored or node.input[0] in stored
        if pair and node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            node.input[2] = zero
    for value in graph.value_info:
        if value.name in stored:
            value.type.tensor_type.elem_type = TensorProto.UINT8
    graph.initializer.append(numpy_helper.from_array(np.array(128, np.uint8), zero))


def _all_scaled(node: NodeProto, proto: Proto, scales: Mapping[str, float]) -> bool:
    """Whether a node's float activations all have scales, its output included."""
    return node.op_type in _CHAINED and all(
        name in scales for name in (*node.input[:1], *node.output[:1])
    )


# What ONNX Runtime computes in INT8 between layers with weights.
_CHAINED = frozenset(
    {
        *WEIGHTED, "Add", "Mul", "Sigmoid", "Relu", "LeakyRelu", "Clip", "Concat", "MaxPool",
        "AveragePool", "GlobalAveragePool", "Resize", "Slice", "Split", "Transpose", "Reshape",
        "Flatten", "Squeeze", "Unsqueeze", "Pad",
    }
)  # fmt: skip


def _quantised(
    proto: Proto,
    scales: Mapping[str, float],
    nodes: list[str],
    operators: list[str],
    options: dict[str, object],
    narrow: bool,
) -> Proto:
    # The tools ship with ONNX Runtime; nothing is run here.
    with as_guest():
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData
        from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    ranges = {
        name: TensorData(lowest=np.float32(-127 * s), highest=np.float32(127 * s))
        for name, s in scales.items()
    }
    overrides = {
        name: [
            {
                "quant_type": QuantType.QInt8,
                "scale": np.array(s, np.float32),
                "zero_point": np.array(0, np.int8),
            }
        ]
        for name, s in scales.items()
    }
    quantizer = QDQQuantizer(
        proto,
        per_channel=True,
        reduce_range=narrow,
        weight_qType=QuantType.QInt8,
        activation_qType=QuantType.QInt8,
        tensors_range=TensorsData(CalibrationMethod.MinMax, ranges),
        nodes_to_quantize=nodes,
        nodes_to_exclude=[],
        op_types_to_quantize=operators,
        extra_options={**options, "TensorQuantOverrides": overrides},
    )
    quantizer.quantize_model()
    quantized: ModelProto = quantizer.model.model
    return quantized


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tools' messages off the root logger of programs without logging."""
    root = logging.getLogger()
    handler = logging.NullHandler()  # or logging.warning() would install one of its own

    def silent(record: logging.LogRecord) -> bool:
        return "onnxruntime" not in record.pathname

    root.addHandler(handler)
    root.addFilter(silent)
    try:
        yield
    finally:
        root.removeFilter(silent)
        root.removeHandler(handler)
