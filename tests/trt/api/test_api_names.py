"""Names that scripts of one release use: they work, or the reason is told; `dir` lists no other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import headrace.trt as trt
from headrace.trt import release
from tests.trt.harness import Messages, engine_of, execute, network


@pytest.fixture(autouse=True)
def union() -> Iterator[None]:
    yield
    release.set_version("union")


def two_layers(names=("middle", "y")):
    """y = |−x|, with names for both outputs."""
    net = network()
    tensor = net.add_input("x", trt.float32, (4,))
    for name, op in zip(names, (trt.UnaryOperation.NEG, trt.UnaryOperation.ABS), strict=True):
        tensor = net.add_unary(tensor, op).get_output(0)
        tensor.name = name
    net.mark_output(tensor)
    return net


@pytest.mark.parametrize("version", ["8.6", "10.0", "10.13", "11.1", "union"])
def test_dir_lists_only_names_that_are_there(version):
    release.set_version(version)
    for name in dir(trt):
        shown = getattr(trt, name)
        if isinstance(shown, type):
            for attribute in dir(shown):
                if not attribute.startswith("__"):
                    getattr(shown, attribute)
    release.set_version("union")
    net = two_layers()
    for thing in (net, net[0], net.get_input(0), net.builder, engine_of(net)):
        assert not [n for n in dir(thing) if n.startswith("_") and not n.startswith("__")]


@pytest.mark.parametrize(
    ("version", "refused", "instead"),
    [
        ("8.6", "RNNOperation", "add_loop"),
        ("8.6", "FieldCollection", "IPluginCreator"),
        ("10.13", "KernelLaunchParams", "tensorrt.plugin.impl"),
        ("10.13", "IPluginV3QuickBuild", "IPluginV3"),
    ],
)
def test_names_without_a_meaning_are_refused_with_the_way_out(version, refused, instead):
    release.set_version(version)
    assert not hasattr(trt, refused)
    with pytest.raises(AttributeError, match=f"{refused} is refused: Headrace") as caught:
        getattr(trt, refused)
    assert instead in str(caught.value)


def test_an_engine_lists_its_tensors_in_every_release():
    engine = engine_of(two_layers())
    assert list(engine) == ["x", "y"]
    assert engine["y"] == 1
    release.set_version("10.13")
    assert list(engine) == ["x", "y"] == [engine[0], engine[1]]
    for misuse in (lambda: len(engine), lambda: engine["x"]):
        with pytest.raises(TypeError, match=r"since TensorRT 10\.0"):
            misuse()


def test_members_of_enums_follow_the_release():
    for version, stays, last in (
        ("8.6", "DEFAULT", "TACTIC_DRAM"),
        ("10.13", "STANDARD", "TACTIC_SHARED_MEMORY"),
    ):
        release.set_version(version)
        assert trt.EngineCapability(0).name == stays
        assert list(trt.MemoryPoolType)[-1].name == last
    assert "ATTENTION_INPUT" not in trt.LayerType.__members__
    release.set_version("10.16")
    assert trt.LayerType.ATTENTION_INPUT


class Selector(trt.IAlgorithmSelector):
    def __init__(self, choose):
        super().__init__()
        self.choose, self.asked, self.reported = choose, [], []

    def select_algorithms(self, context, choices):
        shape = tuple(context.get_shape(0)[1])
        self.asked.append((context.name, context.num_inputs, shape, len(choices)))
        return self.choose

    def report_algorithms(self, contexts, choices):
        self.reported = [
            (c.name, a.get_algorithm_io_info(0).dtype, tuple(a.get_algorithm_io_info(1).strides))
            for c, a in zip(contexts, choices, strict=True)
        ]


def test_an_algorithm_selector_is_asked_about_every_layer():
    net = two_layers()
    config = net.builder.create_builder_config()
    config.algorithm_selector = selector = Selector([0])
    engine_of(net, config)
    assert selector.asked == [(net[i].name, 1, (4,), 1) for i in range(2)]
    assert selector.reported == [(net[i].name, trt.float32, (1,)) for i in range(2)]


def test_an_algorithm_selector_can_end_the_build():
    net = two_layers()
    config = net.builder.create_builder_config()
    config.algorithm_selector = Selector([3])
    assert net.builder.build_serialized_network(net, config) is None
    assert "chose 3" in net.builder.logger.errors[-1]
    config.algorithm_selector = Selector([])
    engine_of(net, config)
    config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    assert net.builder.build_serialized_network(net, config) is None
    assert "chose nothing" in net.builder.logger.errors[-1]


class Listener(trt.IDebugListener):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        assert location == trt.TensorLocation.DEVICE
        self.seen[name] = trt.array_at(addr, tuple(shape), type).copy()
        return True


def test_debug_tensors_reach_their_listener():
    net = two_layers()
    net.mark_debug(net[0].get_output(0))
    engine = engine_of(net)
    assert engine.num_io_tensors == 2
    assert engine.is_debug_tensor("middle")
    context, listener = engine.create_execution_context(), Listener()
    assert context.set_debug_listener(listener)
    x, y = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    assert not listener.seen  # it is off at first
    assert not context.set_tensor_debug_state("y", True)
    assert context.set_tensor_debug_state("middle", True)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_array_equal(listener.seen["middle"], -x)
    np.testing.assert_array_equal(y, x)


def test_streamed_weights_stay_where_they_are():
    net = network()
    x = net.add_input("x", trt.float32, (2, 4))
    w = net.add_constant((4, 3), np.ones((4, 3), np.float32)).get_output(0)
    product = net.add_matrix_multiply(x, trt.MatrixOperation.NONE, w, trt.MatrixOperation.NONE)
    net.mark_output(product.get_output(0))
    assert engine_of(net).streamable_weights_size == 0
    config = net.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.WEIGHT_STREAMING)
    engine = engine_of(net, config)
    assert engine.streamable_weights_size == engine.weight_streaming_budget_v2 == 48
    engine.weight_streaming_budget_v2 = 20
    assert engine.weight_streaming_budget_v2 == 20
    assert engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE) == 48


def test_setting_max_batch_size_makes_the_batch_implicit():
    builder = trt.Builder(Messages())
    net = builder.create_network()
    builder.max_batch_size = 3
    assert net.has_implicit_batch_dimension
    assert builder.create_network().has_implicit_batch_dimension
    assert not builder.create_network(1).has_implicit_batch_dimension
    late = trt.Builder(Messages())
    late.create_network().add_input("x", trt.float32, (3, 8, 8))
    kept = late.create_network()
    kept.add_input("x", trt.float32, (3,))
    late.max_batch_size = 2
    assert not kept.has_implicit_batch_dimension
    assert "--trt-version 8.6" in late.logger.said[-1][1]


@pytest.mark.parametrize("axes", [(3, 8, 8), (1, 3, 8, 8)])
def test_an_image_without_a_batch_that_cannot_be_built_names_the_release(axes):
    builder = trt.Builder(Messages())
    net = builder.create_network()
    x = net.add_input("x", trt.float32, axes)
    weights = np.ones((4, 3 if len(axes) == 3 else 5, 3, 3), np.float32)
    net.mark_output(net.add_convolution_nd(x, 4, (3, 3), weights).get_output(0))
    assert builder.build_serialized_network(net, builder.create_builder_config()) is None
    assert ("--trt-version 8.6" in builder.logger.said[-1][1]) == (len(axes) == 3)


def test_a_batch_for_an_explicit_engine_names_the_way_out():
    engine = engine_of(two_layers())
    assert not engine.create_execution_context().execute(2, [1, 2])
    assert "--trt-version 8.6" in engine._logger.errors[-1]


def test_a_network_without_inputs():
    net = network()
    constant = net.add_constant((2,), np.float32([1, 2])).get_output(0)
    constant.name = "y"
    net.mark_output(constant)
    np.testing.assert_array_equal(execute(engine_of(net))["y"], [1, 2])


def test_timing_cache_keys_are_read_and_written():
    release.set_version("10.13")
    text = "0x" + "ab" * 16
    key = trt.TimingCacheKey.parse(text)
    assert str(key) == text
    cache = trt.Builder(Messages()).create_builder_config().create_timing_cache(b"")
    assert cache.queryKeys() == []
    assert not cache.update(key, trt.TimingCacheValue(1, 2.0))
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        trt.TimingCacheKey.parse("abcd")
