"""Quantised weights that nodes share, on CPUs with and without products of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.engine import BuildOptions, build, machine
from headrace.engine.backends.byte_weights import with_own_weights
from headrace.engine.precision import export
from headrace.network import network_from_onnx
from tests.network.onnx_models import model_of, save

SHAPES = {"Conv": ([1, 16, 4, 4], (16, 16, 1, 1)), "Gemm": ([1, 16], (16, 16)),
          "MatMul": ([1, 16], (16, 16))}  # fmt: skip


@pytest.fixture(params=["vnni", "avx2"])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A CPU that adds products of bytes in 32 bits, and one that does not."""
    flags = {"vnni": "avx512_vnni", "avx2": "avx2"}[request.param]
    monkeypatch.setattr(machine, "cpu_flags", lambda: frozenset((flags,)))
    machine.exact_int8.cache_clear()
    yield request.param
    machine.exact_int8.cache_clear()


def shared(op: str) -> onnx.ModelProto:
    """Two layers of one kind that have one weight."""
    shape, of_weight = SHAPES[op]
    weight = np.random.default_rng(0).normal(0, 0.3, of_weight).astype(np.float32)
    nodes = [helper.make_node(op, ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
             helper.make_node(op, ["r", "w"], ["y"])]  # fmt: skip
    ends = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)] for n in "xy"]
    return model_of(nodes, *ends, [numpy_helper.from_array(weight, "w")])


def quantised(op: str, path: Path) -> Path:
    network = network_from_onnx(save(shared(op), path.with_name("float.onnx")))
    exported = export(network, "int8", dict.fromkeys("xary", 0.02))
    path.write_bytes(exported.to_bytes())
    return path


@pytest.mark.parametrize("op", SHAPES)
def test_a_model_that_shares_a_weight_runs_everywhere(
    op: str, processor: str, tmp_path: Path
) -> None:
    path = quantised(op, tmp_path / "m.onnx")
    x = np.random.default_rng(1).random(SHAPES[op][0]).astype(np.float32)
    (expected,) = ort.InferenceSession(path).run(None, {"x": x})
    with build(network_from_onnx(path), BuildOptions(batched=False)).open_session() as session:
        np.testing.assert_allclose(session.run({"x": x})["y"], expected, atol=1e-5)


def test_copies_change_no_value(tmp_path: Path) -> None:
    data = quantised("Conv", tmp_path / "m.onnx").read_bytes()
    own = with_own_weights(data)
    assert own is not None
    assert with_own_weights(own) is None  # nothing is shared any more
    x = np.random.default_rng(1).random((1, 16, 4, 4)).astype(np.float32)
    expected, result = (ort.InferenceSession(d).run(None, {"x": x})[0] for d in (data, own))
    np.testing.assert_array_equal(result, expected)


def test_integer_products_of_one_weight_get_one_each() -> None:
    weight = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
    nodes = [helper.make_node("MatMulInteger", [x, "w"], [y]) for x, y in ("ay", "bz")]
    ends = [
        [helper.make_tensor_value_info(n, kind, [2, 4]) for n in names]
        for names, kind in (("ab", TensorProto.UINT8), ("yz", TensorProto.INT32))
    ]
    model = model_of(nodes, *ends, [numpy_helper.from_array(weight, "w")])
    own = with_own_weights(model.SerializeToString())
    assert own is not None
    graph = onnx.ModelProto.FromString(own).graph
    assert len({node.input[1] for node in graph.node}) == 2
    assert with_own_weights(shared("Conv").SerializeToString()) is None
