"""Models of others as networks: ONNX, Caffe, UFF."""

from __future__ import annotations

import gc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import headrace.trt as trt
from tests.network.caffe import models as caffe
from tests.network.uff import models as uff
from tests.plugins.samples import PLUGINS, Watched, creator_for
from tests.profiles import slow
from tests.trt import script_data as data
from tests.trt.harness import Messages, engine_of, execute, network


@pytest.fixture
def release():
    yield trt.release.set_version
    trt.release.set_version("union")


def conv_model(path, opset=13):
    w = data.floats(4, 3, 3, 3)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", strides=[2, 2],
                         pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["r", "target"], ["y"], name="flat"),
    ]  # fmt: skip
    weights = {"w": w, "b": data.floats(4), "zero": np.array([0], np.int64),
               "rest": np.array([-1], np.int64)}  # fmt: skip
    data.model(path, nodes, [("x", ("N", 3, 8, 8))], [("y", ("N", 64))], weights, opset)
    return w


def parsed(path, logger=None):
    net = network(logger)
    parser = trt.OnnxParser(net, net.builder.logger)
    assert parser.parse_from_file(str(path)), parser.get_error(0)
    return net


def conv_of(net):
    conv = next(layer for layer in net if layer.name == "conv")
    conv.__class__ = trt.IConvolutionLayer
    return conv


def profiled(net, *shape):
    config = net.builder.create_builder_config()
    profile = net.builder.create_optimization_profile()
    profile.set_shape(net.get_input(0).name, (1, *shape), (2, *shape), (4, *shape))
    config.add_optimization_profile(profile)
    return config


def test_layers_of_a_model_can_be_read(tmp_path):
    w = conv_model(tmp_path / "m.onnx")
    net = parsed(tmp_path / "m.onnx")
    conv = conv_of(net)
    assert (conv.name, conv.num_output_maps, conv.stride_nd) == ("conv", 4, (2, 2))
    assert conv.type == trt.LayerType.CONVOLUTION
    np.testing.assert_array_equal(conv.kernel, w.reshape(-1))
    relu = net.get_layer(1)
    assert relu.type == trt.LayerType.ACTIVATION
    assert type(relu) is trt.ILayer
    assert not hasattr(relu, "alpha")
    relu.__class__ = trt.IActivationLayer
    assert relu.type == trt.ActivationType.RELU
    assert relu.type != trt.LayerType.CONVOLUTION  # though both are 0
    relu.type = trt.ActivationType.TANH
    assert net.get_layer(1).type == trt.LayerType.ACTIVATION
    relu.__class__ = trt.ILayer
    assert relu.type == trt.LayerType.ACTIVATION
    relu.__class__ = trt.IActivationLayer
    assert relu.type == trt.ActivationType.TANH
    assert net.get_output(0).shape[0] == -1
    assert "conv" in conv.metadata


def test_shapes_of_a_parsed_model_follow_its_input(tmp_path):
    conv_model(tmp_path / "m.onnx")
    net = parsed(tmp_path / "m.onnx")
    net.get_input(0).shape = [1, 3, 16, 16]
    assert net.get_output(0).shape == (1, 256)
    x = data.floats(1, 3, 16, 16)
    assert execute(engine_of(net), x=x)["y"].shape == (1, 256)


def test_attribute_of_a_parsed_layer_can_be_changed(tmp_path):
    conv_model(tmp_path / "m.onnx")
    net = parsed(tmp_path / "m.onnx")
    conv_of(net).stride_nd = (1, 1)
    assert conv_of(net).get_output(0).shape == (-1, 4, 8, 8)
    x = data.floats(1, 3, 8, 8)
    assert execute(engine_of(net, profiled(net, 3, 8, 8)), x=x)["y"].shape == (1, 256)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_layers_behind_a_parsed_model(tmp_path, opset):
    conv_model(tmp_path / "m.onnx", opset)
    net = parsed(tmp_path / "m.onnx")
    out = net.get_output(0)
    net.unmark_output(out)
    layer = net.add_reduce(out, trt.ReduceOperation.SUM, 0b10, True)
    soft = net.add_softmax(layer.get_output(0))
    soft.axes = 1
    soft.get_output(0).name = "z"
    net.mark_output(soft.get_output(0))
    made = execute(engine_of(net, profiled(net, 3, 8, 8)), x=data.floats(2, 3, 8, 8))
    assert list(made) == ["z"]
    assert made["z"].sum() == pytest.approx(1)


def test_all_errors_are_collected(tmp_path, release):
    nodes = [helper.make_node(op, ["x"], [op], name=f"n{op}") for op in ("Nope", "Relu", "Never")]
    data.model(tmp_path / "m.onnx", nodes, [("x", (1,))], [("Never", (1,))])
    logger = Messages()
    net = network(logger)
    parser = trt.OnnxParser(net, logger)
    assert not parser.parse((tmp_path / "m.onnx").read_bytes())
    assert parser.num_errors == 2
    error = parser.get_error(1)
    assert (error.code(), error.node()) == (trt.ErrorCode.UNSUPPORTED_NODE, 2)
    assert "Plugin not found" in error.desc()
    assert str(error).startswith("In node 2 (importNever): UNSUPPORTED_NODE")
    release("10.16")
    assert "In node 2 with name: nNever and operator: Never" in str(error)
    assert error.node_name() == "nNever"
    parser.clear_errors()
    assert parser.num_errors == 0
    assert net.num_layers == 0
    assert not parser.supports_model_v2((tmp_path / "m.onnx").read_bytes())
    runs = [(parser.get_subgraph_nodes(i), parser.is_subgraph_supported(i)) for i in range(3)]
    assert runs == [([0], False), ([1], True), ([2], False)]
    assert parser.num_errors == 2
    release("8.6")
    assert parser.supports_model((tmp_path / "m.onnx").read_bytes()) == (False, [([1], True)])


@pytest.mark.parametrize("method", ["supports_model", "supports_model_v2"])
def test_a_model_that_is_supported_is_in_the_network(tmp_path, method):
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = tmp_path / "m.onnx"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), model)
    logger = Messages()
    net = trt.Builder(logger).create_network()
    parser = trt.OnnxParser(net, logger)
    found = getattr(parser, method)(model.read_bytes())
    assert found in (True, (True, [([0], True)]))
    assert net.get_input(0).name == "x"
    assert [net.get_layer(i).name for i in range(net.num_layers)] == ["relu"]


def test_missing_and_damaged_files(tmp_path):
    logger = Messages()
    parser = trt.OnnxParser(network(logger), logger)
    assert not parser.parse_from_file(str(tmp_path / "no.onnx"))
    assert parser.get_error(0).code() == trt.ErrorCode.INVALID_VALUE
    assert parser.get_error(0).node() == -1
    assert not parser.parse(b"garbage")
    assert parser.get_error(1).code() == trt.ErrorCode.MODEL_DESERIALIZE_FAILED


@pytest.mark.parametrize(("number", "kind"), [("8.6", trt.int32), ("10.16", trt.int64)])
def test_int64_is_int32_until_ten(tmp_path, release, number, kind):
    nodes = [helper.make_node("Add", ["x", "one"], ["y"])]
    values = [(n, (3,), TensorProto.INT64) for n in ("x", "y")]
    data.model(tmp_path / "m.onnx", nodes, values[:1], values[1:], {"one": np.array([1])})
    release(number)
    net = parsed(tmp_path / "m.onnx")
    assert net.get_input(0).dtype == kind
    engine = engine_of(net)
    assert engine.get_tensor_dtype("y") == kind
    made = execute(engine, x=np.array([1, 2, 3]))["y"]
    assert made.tolist() == [2, 3, 4]
    assert made.dtype == trt.nptype(kind)


def test_types_of_inputs_and_outputs_can_be_set(tmp_path):
    conv_model(tmp_path / "m.onnx")
    net = parsed(tmp_path / "m.onnx")
    x = data.floats(2, 3, 8, 8)
    plain = execute(engine_of(net, profiled(net, 3, 8, 8)), x=x)["y"]
    net.get_input(0).dtype = trt.float16
    net.get_output(0).dtype = trt.float16
    engine = engine_of(net, profiled(net, 3, 8, 8))
    assert engine.get_tensor_dtype("x") == engine.get_tensor_dtype("y") == trt.float16
    np.testing.assert_allclose(execute(engine, x=x)["y"], plain, atol=0.05)


def test_plugin_nodes_and_shapes_behind_them(tmp_path):
    data.efficientdet(tmp_path / "det.onnx")
    net = parsed(tmp_path / "det.onnx")
    layer = net.get_layer(net.num_layers - 1)
    layer.__class__ = trt.IPluginV2Layer
    assert layer.plugin.plugin_type == "EfficientNMS_TRT"
    assert [tuple(layer.get_output(i).shape) for i in range(4)] == [
        (-1, 1), (-1, 10, 4), (-1, 10), (-1, 10),
    ]  # fmt: skip
    engine = engine_of(net, profiled(net, 64, 64, 3))
    context = engine.create_execution_context()
    context.set_input_shape("input", (3, 64, 64, 3))
    assert context.get_tensor_shape("detection_boxes") == (3, 10, 4)
    made = execute(engine, input=data.floats(3, 64, 64, 3))
    assert made["detection_classes"].shape == (3, 10)


@pytest.mark.parametrize("explicit", [False, True])
def test_caffe(tmp_path, explicit):
    w, x = data.floats(2, 3, 1, 1), data.floats(2, 3, 6, 7)
    convolution = caffe.layer("Convolution", "convolution_param { num_output: 2 kernel_size: 1 }",
                              name="conv", top="c")  # fmt: skip
    text = caffe.text_of(convolution + caffe.layer("ReLU", bottom="c", top="r", name="relu"))
    (tmp_path / "d.prototxt").write_text(text)
    (tmp_path / "m.caffemodel").write_bytes(caffe.caffemodel({"conv": [w, np.zeros(2)]}))
    logger = Messages()
    builder = trt.Builder(logger)
    builder.max_batch_size = 4
    net = builder.create_network(int(explicit))
    blobs = trt.CaffeParser().parse(
        str(tmp_path / "d.prototxt"), str(tmp_path / "m.caffemodel"), net, trt.float32
    )
    assert blobs is not None, logger.said
    assert blobs.find("nothing") is None
    net.mark_output(blobs.find("c"))
    assert net.has_implicit_batch_dimension != explicit
    want = np.einsum("oc,nchw->nohw", w[:, :, 0, 0], x)
    if explicit:
        config = builder.create_builder_config()
        profile = builder.create_optimization_profile()
        profile.set_shape("data", *[(2, 3, 6, 7)] * 3)
        config.add_optimization_profile(profile)
        np.testing.assert_allclose(execute(engine_of(net, config), data=x)["c"], want, atol=1e-5)
        return
    assert blobs.find("c").shape == (2, 6, 7)
    engine = builder.build_engine(net, builder.create_builder_config())
    assert engine.max_batch_size == 4
    assert engine.get_binding_shape("c") == (2, 6, 7)
    made = np.zeros((2, 2, 6, 7), np.float32)
    context = engine.create_execution_context()
    assert context.execute(2, [x.ctypes.data, made.ctypes.data])
    np.testing.assert_allclose(made, want, atol=1e-5)
    assert not context.execute(9, [x.ctypes.data, made.ctypes.data])
    assert "a batch of 9" in logger.errors[-1]


def parsed_uff(folder, parts):
    """A builder for two images and the network of a file with input x and output y."""
    (folder / "m.uff").write_bytes(uff.uff(*parts))
    builder = trt.Builder(Messages())
    builder.max_batch_size = 2
    net = builder.create_network()
    parser = trt.UffParser()
    parser.register_input("x", (3, 5, 6))
    parser.register_output("y")
    assert parser.parse(str(folder / "m.uff"), net), builder.logger.said
    return builder, net


def test_uff(tmp_path):
    parts = [uff.source((-1, 3, 5, 6)), uff.node("y", "Flatten", ["x"]),
             uff.node("m", "MarkOutput", ["y"])]  # fmt: skip
    builder, net = parsed_uff(tmp_path, parts)
    engine = builder.build_engine(net, builder.create_builder_config())
    x, made = data.floats(2, 3, 5, 6), np.zeros((2, 90), np.float32)
    assert engine.create_execution_context().execute(2, [x.ctypes.data, made.ctypes.data])
    np.testing.assert_array_equal(made, x.reshape(2, 90))
    assert not trt.UffParser().parse(str(tmp_path / "no.uff"), builder.create_network())


@pytest.fixture
def samples():
    """The sample plugins of every class, in this process's registry."""
    registry = trt.get_plugin_registry()
    made = [creator_for(cls) for cls in PLUGINS.values()]
    for creator in made:
        assert registry.register_creator(creator, "")
    gc.collect()  # plugins of tests before, whose ends are not counted here
    Watched.reset()
    yield
    for creator in made:
        registry.deregister_creator(creator)


@pytest.mark.parametrize("kind", [k if k == "V3" else slow(k) for k in PLUGINS])
def test_uff_with_a_plugin_node(kind, samples, tmp_path):
    """A plugin of each class between layers of the file, by an implicit batch."""
    parts = [
        uff.source((-1, 3, 5, 6)),
        uff.node("r", "Activation", ["x"], func="relu"),
        uff.node("p", f"_{PLUGINS[kind].__name__}", ["r"], factor=3.0),
        uff.node("y", "Unary", ["p"], func="neg"),
        uff.node("m", "MarkOutput", ["y"]),
    ]
    builder, net = parsed_uff(tmp_path, parts)
    layers = [layer for layer in net if layer.type in PLUGIN_LAYERS]
    layers[0].__class__ = trt.IPluginV2Layer
    assert [type(layer.plugin).__name__ for layer in layers] == [PLUGINS[kind].__name__]
    engine = builder.build_engine(net, builder.create_builder_config())
    assert engine is not None, builder.logger.said
    x, made = data.floats(2, 3, 5, 6), np.zeros((2, 3, 5, 6), np.float32)
    assert engine.create_execution_context().execute(2, [x.ctypes.data, made.ctypes.data])
    np.testing.assert_allclose(made, -3 * np.maximum(x, 0), rtol=1e-6)
    del layers, engine, net, builder
    gc.collect()
    assert Watched.made == Watched.destroyed
    assert Watched.twice == 0


PLUGIN_LAYERS = (trt.LayerType.PLUGIN_V2, trt.LayerType.PLUGIN_V3)


def test_uff_with_a_plugin_that_nobody_knows(tmp_path):
    parts = [uff.source((-1, 3, 5, 6)), uff.node("p", "_Nobody_TRT", ["x"], size=2),
             uff.node("m", "MarkOutput", ["p"])]  # fmt: skip
    (tmp_path / "m.uff").write_bytes(uff.uff(*parts))
    builder = trt.Builder(Messages())
    parser = trt.UffParser()
    parser.register_input("x", (3, 5, 6))
    parser.register_output("p")
    assert not parser.parse(str(tmp_path / "m.uff"), builder.create_network())
    assert "'Nobody_TRT' is not available" in builder.logger.errors[-1]


def refittable(path, flags=("REFIT",)):
    logger = Messages()
    net = network(logger)
    assert trt.OnnxParser(net, logger).parse_from_file(str(path))
    config = net.builder.create_builder_config()
    for flag in flags:
        config.set_flag(trt.BuilderFlag[flag])
    profile = net.builder.create_optimization_profile()
    profile.set_shape("x", (1, 2, 4, 4), (1, 2, 4, 4), (2, 2, 4, 4))
    config.add_optimization_profile(profile)
    return engine_of(net, config), logger


def weighted(path, w, b, names=("w", "b")):
    nodes = [helper.make_node("Conv", ["x", names[0], names[1]], ["c"], name="conv"),
             helper.make_node("Relu", ["c"], ["y"], name="relu")]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 2, 4, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, names[0]), numpy_helper.from_array(b, names[1])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.mark.parametrize("way", ["file", "bytes"])
def test_refit_from_another_model(way, tmp_path):
    first = [data.floats(3, 2, 1, 1), data.floats(3)]
    second = [first[0][::-1].copy() * 2, first[1] + 5]
    engine, logger = refittable(weighted(tmp_path / "a.onnx", *first))
    other = weighted(tmp_path / "b.onnx", *second)
    x = data.floats(2, 2, 4, 4)

    def want(w, b):
        return np.maximum(np.einsum("mc,nchw->nmhw", w[:, :, 0, 0], x) + b[:, None, None], 0)

    np.testing.assert_allclose(execute(engine, x=x)["y"], want(*first), atol=1e-5)
    refitter = trt.Refitter(engine, logger)
    parser = trt.OnnxParserRefitter(refitter, logger)
    if way == "file":
        assert parser.refit_from_file(str(other))
    else:
        assert parser.refit_from_bytes(other.read_bytes())
    assert parser.num_errors == 0
    np.testing.assert_allclose(execute(engine, x=x)["y"], want(*first), atol=1e-5)  # not yet
    assert refitter.refit_cuda_engine()
    np.testing.assert_allclose(execute(engine, x=x)["y"], want(*second), atol=1e-5)


def test_refit_from_a_model_that_does_not_fit(tmp_path):
    """Everything that is wrong is told, as errors of the parser too, and nothing is taken."""
    first = [data.floats(3, 2, 1, 1), data.floats(3)]
    engine, logger = refittable(weighted(tmp_path / "a.onnx", *first))
    refitter = trt.Refitter(engine, logger)
    parser = trt.OnnxParserRefitter(refitter, logger)
    assert not parser.refit_from_file(str(tmp_path / "no.onnx"))
    assert parser.get_error(0).code() == trt.ErrorCode.REFIT_FAILED
    assert "no.onnx" in parser.get_error(0).desc()
    parser.clear_errors()
    assert parser.num_errors == 0
    wide = weighted(tmp_path / "wide.onnx", data.floats(4, 2, 1, 1), data.floats(3))
    assert not parser.refit_from_file(str(wide))
    assert "8 weights for 'w', which has 6" in parser.get_error(0).desc()
    parser.clear_errors()
    others = weighted(tmp_path / "names.onnx", first[0], first[1] + 1, names=("v", "b"))
    assert not parser.refit_from_file(str(others))
    assert "no weights 'w'" in parser.get_error(0).desc()
    x = data.floats(2, 2, 4, 4)
    before = execute(engine, x=x)["y"]
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(execute(engine, x=x)["y"], before)


def test_refit_of_an_engine_that_cannot_be_refitted(tmp_path):
    first = [data.floats(3, 2, 1, 1), data.floats(3)]
    path = weighted(tmp_path / "a.onnx", *first)
    engine, logger = refittable(path, flags=())
    parser = trt.OnnxParserRefitter(trt.Refitter(engine, logger), logger)
    assert not parser.refit_from_file(str(path))
    assert "REFIT" in parser.get_error(0).desc()


def test_graphs_inside_nodes_take_tensors_from_around_them(tmp_path):
    branch = lambda op: helper.make_graph(  # noqa: E731
        [helper.make_node(op, ["x", "w"], ["o"])], op,
        [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, (2,))],
    )  # fmt: skip
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub"))
    ]
    inputs = [("c", (), TensorProto.BOOL), ("x", (2,))]
    w = np.array([1, 2], np.float32)
    data.model(tmp_path / "m.onnx", nodes, inputs, [("y", (2,))], {"w": w})
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
    engine = engine_of(parsed(tmp_path / "m.onnx"))
    x = np.array([5, 5], np.float32)
    assert execute(engine, c=np.array(True), x=x)["y"].tolist() == [6, 7]
    assert execute(engine, c=np.array(False), x=x)["y"].tolist() == [4, 3]
