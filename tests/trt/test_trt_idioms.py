"""What scripts rely on, one by one. Numbers: the checklist of the facts on TensorRT's API."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import headrace.trt as trt
from headrace.errors import EngineError
from tests.trt.harness import Messages, engine_of, execute, network


@pytest.fixture
def release():
    yield trt.release.set_version
    trt.release.set_version("union")


def small(net=None, name="y"):
    net = net or network()
    x = net.add_input("x", trt.float32, (2, 3, 4))
    layer = net.add_unary(x, trt.UnaryOperation.NEG)
    layer.get_output(0).name = name
    net.mark_output(layer.get_output(0))
    return net


def test_1_settings_of_8(release):
    release("8.6")
    config = trt.Builder(Messages()).create_builder_config()
    with pytest.warns(DeprecationWarning, match="set_memory_pool_limit"):
        config.max_workspace_size = 1 << 30
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 30
    config.set_flag(trt.BuilderFlag.STRICT_TYPES)
    assert config.get_flag(trt.BuilderFlag.STRICT_TYPES)
    assert config.flags == (1 << 4) | (1 << int(trt.BuilderFlag.TF32))


def test_lists_of_settings_are_copies():
    first, second = (trt.Builder(Messages()).create_builder_config() for _ in range(2))
    first.plugins_to_serialize.append("a.so")
    assert first.plugins_to_serialize == second.plugins_to_serialize == []
    first.plugins_to_serialize = ["a.so"]
    assert first.plugins_to_serialize == ["a.so"]


def test_2_shapes_are_like_tuples():
    x = network().add_input("x", trt.float32, [2, 3, 4])
    assert x.shape == (2, 3, 4)
    assert str(x.shape) == "(2, 3, 4)"
    assert x.shape[:2] + x.shape[2:] == (2, 3, 4)
    a, b, c = x.shape
    assert (a, b, c) == (2, 3, 4)
    dims = trt.Dims([1, 1, 1])
    dims[2] = 4
    assert dims == (1, 1, 4)
    assert trt.Dims.MAX_DIMS == 8


def test_3_tensors_are_renamed():
    net = small(name="renamed")
    assert net.get_layer(0).get_output(0).name == "renamed"
    assert engine_of(net).get_tensor_name(1) == "renamed"


def test_default_names():
    net = network()
    x = net.add_input("x", trt.float32, (1, 2, 4, 4))
    layer = net.add_topk(x, trt.TopKOperation.MAX, 1, 2)
    assert net.name == "Unnamed Network 0"
    assert layer.name == "(Unnamed Layer* 0) [TopK]"
    assert layer.get_output(1).name == "(Unnamed Layer* 0) [TopK]_output (1)"


def test_4_5_plugins_by_keyword_and_scalars_without_axes():
    trt.init_libnvinfer_plugins(Messages(), "")
    creator = trt.get_plugin_registry().get_plugin_creator("EfficientNMS_TRT", "1", "")
    fields = [
        trt.PluginField("max_output_boxes", np.array(5, np.int32), trt.PluginFieldType.INT32),
        *(
            trt.PluginField(name, np.array(value, np.float32), trt.PluginFieldType.FLOAT32)
            for name, value in (("score_threshold", 0.2), ("iou_threshold", 0.5))
        ),
        *(
            trt.PluginField(name, np.array([value], np.int32), trt.PluginFieldType.INT32)
            for name, value in (
                ("background_class", -1),
                ("score_activation", 0),
                ("box_coding", 0),
            )
        ),
        trt.PluginField("unheard_of", np.array([1], np.int32), trt.PluginFieldType.INT32),
    ]
    assert fields[0].size == 1
    plugin = creator.create_plugin(name="nms", field_collection=trt.PluginFieldCollection(fields))
    net = network()
    boxes = net.add_input("boxes", trt.float32, (1, 7, 4))
    scores = net.add_input("scores", trt.float32, (1, 7, 2))
    layer = net.add_plugin_v2([boxes, scores], plugin)
    assert layer.get_output(1).shape == (1, 5, 4)
    for i in range(4):
        net.mark_output(layer.get_output(i))
    made = execute(engine_of(net), boxes=np.zeros((1, 7, 4)), scores=np.ones((1, 7, 2)))
    assert {a.shape for a in made.values()} == {(1, 1), (1, 5, 4), (1, 5)}


def test_6_bindings_by_index_and_name():
    engine = engine_of(small())
    assert list(engine) == ["x", "y"]
    assert len(engine) == engine.num_bindings == 2
    assert engine["y"] == 1
    assert engine[1] == "y"
    assert engine.get_binding_shape("y") == engine.get_binding_shape(1) == (2, 3, 4)
    assert engine.binding_is_input("x")
    assert not engine.binding_is_input(1)


def test_profiles_repeat_bindings():
    net = network()
    x = net.add_input("x", trt.float32, (-1, 3))
    layer = net.add_unary(x, trt.UnaryOperation.ABS)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    for top in (2, 8):
        profile = net.builder.create_optimization_profile()
        profile.set_shape("x", (1, 3), (1, 3), (top, 3))
        config.add_optimization_profile(profile)
    engine = engine_of(net, config)
    assert list(engine) == ["x", "y", "x [profile 1]", "y [profile 1]"]
    assert engine.get_profile_shape(1, "x")[2] == (8, 3)
    assert engine.get_tensor_profile_shape("y", 1)[2] == (8, 3)
    context = engine.create_execution_context()
    assert not context.set_input_shape("x", (5, 3))
    assert context.set_optimization_profile_async(1, 0)
    assert context.set_binding_shape(2, (5, 3))
    assert context.get_binding_shape(3) == (5, 3)
    a, b = np.full((5, 3), -2, np.float32), np.zeros((5, 3), np.float32)
    assert context.execute_async_v2(bindings=[0, 0, a.ctypes.data, b.ctypes.data], stream_handle=0)
    assert (b == 2).all()


def test_9_plans_are_bytes(tmp_path):
    net = small()
    plan = net.builder.build_serialized_network(net, net.builder.create_builder_config())
    (tmp_path / "e").write_bytes(plan)
    with plan as data, open(tmp_path / "f", "wb") as file:
        file.write(data)
    assert bytes(plan) == (tmp_path / "e").read_bytes() == (tmp_path / "f").read_bytes()
    assert plan.nbytes == len(plan)
    assert len(repr(plan)) < 80


def test_10_15_runtime_in_a_with_block():
    net = small()
    plan = net.builder.build_serialized_network(net, net.builder.create_builder_config())
    with pytest.warns(DeprecationWarning, match="with"), trt.Runtime(Messages()) as runtime:
        engine = runtime.deserialize_cuda_engine(plan)
    assert execute(engine, x=np.ones((2, 3, 4)))["y"].sum() == -24


def test_11_loggers(capsys):
    logger = trt.Logger(trt.Logger.WARNING)
    logger.log(trt.Logger.WARNING, "careful")
    logger.log(trt.Logger.Severity.INFO, "hidden")
    said = capsys.readouterr().err
    assert "[TRT] [W] careful" in said
    assert "hidden" not in said

    class Broken(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)

        def log(self, severity, msg):
            raise RuntimeError("no paper")

    assert trt.Runtime(Broken()).deserialize_cuda_engine(b"x") is None
    assert "Exception caught in log(): no paper" in capsys.readouterr().err


def test_12_creators_are_listed():
    trt.init_libnvinfer_plugins(None, "")
    found = {c.name for c in trt.get_plugin_registry().plugin_creator_list}
    assert {"EfficientNMS_TRT", "NMS_TRT"} <= found
    creator = next(c for c in trt.get_plugin_registry().plugin_creator_list if c.name == "NMS_TRT")
    assert creator.plugin_version == "1"
    assert [f.name for f in creator.field_names]


def test_14_platform_says_yes():
    assert trt.Builder(Messages()).platform_has_fast_fp16
    assert trt.Builder(Messages()).num_DLA_cores == 0


def test_19_classes_of_layers():
    net = small()
    layer = net.get_layer(0)
    assert layer is net[0] is next(iter(net))
    assert layer.type == trt.LayerType.UNARY
    layer.__class__ = trt.IUnaryLayer
    assert layer.op == trt.UnaryOperation.NEG
    layer.op = trt.UnaryOperation.ABS
    assert execute(engine_of(net), x=-np.ones((2, 3, 4)))["y"].sum() == 24
    made = net.add_activation(net.get_input(0), trt.ActivationType.TANH)
    assert made.type == trt.ActivationType.TANH
    made.__class__ = trt.ILayer
    assert made.type == net.get_layer(1).type == trt.LayerType.ACTIVATION
    net.mark_output(made.get_output(0))
    assert engine_of(net).num_layers == 2


def test_19_enums_say_their_names():
    for name in ("DataType", "TensorFormat", "PluginFieldType", "TensorRTPhase", "LayerType"):
        first = next(iter(getattr(trt, name)))
        assert str(first) == f"{first}" == f"{name}.{first.name}"
    assert f"{trt.float32:02d} {int(trt.int32)}" == "00 3"


def test_19_enums_are_no_numbers():
    assert trt.float16 != 1
    assert trt.float32  # a member with the number 0 is true, too
    assert trt.DataType(1) is trt.DataType(np.int64(1)) is trt.float16
    assert trt.DataType.HALF != trt.TensorFormat.CHW2
    assert trt.Logger.ERROR < trt.Logger.WARNING <= trt.Logger.Severity.WARNING
    assert 1 << int(trt.BuilderFlag.INT8) == 2
    assert hash(trt.float16) == hash(1)
    for misuse in (
        lambda: trt.float16 < trt.int8,
        lambda: trt.BuilderFlag.FP16 < 3,
        lambda: trt.BuilderFlag.FP16 | trt.BuilderFlag.INT8,
        lambda: trt.float32 + 1,
    ):
        with pytest.raises(TypeError):
            misuse()
    with pytest.raises(ValueError, match="99"):
        trt.DataType(99)


def test_20_empty_profiles():
    logger = Messages()
    builder = trt.Builder(logger)
    profile = builder.create_optimization_profile()
    assert profile
    assert builder.create_builder_config().add_optimization_profile(profile) == 0
    assert profile.get_shape("x") == []
    assert logger.errors
    profile.set_shape("x", (2,), (1,), (3,))
    assert not profile
    assert builder.create_builder_config().add_optimization_profile(profile) == -1


def test_21_many_builds_in_one_process():
    engines = [engine_of(small()) for _ in range(3)]
    outs = [execute(e, x=np.full((2, 3, 4), i))["y"].sum() for i, e in enumerate(engines)]
    assert outs == [0, -24, -48]


def test_weights():
    with pytest.raises(ValueError, match="contiguous"):
        trt.Weights(np.ones((2, 3), np.float32).T)
    empty = trt.Weights(trt.float16)
    assert (empty.size, empty.dtype) == (0, trt.float16)
    full = trt.Weights(np.ones((2, 3), np.float32))
    assert (len(full), full.nbytes, full.numpy().shape) == (6, 24, (6,))
    double = trt.Weights(np.array([0.5, 2.0]))
    assert (double.dtype, double.nbytes, double.numpy().tolist()) == (trt.float32, 8, [0.5, 2.0])


def test_helpers():
    assert trt.volume(()) == 1
    assert trt.volume((2, 3)) == 6
    assert trt.nptype(trt.float16) is np.float16
    with pytest.raises(TypeError):
        trt.nptype(trt.fp8)
    assert trt.float32.itemsize == trt._itemsize(trt.float32) == 4
    assert isinstance(trt.get_nv_onnx_parser_version(), int)


def test_attributes_that_do_not_exist_are_refused():
    config = trt.Builder(Messages()).create_builder_config()
    with pytest.raises(AttributeError):
        config.max_workspace = 1


@pytest.mark.parametrize(
    ("number", "version", "here", "gone"),
    [
        ("8.6", "8.6.1", ["MemoryPoolType", "UffParser", "IInt8Calibrator"], ["IPluginV3"]),
        ("10.x", "10.16.0", ["IPluginV3", "IProgressMonitor"], ["UffParser", "CaffeParser"]),
        ("11", "11.1.0", ["IPluginV3"], ["IInt8EntropyCalibrator2", "UffParser"]),
        ("10.3", "10.3.0", ["IPluginV3OneBuildV2"], ["ICumulativeLayer", "IStreamWriter"]),
    ],
)
def test_releases_hide_what_they_lack(release, number, version, here, gone):
    release(number)
    assert trt.__version__ == version
    assert all(hasattr(trt, name) and name in dir(trt) for name in here)
    assert not any(hasattr(trt, name) or name in dir(trt) for name in gone)


def test_numbers_and_members_by_release(release):
    config = trt.Builder(Messages()).create_builder_config()
    assert hasattr(config, "max_workspace_size")
    assert int(trt.BuilderFlag.REFIT) == 5
    release("10.x")
    assert int(trt.BuilderFlag.REFIT) == 4
    assert int(trt.LayerType.CAST) == 1
    assert not hasattr(config, "max_workspace_size")
    with pytest.raises(AttributeError, match=r"TensorRT 10\.16"):
        config.max_workspace_size = 1
    release("11")
    assert not hasattr(trt.BuilderFlag, "FP16")
    assert not hasattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH")
    engine = engine_of(trt_network_of_11())
    assert not hasattr(engine, "num_bindings")
    with pytest.raises(TypeError):
        len(engine)


def test_a_layer_has_one_rank(release):
    layer = small().get_layer(0)
    release("10.15")
    assert not hasattr(layer, "num_ranks")
    release("10.16")
    layer.num_ranks = 1
    assert layer.num_ranks == 1
    with pytest.raises(EngineError, match="num_ranks is 2"):
        layer.num_ranks = 2


def test_indices_of_nodes_are_a_list_of_their_own_type():
    indices = trt.NodeIndices([1, 3])
    indices.append(5)
    assert indices == [1, 3, 5]


def trt_network_of_11():
    return small(trt.Builder(Messages()).create_network(0))


def test_strongly_typed_networks_do_not_convert():
    flag = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    for flags, good in ((0, True), (flag, False)):
        net = trt.Builder(Messages()).create_network(flags)
        a = net.add_input("a", trt.float32, (2,))
        b = net.add_constant((2,), np.ones(2, np.float16)).get_output(0)
        net.mark_output(net.add_elementwise(a, b, trt.ElementWiseOperation.SUM).get_output(0))
        made = net.builder.build_serialized_network(net, net.builder.create_builder_config())
        assert (made is not None) == good


def test_star_import_and_unknown_release(release):
    from headrace.errors import ConfigError

    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from headrace.trt import *", names)
    assert names["Builder"] is trt.Builder
    with pytest.raises(ConfigError, match=r"7\.1"):
        release("7.1")
