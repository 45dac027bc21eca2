"""Inputs whose values decide shapes."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.trt as trt
from tests.trt.harness import Collector, Messages, engine_of, network

X = np.arange(12, dtype=np.float32)


def reshaping(kind=None, ranges=((1, 1), (3, 4), (6, 12))):
    """y = x (12 elements) in the shape that the input `s` holds; then y + 1."""
    net = network(Messages())
    x = net.add_input("x", trt.float32, (12,))
    s = net.add_input("s", kind or trt.int32, (2,))
    shuffle = net.add_shuffle(x)
    shuffle.set_input(1, s)
    one = net.add_constant((1, 1), np.ones(1, np.float32)).get_output(0)
    y = net.add_elementwise(shuffle.get_output(0), one, trt.ElementWiseOperation.SUM)
    y.get_output(0).name = "y"
    net.mark_output(y.get_output(0))
    config = net.builder.create_builder_config()
    if ranges is not None:
        profile = net.builder.create_optimization_profile()
        profile.set_shape_input("s", *ranges)
        assert profile.get_shape_input("s") == [list(r) for r in ranges]
        assert config.add_optimization_profile(profile) == 0
    return net, config


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_values_decide_the_shape(kind):
    net, config = reshaping(getattr(trt, kind))
    assert net.get_input(1).is_shape_tensor
    assert not net.get_input(0).is_shape_tensor
    assert tuple(net.get_output(0).shape) == (-1, -1)
    engine = engine_of(net, config)
    assert engine.is_shape_inference_io("s")
    assert not engine.is_shape_inference_io("x")
    assert engine.get_tensor_location("s") == trt.TensorLocation.HOST
    assert engine.get_tensor_profile_values(0, "s") == [[1, 1], [3, 4], [6, 12]]
    context = engine.create_execution_context()
    values = np.array([2, 6], trt.nptype(engine.get_tensor_dtype("s")))
    y = np.zeros(12, np.float32)
    context.set_tensor_address("x", X.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.infer_shapes() == ["s"]
    assert tuple(context.get_tensor_shape("y")) == (-1, -1)
    context.set_tensor_address("s", values.ctypes.data)
    assert context.infer_shapes() == []
    assert tuple(context.get_tensor_shape("y")) == (2, 6)
    assert context.execute_async_v3(0), engine._logger.said
    assert y.tolist() == (X + 1).tolist()
    values[:] = 4, 3  # the same address, other values
    assert tuple(context.get_tensor_shape("y")) == (4, 3)
    collector = Collector()
    context.set_output_allocator("y", collector)
    assert context.execute_async_v3(0)
    assert collector.shape == (4, 3)


def test_values_by_bindings():
    """The way of releases up to 9."""
    net, config = reshaping()
    engine = engine_of(net, config)
    context = engine.create_execution_context()
    at = engine.get_binding_index("s")
    assert engine.is_shape_binding(at)
    assert engine.is_execution_binding(engine.get_binding_index("x"))
    assert engine.get_profile_shape_input(0, "s") == [[1, 1], [3, 4], [6, 12]]
    assert not context.all_shape_inputs_specified
    assert context.set_shape_input(at, (6, 2))
    assert context.all_shape_inputs_specified
    assert list(context.get_shape(at)) == [6, 2]
    assert tuple(context.get_binding_shape(engine.get_binding_index("y"))) == (6, 2)
    y, values = np.zeros(12, np.float32), np.array([6, 2], np.int32)
    assert context.execute_v2([X.ctypes.data, values.ctypes.data, y.ctypes.data])
    assert y.tolist() == (X + 1).tolist()


def test_values_out_of_the_profile_are_refused():
    net, config = reshaping()
    engine = engine_of(net, config)
    context = engine.create_execution_context()
    at = engine.get_binding_index("s")
    assert not context.set_shape_input(at, (12, 1))
    assert "6, 12" in engine._logger.errors[-1]
    assert not context.set_shape_input(at, (3, 4, 1))
    assert not context.set_shape_input(engine.get_binding_index("x"), (3, 4))
    values, y = np.array([12, 1], np.int32), np.zeros(12, np.float32)
    for name, array in {"x": X, "y": y, "s": values}.items():
        context.set_tensor_address(name, array.ctypes.data)
    assert not context.execute_async_v3(0)
    assert "'s'" in engine._logger.errors[-1]


def test_a_profile_without_the_values_is_refused():
    net, config = reshaping(ranges=None)
    profile = net.builder.create_optimization_profile()
    config.add_optimization_profile(profile)
    assert net.builder.build_serialized_network(net, config) is None
    said = net.builder.logger.errors[-1]
    assert "'s'" in said
    assert "set_shape_input" in said


def test_ranges_must_fit_each_other():
    net = network(Messages())
    profile = net.builder.create_optimization_profile()
    profile.set_shape_input("s", (3, 4), (1, 1), (6, 12))
    assert net.builder.create_builder_config().add_optimization_profile(profile) == -1


def test_values_of_what_decides_no_shapes_are_a_warning_and_of_no_input_refused():
    for name in ("x", "nobody"):
        net, config = reshaping()
        profile = net.builder.create_optimization_profile()
        profile.set_shape_input("s", (1, 1), (3, 4), (6, 12))
        profile.set_shape_input(name, (1,), (2,), (3,))
        assert config.add_optimization_profile(profile) == 1
        built = net.builder.build_serialized_network(net, config)
        assert (built is None) == (name == "nobody")
        assert f"'{name}', which" in net.builder.logger.said[-1][1]
        assert len(net.builder.logger.errors) == (built is None)


def test_as_many_values_are_given_each_time():
    """Source: the open bindings, `IOptimizationProfile.set_shape_input`."""
    net = network(Messages())
    profile = net.builder.create_optimization_profile()
    with pytest.raises(RuntimeError, match="opt input provided for shape tensor is inconsistent"):
        profile.set_shape_input("s", (1, 1), (3,), (6, 12))
    assert profile.get_shape_input("s") == []
    profile.set_shape_input("s", (1, 1), (3, 4), (6, 12))
    with pytest.raises(RuntimeError, match="min input provided for shape tensor is inconsistent"):
        profile.set_shape_input("s", (1,), (2,), (3,))
    assert profile.get_shape_input("s") == [[1, 1], [3, 4], [6, 12]]


def test_a_slice_by_values():
    """start, size and stride as inputs; every one of them is a shape input."""
    net = network(Messages())
    x = net.add_input("x", trt.float32, (3, 4))
    layer = net.add_slice(x, (0, 0), (1, 1), (1, 1))
    profile = net.builder.create_optimization_profile()
    given = {"start": (1, 0), "size": (2, 2), "stride": (1, 2)}
    for index, (name, values) in enumerate(given.items(), 1):
        layer.set_input(index, net.add_input(name, trt.int32, (2,)))
        profile.set_shape_input(name, (0, 0) if name == "start" else (1, 1), values, (3, 4))
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    assert config.add_optimization_profile(profile) == 0
    engine = engine_of(net, config)
    context = engine.create_execution_context()
    keep = {n: np.array(v, np.int32) for n, v in given.items()}
    keep["x"] = X.reshape(3, 4)
    for name, array in keep.items():
        context.set_tensor_address(name, array.ctypes.data)
    assert tuple(context.get_tensor_shape("y")) == (2, 2)
    y = np.zeros((2, 2), np.float32)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    assert y.tolist() == X.reshape(3, 4)[1:3, 0:4:2].tolist()
