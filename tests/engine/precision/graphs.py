"""Small graphs with what the precision passes must get right, and ways to run graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from headrace.engine.layers import layers_of_model
from headrace.network.network import Network


def network_of(proto: Any) -> Network:
    import onnx_ir as ir

    return Network(ir.from_proto(proto))


def model(nodes, inputs, outputs, weights, *, opset=17, value_info=()) -> onnx.ModelProto:
    """A model; inputs and outputs are name -> shape, all float."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()],
        value_info=value_info,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def small_net(opset: int = 17, seed: int = 0) -> onnx.ModelProto:
    """Conv + BatchNorm + Relu, a residual branch, Resize, MatMul.

    `image` (n, 3, 8, 8) -> `scores` (n, 5), `map` (n, 4, 16, 16).
    """
    rng = np.random.default_rng(seed)

    def w(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.4, shape).astype(np.float32)

    weights = {
        "w1": w(4, 3, 3, 3), "g": 1 + w(4), "b": w(4), "m": w(4), "v": 1 + np.abs(w(4)),
        "w2": w(4, 4, 1, 1), "b2": w(4), "scales": np.array([1, 1, 2, 2], np.float32),
        "roi": np.zeros(0, np.float32), "w3": w(4, 5), "flat": np.array([0, -1], np.int64),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "g", "b", "m", "v"], ["n1"], "norm"),
        helper.make_node("Relu", ["n1"], ["r1"], "relu"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"]),
        helper.make_node("Add", ["r1", "c2"], ["sum"], "add"),
        helper.make_node("Resize", ["sum", "roi", "scales"], ["map"], "resize", mode="nearest"),
        helper.make_node("GlobalAveragePool", ["sum"], ["pooled"]),
        helper.make_node("Reshape", ["pooled", "flat"], ["row"], "reshape"),
        helper.make_node("MatMul", ["row", "w3"], ["scores"], "product"),
    ]
    return model(
        nodes, {"image": ["n", 3, 8, 8]}, {"scores": ["n", 5], "map": ["n", 4, 16, 16]},
        weights, opset=opset,
    )  # fmt: skip


def run(data: bytes, feeds: dict[str, np.ndarray], outputs: list[str] | None = None) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # AVX2 without VNNI saturates sums of unsigned times signed bytes: not what is tested
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(data, options).run(outputs, feeds)


def ranges_of(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, float]:
    """Largest absolute value of every float activation."""
    from headrace.engine.precision.explicit import activation_names
    from headrace.engine.precision.prepare import prepare

    grown = prepare(proto)
    names = activation_names(grown)
    have = {v.name for v in (*grown.graph.input, *grown.graph.output)}
    grown.graph.output.extend(
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names if n not in have
    )
    inputs = {v.name for v in grown.graph.input}
    wanted = [n for n in names if n not in inputs]
    values = dict(zip(wanted, run(grown.SerializeToString(), feeds, wanted), strict=True)) | feeds
    return {name: float(np.abs(value).max()) for name, value in values.items()}


def sqnr(reference: np.ndarray, value: np.ndarray) -> float:
    """Signal to noise in dB."""
    noise = np.square(reference.astype(np.float64) - value).mean()
    return float(10 * np.log10(np.square(reference.astype(np.float64)).mean() / (noise + 1e-30)))


def layer_table(proto: Any) -> list[tuple[str, str, str]]:
    """Name, operator and precision of each layer, without casts and Q/DQ pairs."""
    others = ("Cast", "QuantizeLinear", "DequantizeLinear")
    rows = [(x.name, x.operator, x.precision) for x in layers_of_model(proto)]
    return [row for row in rows if row[1] not in others]
