"""INT8 in the graph: TensorRT's rules, exact scales, reasons for what stays, reports of tables."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from headrace.config import ModelConfig
from headrace.engine.precision import CalibrationTable, export
from headrace.errors import EngineError
from headrace.infer.model import export_onnx
from tests.engine.precision.graphs import network_of, ranges_of, run, small_net, sqnr
from tests.plugins.models import conv_plugin_conv

IMAGE = np.random.default_rng(1).random((4, 3, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def scales():
    return {n: r / 127 for n, r in ranges_of(small_net(), {"image": IMAGE}).items()}


def weights_of(proto):
    return {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("layout", ["inputs", "all"])
def test_int8_answers_nearly_as_fp32_does(opset, layout, scales):
    proto = small_net(opset)
    done = export(network_of(proto), "int8", scales, layout=layout)
    data = done.to_bytes()
    onnx.checker.check_model(data, full_check=True)
    reference = run(proto.SerializeToString(), {"image": IMAGE})
    noise = [sqnr(a, b) for a, b in zip(reference, run(data, {"image": IMAGE}), strict=True)]
    assert min(noise) > 25
    assert max(noise) < 60  # it is quantised
    assert len(done.converted) == 3
    assert not done.kept


def test_the_rules_of_tensorrt(scales):
    made = onnx.load_from_string(export(network_of(small_net()), "int8", scales).to_bytes())
    weights = weights_of(made)
    quantised = {n.input[0]: n for n in made.graph.node if n.op_type == "QuantizeLinear"}
    assert set(quantised) == {"image", "r1", "row"}
    for name, node in quantised.items():
        scale, zero = weights[node.input[1]], weights[node.input[2]]
        assert scale.dtype == np.float32
        assert scale == np.float32(scales[name])  # bit for bit
        assert zero.dtype == np.int8
        assert zero == 0
    per_channel = [
        n
        for n in made.graph.node
        if n.op_type == "DequantizeLinear" and weights.get(n.input[0], np.zeros(0)).ndim >= 2
    ]
    assert len(per_channel) == 3
    for node in per_channel:
        stored, scale = weights[node.input[0]], weights[node.input[1]]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        assert stored.dtype == np.int8
        assert abs(stored.astype(int)).max() == 127
        assert scale.shape == (stored.shape[axis],)
        assert not weights[node.input[2]].any()
    # biases stay as they are
    conv2 = next(n for n in made.graph.node if n.op_type == "Conv" and "r1" in n.input[0])
    assert weights[conv2.input[2]].dtype == np.float32


def test_batch_norm_is_folded_before_weights_are_quantised(scales):
    done = export(network_of(small_net()), "int8", scales)
    made = onnx.load_from_string(done.to_bytes())
    assert "BatchNormalization" not in {n.op_type for n in made.graph.node}
    assert any("folded" in n.sentence for n in done.notices)
    assert not done.unused  # the tensor between them is known


def test_an_output_of_a_plugin_is_in_the_graph(scales):
    made, _ = conv_plugin_conv("Swish_TRT")
    done = export(network_of(made), "int8", {"x": 1.0, "a": 1.0, "b": 1.0, "y": 1.0})
    assert not done.unused  # its type is not known


def test_kept_nodes_and_missing_scales(scales):
    table = {**scales, "row": 0.0, "their blob": 0.5}
    done = export(network_of(small_net()), "int8", table, keep=["conv1"])
    assert done.kept == {"conv1": "asked for", "product": "its input has no scale"}
    assert done.missing == ("row",)
    assert done.unused == ("their blob",)
    warnings = [n.sentence for n in done.notices if n.level == "warning"]
    assert any("'row'" in w for w in warnings)
    assert any("'their blob'" in w for w in warnings)
    made = onnx.load_from_string(done.to_bytes())
    conv1 = next(n for n in made.graph.node if n.name == "conv1")
    assert conv1.input[0] == "image"


def test_only_layers_with_weights_see_quantised_tensors(scales):
    """r1 feeds a quantised convolution, feeds an Add, and is an output."""
    proto = small_net()
    proto.graph.output.append(onnx.helper.make_tensor_value_info("r1", 1, None))
    made = onnx.load_from_string(export(network_of(proto), "int8", scales).to_bytes())
    onnx.checker.check_model(made, full_check=True)
    add = next(n for n in made.graph.node if n.op_type == "Add")
    assert add.input[0] == "r1"
    relu = next(n for n in made.graph.node if n.op_type == "Relu")
    assert relu.output[0] == "r1"
    # its own convolution kept in FP32, the output is FP32's to the last bits
    kept = export(network_of(proto), "int8", scales, keep=["conv1"])
    a = run(proto.SerializeToString(), {"image": IMAGE}, ["r1"])[0]
    b = run(kept.to_bytes(), {"image": IMAGE}, ["r1"])[0]
    assert sqnr(a, b) > 100


def test_best_is_int8_with_fp16_around(scales):
    proto = small_net()
    done = export(network_of(proto), "best", scales)
    data = done.to_bytes()
    onnx.checker.check_model(data, full_check=True)
    reference = run(proto.SerializeToString(), {"image": IMAGE})
    result = run(data, {"image": IMAGE})
    assert all(r.dtype == np.float32 for r in result)
    assert sqnr(reference[0], result[0]) > 25
    made = onnx.load_from_string(data)
    scales_of = {n.input[1] for n in made.graph.node if n.op_type == "QuantizeLinear"}
    assert {weights_of(made)[name].dtype for name in scales_of} == {np.dtype(np.float16)}


@pytest.mark.parametrize("table", [{}, {"image": 0.0}])
def test_int8_without_scales_says_what_to_do(table):
    with pytest.raises(EngineError, match="headrace calibrate"):
        export(network_of(small_net()), "int8", table)


def test_a_table_of_another_model():
    with pytest.raises(EngineError, match=r"no layer can be quantised: .* table of another one"):
        export(network_of(small_net()), "int8", {"data": 0.1})


def test_a_node_to_keep_that_is_not_there(scales):
    with pytest.raises(EngineError, match="no node 'conv3'") as caught:
        export(network_of(small_net()), "int8", scales, keep=["conv3"])
    assert "conv1" in str(caught.value)


def test_no_logging_is_configured_and_nothing_said(scales, capfd):
    import logging

    before = list(logging.getLogger().handlers)
    export(network_of(small_net()), "int8", scales)
    assert logging.getLogger().handlers == before
    assert capfd.readouterr() == ("", "")


def test_export_of_a_config(mean_config, tmp_path, scales):
    path = mean_config(int8_calib_file="calib.table")
    onnx.save(small_net(), tmp_path / "mean.onnx")
    CalibrationTable.of(scales).save(tmp_path / "calib.table")
    cfg = ModelConfig.load(path)
    for precision in ("fp32", "fp16", "bf16", "int8", "best"):
        export_onnx(cfg, tmp_path / f"{precision}.onnx", precision)
        onnx.checker.check_model(onnx.load(tmp_path / f"{precision}.onnx"))
    sizes = {p: (tmp_path / f"{p}.onnx").stat().st_size for p in ("fp32", "fp16")}
    assert sizes["fp16"] != sizes["fp32"]
    with pytest.raises(EngineError, match="cannot be written"):
        export_onnx(cfg, tmp_path / "none" / "x.onnx", "fp16")
    (tmp_path / "calib.table").unlink()
    with pytest.raises(EngineError, match="cannot be read"):
        export_onnx(cfg, tmp_path / "int8.onnx", "int8")
