"""Plugins in networks by code."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import headrace.trt as trt
import headrace.trt.plugin as trtp
from headrace.plugins import Tracer
from tests.plugins.samples import ScaleV3, ThirdCreator
from tests.trt.harness import engine_of, execute, network


@trtp.register("harness::scaled_by")
def describe(x: trtp.TensorDesc, factor: float) -> trtp.TensorDesc:
    return x.like()


@trtp.impl("harness::scaled_by")
def compute(x: trtp.Tensor, factor: float, outputs: tuple[trtp.Tensor], stream: int) -> None:
    given = trt.array_at(x.data_ptr, x.shape, x.dtype)
    trt.array_at(outputs[0].data_ptr, x.shape, x.dtype, writable=True)[...] = given * factor


def test_plugin_by_decorators():
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    layer = net.add_plugin(trtp.op.harness.scaled_by(x, factor=3.0))
    assert layer.get_output(0).shape == (2, 3)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    made = execute(engine_of(net), x=np.ones((2, 3)))["y"]
    assert made.tolist() == [[3.0] * 3] * 2


def looped(net, x, times, *, inner_times=None):
    """x <- 3 x, `times` times, by a plugin; with a loop around each if `inner_times`."""
    outer = net.add_loop()
    outer.add_trip_limit(times, trt.TripLimit.COUNT)
    value = outer.add_recurrence(x)
    loop, start = outer, value
    if inner_times is not None:
        loop = net.add_loop()
        loop.add_trip_limit(inner_times, trt.TripLimit.COUNT)
        start = loop.add_recurrence(value.get_output(0))
    layer = net.add_plugin(trtp.op.harness.scaled_by(start.get_output(0), factor=3.0))
    layer.name = "inside"
    start.set_input(1, layer.get_output(0))
    if inner_times is not None:
        last = loop.add_loop_output(start.get_output(0), trt.LoopOutput.LAST_VALUE)
        value.set_input(1, last.get_output(0))
    made = outer.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)
    made.get_output(0).name = "y"
    net.mark_output(made.get_output(0))


@pytest.mark.parametrize("nested", [False, True])
def test_plugin_in_a_loop_is_refused(nested):
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    two, three = (net.add_constant((), np.array(n, np.int32)).get_output(0) for n in (2, 3))
    looped(net, x, two, inner_times=three if nested else None)
    config = net.builder.create_builder_config()
    assert net.builder.build_serialized_network(net, config) is None
    said = net.builder.logger.errors[-1]
    assert "(node 'inside') is in the body of Loop" in said
    assert "without control flow" in said


def test_code_ahead_of_time_is_refused():
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    assert net.add_plugin(trtp.op.harness.scaled_by(x, factor=3.0), aot=True) is None
    assert "ahead-of-time" in net.builder.logger.errors[-1]


class Doubling(trt.IPluginV2DynamicExt):
    def __init__(self) -> None:
        trt.IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace = "TrtDoubling", "1", ""
        self.num_outputs = 1

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, index, inputs, make):
        two = make.constant(2)
        twice = make.operation(trt.DimensionOperation.PROD, inputs[0][0], two)
        return trt.DimsExprs([twice, inputs[0][1]])

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].type == trt.float32

    def configure_plugin(self, inputs, outputs):
        pass

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        x = trt.array_at(inputs[0], input_desc[0].dims, np.float32)
        y = trt.array_at(outputs[0], output_desc[0].dims, np.float32, writable=True)
        y[...] = np.concatenate([x, x])

    def serialize(self):
        return b""

    def clone(self):
        return Doubling()


class DoublingCreator(trt.IPluginCreator):
    def __init__(self) -> None:
        trt.IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "TrtDoubling", "1", ""
        self.field_names = trt.PluginFieldCollection([])

    def deserialize_plugin(self, name: str, data: Any) -> Doubling:
        return Doubling()


def test_a_plugin_without_a_shape_is_told_and_its_shape_is_none():
    class HalfSet(Doubling):
        def get_output_dimensions(self, index, inputs, make):
            return trt.DimsExprs(2)

        def clone(self):
            return HalfSet()

    net = network()
    layer = net.add_plugin_v2([net.add_input("x", trt.float32, (-1, 3))], HalfSet())
    output = layer.get_output(0)
    assert output.shape == output.shape == ()
    (said,) = net.builder.logger.errors
    assert "axis 0 is not set" in said
    assert "every axis" in said
    net.mark_output(output)
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "axis 0 is not set" in net.builder.logger.errors[-1]


def test_what_a_plugin_raises_is_told_in_full_once():
    class Raises(Doubling):
        def get_output_dimensions(self, index, inputs, make):
            raise ValueError("no luck")

        def clone(self):
            return Raises()

    net = network()
    layer = net.add_plugin_v2([net.add_input("x", trt.float32, (2, 3))], Raises())
    output = layer.get_output(0)
    assert output.shape == ()
    net.mark_output(output)
    config = net.builder.create_builder_config()
    assert not net.builder.is_network_supported(net, config)
    assert net.builder.build_serialized_network(net, config) is None
    said = net.builder.logger.errors
    assert [text.count("get_output_dimensions raised ValueError: no luck") for text in said] == [
        1
    ] * 3
    assert ["\n" in text for text in said] == [True, False, False], "where it was raised"
    assert [text.count(layer.name) for text in said] == [1] * 3


@pytest.mark.parametrize("asked", [False, True], ids=["renamed at once", "asked before"])
def test_a_renamed_layer_is_told_by_its_present_name(asked):
    class Raises(Doubling):
        def get_output_dimensions(self, index, inputs, make):
            raise ValueError("no luck")

        def clone(self):
            return Raises()

    net = network()
    layer = net.add_plugin_v2([net.add_input("x", trt.float32, (2, 3))], Raises())
    first = layer.name
    if asked:
        assert layer.get_output(0).shape == ()
    layer.name = "the second"
    assert layer.get_output(0).shape == ()
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    said = net.builder.logger.errors
    assert len(said) == 2  # in full once, whatever it was called then
    assert ["\n" in text for text in said] == [True, False]
    assert first in said[0] if asked else first not in said[0]
    assert first not in said[1]
    assert said[1].count("the second") == 1


def test_a_plan_whose_creator_has_another_namespace_says_so():
    class Spaced(Doubling):
        def __init__(self) -> None:
            super().__init__()
            self.plugin_namespace = "nc"

        def clone(self):
            return Spaced()

    creator = DoublingCreator()
    trt.get_plugin_registry().register_creator(creator, "")
    try:
        net = network()
        output = net.add_plugin_v2([net.add_input("x", trt.float32, (4, 3))], Spaced())
        net.mark_output(output.get_output(0))
        config = net.builder.create_builder_config()
        plan = net.builder.build_serialized_network(net, config)
        said = " ".join(text for _, text in net.builder.logger.said)
        assert "no creator is registered for TrtDoubling version 1, namespace 'nc'" in said
        there = "registered as version 1, namespace '', not as version 1, namespace 'nc'"
        assert there in said
        assert trt.Runtime(net.builder.logger).deserialize_cuda_engine(plan) is None
        assert there in net.builder.logger.errors[-1]
    finally:
        trt.get_plugin_registry().deregister_creator(creator)


def test_shapes_behind_a_plugin_and_a_plan_without_its_creator():
    creator = DoublingCreator()
    trt.get_plugin_registry().register_creator(creator, "")
    try:
        net = network()
        x = net.add_input("x", trt.float32, (-1, 3))
        twice = net.add_plugin_v2([x], Doubling())
        assert twice.plugin.plugin_type == "TrtDoubling"
        assert twice.get_output(0).shape == (-1, 3)
        more = net.add_unary(twice.get_output(0), trt.UnaryOperation.NEG)
        x.shape = (4, 3)
        assert more.get_output(0).shape == (8, 3)
        x.shape = (-1, 3)
        more.get_output(0).name = "y"
        net.mark_output(more.get_output(0))
        config = net.builder.create_builder_config()
        profile = net.builder.create_optimization_profile()
        profile.set_shape("x", (1, 3), (2, 3), (4, 3))
        config.add_optimization_profile(profile)
        plan = net.builder.build_serialized_network(net, config)
        engine = trt.Runtime(net.builder.logger).deserialize_cuda_engine(plan)
        context = engine.create_execution_context()
        context.set_input_shape("x", (3, 3))
        assert context.get_tensor_shape("y") == (6, 3)
        made = execute(engine, x=np.arange(6).reshape(2, 3))["y"]
        assert made.tolist() == [[0, -1, -2], [-3, -4, -5]] * 2
    finally:
        trt.get_plugin_registry().deregister_creator(creator)
    assert trt.Runtime(net.builder.logger).deserialize_cuda_engine(plan) is None
    assert "TrtDoubling" in net.builder.logger.errors[-1]


class Hungry(ScaleV3):
    """Wants a workspace of `SIZE` bytes."""

    SIZE = 4096

    def clone(self):
        return type(self)()

    def get_workspace_size(self, inp, out):
        return self.SIZE


def with_plugin(plugin):
    """A network of one plugin."""
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    layer = net.add_plugin_v3([x], [], plugin)
    net.mark_output(layer.get_output(0))
    return net, net.builder.create_builder_config()


@pytest.mark.parametrize(("limit", "built"), [(None, True), (4096, True), (4095, False)])
def test_the_workspace_pool_limits_plugins(limit, built):
    net, config = with_plugin(Hungry())
    if limit is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, limit)
    plan = net.builder.build_serialized_network(net, config)
    assert (plan is not None) == built
    said = " ".join(text for _, text in net.builder.logger.said)
    assert ("needs a workspace of 4096 bytes" in said) == (not built)


def test_a_workspace_beyond_the_machine_is_refused_by_name():
    class Endless(Hungry):
        SIZE = 2**40

    net, config = with_plugin(Endless())
    assert net.builder.build_serialized_network(net, config) is None
    assert "at most" in net.builder.logger.errors[-1]


def test_methods_that_tensorrt_asks_for_are_named():
    class Bare(ScaleV3):
        def clone(self):
            return Bare()

        def get_capability_interface(self, type):
            return self

    net, config = with_plugin(Bare())
    assert net.builder.build_serialized_network(net, config) is not None
    said = " ".join(text for _, text in net.builder.logger.said)
    assert "has no configure_plugin, on_shape_change: it runs here" in said


def test_an_input_that_is_left_out_is_none():
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    layer = net.add_plugin_v3([x, None], [], ScaleV3())
    assert (layer.num_inputs, layer.get_input(1)) == (2, None)
    assert layer.get_output(0).shape == (2, 3)


def test_a_build_opens_its_plan_once():
    registry = trt.get_plugin_registry()
    creator = ThirdCreator(ScaleV3)
    registry.register_creator(creator, "")
    try:
        net, config = with_plugin(ScaleV3())
        with Tracer() as tracer:
            assert net.builder.build_serialized_network(net, config) is not None
    finally:
        registry.deregister_creator(creator)
    loads = [c.method for c in tracer.calls if c.phase == "load"]
    assert loads.count("create_plugin") == 1
    assert [c.phase for c in tracer.calls][-1] == "destroy"


def test_a_timing_cache_keeps_the_tactics_of_plugins(monkeypatch):
    from headrace.plugins import driver_v3

    class Two(Hungry):
        TACTICS: ClassVar = [3, 7]
        timing_cache_id = "two"

    def built(cache):
        monkeypatch.setattr(driver_v3, "_timings", {})
        net, config = with_plugin(Two())
        config.set_timing_cache(config.create_timing_cache(cache), False)
        with Tracer() as tracer:
            assert net.builder.build_serialized_network(net, config) is not None
        return bytes(config.get_timing_cache().serialize()), tracer.counts()

    kept, first = built(b"")
    again, second = built(kept)
    assert again == kept
    assert first["enqueue"] == 6
    assert "enqueue" not in second
    assert built(b"of another origin")[1]["enqueue"] == 6


def test_settings_without_effect_are_named_once(monkeypatch):
    from headrace.trt.types import reporting

    monkeypatch.setattr(reporting, "_noted", set())
    builder = network().builder
    builder.gpu_allocator = None
    assert not builder.logger.said
    builder.gpu_allocator = allocator = object()
    builder.gpu_allocator = allocator
    [(_, text)] = builder.logger.said
    assert "gpu_allocator is kept and not called" in text
    assert builder.gpu_allocator is allocator
