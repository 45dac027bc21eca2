import contextlib
import os

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from headrace.errors import ModelError
from headrace.network import Network, network_from_onnx
from headrace.network.onnx_file import network_from_onnx_bytes
from tests.network.onnx_models import FLOAT, image_model, model_of, save
from tests.profiles import examples


def refused(path, *words):
    with pytest.raises(ModelError) as caught:
        network_from_onnx(path)
    for word in words:
        assert word in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_inputs_and_outputs_in_the_models_order(tmp_path):
    network = network_from_onnx(save(image_model(), tmp_path / "m.onnx"))
    assert [str(s) for s in network.inputs] == ["x float32[batch, 3, 4, 6]"]
    assert [str(s) for s in network.outputs] == [
        "doubled float32[batch, 3, 4, 6]",
        "mean float32[batch]",
    ]
    assert network.inputs[0].dtype == np.float32


def test_a_free_axis_without_a_name_is_none(tmp_path):
    network = network_from_onnx(save(image_model((None, 3, 4, 6)), tmp_path / "m.onnx"))
    assert network.inputs[0].shape == (None, 3, 4, 6)
    assert "?, 3" in str(network.inputs[0])


def test_axes_of_minus_one_are_free(tmp_path):
    """As Paddle's exporter writes them."""
    model = image_model((-1, 3, -1, 6))
    model.graph.value_info.append(helper.make_tensor_value_info("xf", FLOAT, [-1, 3, -1, 6]))
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    assert network.inputs[0].shape == (None, 3, None, 6)
    assert [s.shape for s in network.outputs] == [(None, 3, None, 6), (None,)]
    graph = network.to_proto().graph
    values = [*graph.input, *graph.output, *graph.value_info]
    assert all(d.dim_value >= 0 for v in values for d in v.type.tensor_type.shape.dim)


def test_initialisers_listed_as_inputs_are_taken_off(tmp_path):
    model = image_model(list_weight_as_input=True)
    model.ir_version = 3
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    assert [s.name for s in network.inputs] == ["x"]
    proto = network.to_proto()
    assert [i.name for i in proto.graph.input] == ["x"]
    assert [i.name for i in proto.graph.initializer] == ["weight"]
    onnx.checker.check_model(proto)


def test_summary_counts(tmp_path):
    path = save(image_model(), tmp_path / "m.onnx")
    summary = network_from_onnx(path).summary()
    assert summary.parameters == 1
    assert summary.operators == {"Cast": 1, "Mul": 1, "ReduceMean": 1}
    assert summary.nodes == 3
    assert summary.opsets == {"": 13}
    assert summary.size_bytes == path.stat().st_size
    assert summary.unknown_operators == ()


def test_the_real_model_has_the_parameters_its_weights_have(data_dir):
    path = data_dir / "models" / "yolox_nano.onnx"
    weights = onnx.load(path).graph.initializer
    summary = network_from_onnx(path).summary()
    assert summary.parameters == sum(int(np.prod(w.dims)) for w in weights)
    assert summary.operators["Conv"] == 113


def test_unknown_operators_are_listed_with_their_nodes(tmp_path):
    model = model_of(
        [
            helper.make_node("EfficientNMS_TRT", ["x"], ["a"], "nms", domain="TRT"),
            helper.make_node("BatchedNMS_TRT", ["a"], ["b"], "batched"),
            helper.make_node("Relu", ["b"], ["y"], "relu"),
        ],
        [helper.make_tensor_value_info("x", FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, [1, 3, 4, 6])],
        domains=["TRT"],
    )
    unknown = network_from_onnx(save(model, tmp_path / "m.onnx")).unknown_operators()
    assert [str(u) for u in unknown] == [
        "TRT::EfficientNMS_TRT (node 'nms')",
        "BatchedNMS_TRT (node 'batched')",
    ]


def test_functions_of_the_model_are_known(tmp_path):
    function = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 13)],
    )  # fmt: skip
    model = model_of(
        [helper.make_node("Twice", ["x"], ["y"], "twice", domain="mine")],
        [helper.make_tensor_value_info("x", FLOAT, [1, 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, [1, 3, 4, 6])],
        domains=["mine"],
    )
    model.functions.append(function)
    assert network_from_onnx(save(model, tmp_path / "m.onnx")).unknown_operators() == ()


def test_a_missing_file_names_its_neighbours(tmp_path):
    save(image_model(), tmp_path / "near.onnx")
    refused(tmp_path / "m.onnx", "No such file", "near.onnx")
    refused(tmp_path / "no" / "m.onnx", "does not exist")


def test_a_folder_is_refused(tmp_path):
    refused(tmp_path, "is a folder")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    refused(tmp_path / "pipe.onnx", "not a regular file")


@pytest.mark.parametrize("sequence", [False, True])
def test_an_output_that_is_a_map_is_refused_with_the_way_out(tmp_path, sequence):
    model = image_model()
    kind = onnx.TypeProto()
    kind.map_type.key_type = TensorProto.STRING
    kind.map_type.value_type.tensor_type.elem_type = FLOAT
    if sequence:
        kind, inner = onnx.TypeProto(), kind
        kind.sequence_type.elem_type.CopyFrom(inner)
    model.graph.output[1].type.CopyFrom(kind)
    refused(save(model, tmp_path / "m.onnx"), "'mean' is a map", "in its place")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "m.onnx").touch()
    refused(tmp_path / "m.onnx", "the file is empty")


def test_a_huge_file_is_refused_without_reading(tmp_path):
    with open(tmp_path / "m.onnx", "wb") as file:
        file.truncate(3 * 2**30)
    refused(tmp_path / "m.onnx", "3.0 GiB", "external data")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<!DOCTYPE html><html>not found</html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"\0" * 100, "zero bytes"),
        (bytes(range(200, 256)), "nothing else known"),
    ],
)
def test_other_files_are_named(tmp_path, data, words):
    (tmp_path / "m.onnx").write_bytes(data)
    refused(tmp_path / "m.onnx", "an ONNX model", words)


@pytest.mark.parametrize("name", ["lenet5.engine", "lenet5.uff", "RFB-320.caffemodel"])
def test_real_models_of_other_kinds_are_refused(data_dir, name):
    refused(data_dir / "models" / name, "this is a", "expected an ONNX model")


def test_a_truncated_model_says_how_much_is_missing(data_dir, tmp_path):
    data = (data_dir / "models" / "yolox_nano.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(data[: len(data) // 2])
    text = refused(tmp_path / "m.onnx", "truncated", "the graph at byte")
    assert any(
        abs(int(n) - (len(data) - len(data) // 2)) < 200 for n in text.split() if n.isdigit()
    )


def test_no_outputs_and_no_inputs(tmp_path):
    model = image_model()
    del model.graph.output[:]
    refused(save(model, tmp_path / "m.onnx"), "no outputs")
    model = image_model()
    del model.graph.input[:]
    refused(save(model, tmp_path / "m.onnx"), "no inputs")


@pytest.mark.parametrize("opset", [0, 999])
def test_an_unsupported_opset_is_named(tmp_path, opset):
    model = image_model()
    model.opset_import[0].version = opset
    refused(save(model, tmp_path / "m.onnx"), f"opset {opset}", str(onnx.defs.onnx_opset_version()))


def test_a_model_without_opset_is_refused(tmp_path):
    model = image_model()
    del model.opset_import[:]
    refused(save(model, tmp_path / "m.onnx"), "opset")


def test_an_input_that_is_no_tensor_is_refused(tmp_path):
    model = image_model()
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", FLOAT, None))
    refused(save(model, tmp_path / "m.onnx"), "SequenceType", "tensor")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.dims.__setitem__(0, 10**12), "needs"),
        (lambda t: t.dims.__setitem__(0, -1), "negative dimension"),
        (lambda t: setattr(t, "data_type", 999), "element type 999"),
        (lambda t: setattr(t, "data_type", TensorProto.DOUBLE), "holds 4 bytes"),
    ],
)
def test_weights_that_promise_more_than_there_is(tmp_path, change, words):
    model = image_model()
    change(model.graph.initializer[0])
    refused(save(model, tmp_path / "m.onnx"), "initializer 'weight'", words)


def test_weights_in_typed_fields_are_counted(tmp_path):
    model = image_model()
    model.graph.initializer[0].CopyFrom(helper.make_tensor("weight", FLOAT, [1, 1, 1, 1], [2.0]))
    assert network_from_onnx(save(model, tmp_path / "m.onnx"))
    model.graph.initializer[0].dims[0] = 5
    refused(save(model, tmp_path / "m.onnx"), "holds 1 values", "needs 5")


def test_weights_in_the_field_of_another_type_are_refused(tmp_path):
    model = image_model()
    weight = model.graph.initializer[0]
    weight.CopyFrom(helper.make_tensor("weight", FLOAT, [1, 1, 1, 1], [2.0]))
    weight.data_type = TensorProto.INT32
    refused(save(model, tmp_path / "m.onnx"), "holds 0 values in int32_data", "needs 1")


def test_a_tensor_in_an_attribute_of_a_subgraph_is_checked(tmp_path):
    bad = TensorProto(name="k", data_type=FLOAT, dims=[10**9])
    bad.raw_data = b"1234"
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], "deep", value=bad)],
        "branch", [], [helper.make_tensor_value_info("c", FLOAT, None)],
    )  # fmt: skip
    model = image_model()
    model.graph.node.append(
        helper.make_node("If", ["cond"], ["z"], "if", then_branch=inner, else_branch=inner)
    )
    refused(save(model, tmp_path / "m.onnx"), "node 'deep' (Constant), attribute 'value'")


@pytest.mark.parametrize("name", [b"doubled", b"weight", b"average", b"batch", b"Mul"])
def test_a_name_that_is_not_text_is_damage(tmp_path, name):
    data = image_model().SerializeToString().replace(name, b"\x80" + name[1:])
    (tmp_path / "m.onnx").write_bytes(data)
    refused(tmp_path / "m.onnx", r"is not text: '\x80")


MODEL_BYTES = image_model().SerializeToString()


@given(st.binary(max_size=300))
def test_any_bytes_are_a_network_or_refused(tmp_path_factory, data):
    check_bytes(data, tmp_path_factory.getbasetemp())


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.integers(0, len(MODEL_BYTES) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(MODEL_BYTES)),
)
def test_a_mutated_model_is_a_network_or_refused(tmp_path_factory, changes, keep):
    data = bytearray(MODEL_BYTES)
    for at, value in changes:
        data[at] = value
    check_bytes(bytes(data), tmp_path_factory.getbasetemp())
    check_bytes(bytes(data[:keep]), tmp_path_factory.getbasetemp())


def check_bytes(data, folder):
    with contextlib.suppress(ModelError):
        network = network_from_onnx_bytes(data, folder / "m.onnx")
        assert isinstance(network, Network)
        network.summary()
        network.to_proto()
