"""A network from nothing to its outputs, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.trt as trt
from tests.trt.harness import Messages, engine_of, execute, network


def convolution(net):
    x = net.add_input("x", trt.float32, (-1, 3, 8, 8))
    weights = np.arange(4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
    layer = net.add_convolution_nd(x, 4, (3, 3), weights)
    layer.padding_nd = (1, 1)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    return x, layer


def profiled(net, low=1, high=4):
    config = net.builder.create_builder_config()
    profile = net.builder.create_optimization_profile()
    profile.set_shape("x", (low, 3, 8, 8), (low, 3, 8, 8), (high, 3, 8, 8))
    assert config.add_optimization_profile(profile) == 0
    return config


def test_network_to_outputs():
    net = network()
    convolution(net)
    engine = engine_of(net, profiled(net))
    x = np.ones((2, 3, 8, 8), np.float32)
    y = execute(engine, x=x)["y"]
    assert y.shape == (2, 4, 8, 8)
    assert y[0, 0, 4, 4] == np.arange(27).sum()


def test_changed_attribute_changes_shapes_behind_it():
    net = network()
    _, layer = convolution(net)
    relu = net.add_activation(layer.get_output(0), trt.ActivationType.RELU)
    assert relu.get_output(0).shape == (-1, 4, 8, 8)
    layer.stride_nd = (2, 2)
    assert relu.get_output(0).shape == (-1, 4, 4, 4)


def test_context_refuses_shapes_outside_the_profile_and_missing_addresses():
    net = network()
    convolution(net)
    engine = engine_of(net, profiled(net))
    logger = net.builder.logger
    context = engine.create_execution_context()
    assert context.get_tensor_shape("y") == (-1, 4, 8, 8)
    assert not context.set_input_shape("x", (9, 3, 8, 8))
    assert "(9, 3, 8, 8)" in logger.errors[-1]
    assert not context.execute_async_v3(0)
    assert "no shape" in logger.errors[-1]
    assert context.set_input_shape("x", (3, 3, 8, 8))
    assert context.get_tensor_shape("y") == (3, 4, 8, 8)
    assert not context.execute_async_v3(0)
    assert "no address" in logger.errors[-1]


def test_what_cannot_be_built_is_none_and_told():
    logger = Messages()
    net = network(logger)
    x = net.add_input("x", trt.float32, (1, 3, 8, 8))
    layer = net.add_convolution_nd(x, 4, (3, 3), np.zeros(5, np.float32))
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    assert net.builder.build_serialized_network(net, config) is None
    assert "5 weights where 4 x 3 x 3 x 3 are needed" in logger.errors[-1]


def test_only_the_first_cause_is_told():
    net = network()
    x = net.add_input("x", trt.float32, (1, 3, 8, 8))
    conv = net.add_convolution_nd(x, 4, (3, 3), np.zeros(5, np.float32))
    one = np.ones(1, np.float32)
    made = net.add_activation(conv.get_output(0), trt.ActivationType.RELU).get_output(0)
    made = net.add_scale(made, trt.ScaleMode.UNIFORM, one, one, one).get_output(0)
    net.mark_output(net.add_pooling_nd(made, trt.PoolingType.MAX, (2, 2)).get_output(0))
    other = net.add_shuffle(x)
    other.reshape_dims = (7, 7)
    net.mark_output(other.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    text = "\n".join(net.builder.logger.errors)
    assert "[Convolution]: 5 weights where" in text
    assert "[Shuffle]: " in text, "a second cause is told too"
    assert not any(word in text for word in ("[Activation]", "[Scale]", "[Pooling]"))


def test_free_axes_need_a_profile():
    net = network()
    convolution(net)
    config = net.builder.create_builder_config()
    assert net.builder.build_serialized_network(net, config) is None
    assert "profile" in net.builder.logger.errors[-1]


def test_engine_of_tensorrt_is_refused_with_its_release():
    logger = Messages()
    data = b"ftrt" + bytes(20) + bytes([8, 6, 1, 6]) + bytes(64)
    assert trt.Runtime(logger).deserialize_cuda_engine(data) is None
    assert "TensorRT 8.6.1.6" in logger.errors[0]


@pytest.mark.parametrize("damage", [b"", b"not a plan", b"HEADRPLN" + bytes(40)])
def test_damaged_engine_is_none(damage):
    logger = Messages()
    assert trt.Runtime(logger).deserialize_cuda_engine(damage) is None
    assert logger.errors


def test_engine_serves_nvinfer_too():
    """A plan whose axis 0 is the batch is one that `model-engine-file` may name."""
    from headrace.engine.plan import Plan

    net = network()
    convolution(net)
    data = net.builder.build_serialized_network(net, profiled(net))
    plan = Plan.from_bytes(bytes(data))
    assert plan.header.batched
    assert plan.header.max_batch == 4
    with plan.open_session() as session:
        out = session.run({"x": np.ones((3, 3, 8, 8), np.float32)})
    assert out["y"].shape == (3, 4, 8, 8)
