"""Small facts that logs recorded on TensorRT 10.16 show: names, numbers of enums, odd values."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace.trt as trt
from headrace.trt.scripts.shims import cuda
from tests.trt.harness import engine_of, execute, network


@pytest.fixture
def release():
    yield trt.release.set_version
    trt.release.set_version("union")


def test_layers_are_called_as_tensorrt_calls_them():
    net = network()
    x = net.add_input("x", trt.float32, (2, 4, 3, 3))
    slopes = net.add_constant((1, 4, 1, 1), np.ones((1, 4, 1, 1), np.float32)).get_output(0)
    assert net.add_parametric_relu(x, slopes).name == "(Unnamed Layer* 1) [Parametric ReLU]"
    old = net.add_normalization(x, slopes, slopes, 12)
    assert old.name == "(Unnamed Layer* 2) [Normalization]"
    assert not old.is_v2
    new = net.add_normalization_v2(x, slopes, slopes, 12)
    assert new.get_output(0).name == "(Unnamed Layer* 3) [NormalizationV2]_output"
    assert new.is_v2
    with pytest.raises(AttributeError):
        new.is_v2 = False
    rows = net.add_input("rows", trt.float32, (1, 2, 3))
    bounds = net.add_input("bounds", trt.int32, (1, 2, 1))
    assert net.add_ragged_softmax(rows, bounds).name.endswith("[Ragged SoftMax]")
    choice = net.add_if_conditional()
    choice.set_condition(net.add_input("c", trt.bool, ()))
    assert choice.add_output(x, x).name.endswith("[Output]")


def test_enums_and_properties_that_10_0_left_out(release):
    assert trt.PaddingMode.CAFFE_ROUND_UP
    assert trt.SampleMode.DEFAULT == trt.SampleMode.STRICT_BOUNDS
    release("10.16")
    assert list(trt.PaddingMode.__members__) == [
        "EXPLICIT_ROUND_DOWN", "EXPLICIT_ROUND_UP", "SAME_UPPER", "SAME_LOWER",
    ]  # fmt: skip
    assert int(trt.PaddingMode.SAME_LOWER) == 3
    assert "DEFAULT" not in trt.SampleMode.__members__
    net = trt.Builder(trt.Logger()).create_network(0)
    layer = net.add_resize(net.add_input("x", trt.float32, (1, 1, 4, 4)))
    assert "align_corners" not in dir(layer)


def test_a_list_sets_no_number_of_a_fill_layer():
    net = network()
    layer = net.add_fill((4,), trt.FillOperation.LINSPACE)
    layer.alpha, layer.beta = [1000], [5]
    net.mark_output(layer.get_output(0))
    (values,) = execute(engine_of(net)).values()
    assert values.tolist() == [0, 1, 2, 3]
    assert sum("is no number" in text for _, text in net.builder.logger.said) == 2


def test_a_cast_to_bytes_has_no_negative_numbers():
    net = network()
    x = net.add_input("x", trt.float32, (5,))
    net.mark_output(net.add_cast(x, trt.uint8).get_output(0))
    (values,) = execute(engine_of(net), x=np.float32([-300, -1, 0, 250, 260])).values()
    assert values.tolist() == [0, 0, 0, 250, 4]


def test_the_inspector_tells_the_type_of_a_tensor():
    net = network()
    x = net.add_input("x", trt.float32, (2,))
    net.mark_output(net.add_cast(x, trt.int32).get_output(0))
    config = net.builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    inspector = engine_of(net, config).create_engine_inspector()
    layer = json.loads(inspector.get_layer_information(0, trt.LayerInformationFormat.JSON))
    formats = [layer[side][0]["Format/Datatype"] for side in ("Inputs", "Outputs")]
    assert formats == ["Row major linear FP32", "Row major linear INT32"]


def test_nothing_is_freed_by_none():
    assert cuda.cudaFree(None)[0] == 0
