"""Networks as a whole: forms of the text, names, outputs, weights, and what is refused."""

import numpy as np
import pytest

from headrace.errors import ModelError
from headrace.network.caffe.importer import network_from_caffe
from tests.network.caffe.models import blob, caffemodel, field, layer, network_of, run, text_of

X = np.random.default_rng(1).normal(size=(2, 3, 6, 7)).astype(np.float32)
W = np.random.default_rng(2).normal(size=(2, 3, 1, 1)).astype(np.float32)
B = np.array([0.5, -0.5], np.float32)
CONV = "convolution_param { num_output: 2 kernel_size: 1 }"
WANTED = np.einsum("oc,nchw->nohw", W[:, :, 0, 0], X) + B[:, None, None]
CONVOLUTION = layer("Convolution", CONV, name="conv")


def test_names_and_free_batch():
    network = network_of(text_of(CONVOLUTION), {"conv": [W, B]})
    assert [str(s) for s in network.inputs] == ["data float32[batch, 3, 6, 7]"]
    assert [str(s) for s in network.outputs] == ["out float32[batch, 2, 6, 7]"]
    assert network.model.producer_name.startswith("headrace")


@pytest.mark.parametrize(
    "head",
    [
        'input: "data" input_dim: 4 input_dim: 3 input_dim: 6 input_dim: 7',
        'input: "data"\ninput_shape { dim: 1 dim: 3 dim: 6 dim: 7 }',
        'input: "data" input_shape: < dim: [1, 3, 6, 7] >',
        'layer { name: "d" type: "Input" top: "data" input_param { shape { dim: [1,3,6,7] } } }',
    ],
)
def test_ways_to_say_the_input(head):
    found = run(f"{head}\n{CONVOLUTION}", X, {"conv": [W, B]})["out"]
    np.testing.assert_allclose(found, WANTED, atol=1e-5)


def test_infer_dims_replace_those_of_the_text():
    network = network_of(text_of(CONVOLUTION), {"conv": [W, B]}, input_dims=(3, 10, 12))
    assert network.outputs[0].shape == ("batch", 2, 10, 12)
    data = 'layer { name: "d" type: "Data" top: "data" top: "label" data_param { batch_size: 8 } }'
    network = network_of(data + CONVOLUTION, {"conv": [W, B]}, input_dims=(3, 10, 12))
    assert network.outputs[0].shape == ("batch", 2, 10, 12)
    with pytest.raises(ModelError, match=r"(?s)no shape.*deploy prototxt"):
        network_of(data + CONVOLUTION, {"conv": [W, B]})


def test_old_layers_and_old_blobs():
    text = """input: "data" input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 7
    layers { name: "conv" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 weight_decay: 1
             convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "xavier" } } }
    layers { name: "relu" type: RELU bottom: "c" top: "c" }
    layers { name: "fc" type: INNER_PRODUCT bottom: "c" top: "fc"
             inner_product_param { num_output: 3 } }
    layers { name: "prob" type: SOFTMAX bottom: "fc" top: "prob" }"""
    w = np.random.default_rng(3).normal(size=(3, 84)).astype(np.float32) * 0.1
    weights = caffemodel({"conv": [W, B], "fc": [w, np.zeros(3)]}, v1=True, legacy=True)
    found = run(text, X, weights)["prob"]
    logits = np.maximum(WANTED, 0).reshape(2, -1) @ w.T
    e = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("how", [{"packed": False}, {"double": True}, {"legacy": True}])
def test_ways_to_store_blobs(how):
    found = run(text_of(CONVOLUTION), X, caffemodel({"conv": [W, B]}, **how))["out"]
    np.testing.assert_allclose(found, WANTED, atol=1e-5)


def test_unpacked_floats_with_other_fields_between():
    split = blob(W, packed=False)
    many = np.random.default_rng(0).normal(size=(2, 3, 20, 30)).astype(np.float32)
    assert len(split) < 100 < len(blob(many, packed=False))
    text = layer("Convolution", "convolution_param { num_output: 2 kernel_size: [20, 30] }",
                 name="conv")  # fmt: skip
    x = np.ones((1, 3, 20, 30), np.float32)
    weights = caffemodel({"conv": [many, B]}, packed=False)
    found = run(text_of(text, (1, 3, 20, 30)), x, weights)["out"]
    np.testing.assert_allclose(found.ravel(), many.sum((1, 2, 3)) + B, rtol=1e-3)


def test_layers_in_place_and_the_same_blob_written_twice():
    text = layer("Power", "power_param { scale: 2 }", top="a", name="one")
    text += layer("Power", "power_param { shift: 1 }", bottom="a", top="a", name="two")
    text += layer("ReLU", bottom="a", top="a", name="three")
    text += layer("Power", "power_param { power: 2 }", bottom="a", top="b", name="four")
    found = run(text_of(text), X, outputs=["a", "b"])
    np.testing.assert_allclose(found["a"], np.maximum(2 * X + 1, 0), atol=1e-5)
    np.testing.assert_allclose(found["b"], np.maximum(2 * X + 1, 0) ** 2, atol=1e-4)


def test_outputs_in_the_order_asked_for():
    text = layer("ReLU", top="a", name="a") + layer("TanH", top="b", name="b")
    assert [s.name for s in network_of(text_of(text)).outputs] == ["a", "b"]
    assert [s.name for s in network_of(text_of(text), outputs=["b", "a"]).outputs] == ["b", "a"]
    both = run(text_of(layer("Split", top="s t")), X)
    np.testing.assert_array_equal(both["s"], both["t"])


def test_layers_for_training_and_for_other_phases_are_left_out():
    text = layer("ReLU", "include { phase: TRAIN }", name="t")
    text += layer("TanH", "exclude { phase: TRAIN }", name="u")
    text += layer("Sigmoid", 'include { phase: TEST stage: "deploy" }', bottom="out", name="v")
    text += layer("SoftmaxWithLoss", bottom="out label", top="loss", name="loss")
    text += layer("Accuracy", bottom="out label", top="accuracy", name="accuracy")
    np.testing.assert_allclose(run(text_of(text), X)["out"], np.tanh(X), atol=1e-5)


def test_branches_that_nobody_asks_for_may_hold_anything():
    text = layer("Mystery", top="m", name="m") + layer("ReLU", bottom="m", top="n", name="n")
    text += layer("TanH", top="t", name="t")
    assert network_of(text_of(text), outputs=["t"]).outputs[0].name == "t"
    with pytest.raises(ModelError, match="Mystery"):
        network_of(text_of(text))


REFUSED = [
    ("layer {", r"net.prototxt:4: the bracket opened here is never"),
    ("layer }", r"'}' follows 'layer'"),
    ('layer { name: "x }', "string without end"),
    ("layer { name: }", "'}' follows 'name'"),
    ("layer: 3", "layer: '3'"),
    ("$", r":4: '\$' does not belong here"),
    ('layer { name: "a" }', "no type"),
    ('layers { layer { name: "a" type: "conv" } }', r"(?s)oldest form.*upgrade_net_proto_text"),
    (layer("Convolution"), "kernel_size is not given"),
    (layer("Convolution", "convolution_param { num_output: 2 kernel_size: 0 }"), "size is 0"),
    (layer("Convolution", "convolution_param { num_output: 2 kernel_size: 99 }"), "no weights"),
    (layer("Convolution", "convolution_param { num_output: 2 kernel_size: 1 group: 2 }"), "group"),
    (layer("Convolution", "convolution_param { num_output: 2.5 kernel_size: 1 }"), "'2.5'"),
    (layer("Convolution", "convolution_param { kernel: 3 kernel_size: 1 }"), "num_output 0"),
    (layer("Pooling", "pooling_param { kernel_size: 2 pool: MEAN }"), r"(?s)'MEAN'.*MAX, AVE"),
    (layer("Pooling", "pooling_param { kernel_size: 2 ceil: 1 }"), r"(?s)'ceil'.*kernel_size"),
    (layer("Pooling", "pooling_param { kernel_size: 2 kernel_size: 3 kernel_size: 3 }"), "2, 3, 3"),
    (layer("Pooling", "pooling_param { kernel_size: 2 pool: STOCHASTIC }"), "lots"),
    (layer("Pooling", "pooling_param { kernel_size: 2 }", top="a b"), "second top"),
    (layer("Pooling", "pooling_param { kernel_size: 9 }"), "kernel that fits"),
    (layer("ReLu"), r"(?s)layer 'layer' \(ReLu\): the layer type 'ReLu' is not known.*ReLU6.*did"),
    (layer("Proposal"), "leave that step to the parser"),
    (layer("ReLU", bottom="dota"), r"(?s)no layer before it makes the bottom 'dota'.*'data'"),
    (layer("ReLU", "foo_param { a: 1 }"), "'foo_param' is not understood"),
    (layer("ReLU", "relu_param { negative_slope: inf }"), "finite"),
    (layer("ReLU", top="a b"), "2 tops"),
    (layer("Eltwise", bottom="data"), "bottom"),
    (layer("Reshape", "reshape_param { shape { dim: 0 dim: 5 } }"), "cannot become batch x 5"),
    (layer("Reshape", "reshape_param { shape { dim: -1 dim: -1 } }"), "cannot become"),
    (layer("Flatten", "flatten_param { axis: 4 }"), "axis: 4, but the input has 4 axes"),
    (layer("Slice", "slice_param { axis: 0 }", top="a b"), "slices the batch"),
    (layer("Reduction"), "sums over the batch"),
    (layer("Softmax", "softmax_param { axis: 0 }"), "the batch"),
    (layer("Tile", "tile_param { tiles: 999999999 }"), "elements"),
    (layer("Interp", "interp_param { height: 60000 width: 60000 }"), "elements"),
    (layer("InnerProduct", "inner_product_param { num_output: 4000000000 }"), "no weights"),
    (layer("SoftmaxWithLoss", bottom="data data"), "no blob is left"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=lambda v: v[:60])
def test_what_is_refused(text, words):
    with pytest.raises(ModelError, match=words):
        network_of(text_of(text))


def test_errors_name_line_and_layer():
    text = text_of("\n\n" + layer("ReLU", "relu_param { negative_slope: x }", name="c1"))
    with pytest.raises(ModelError, match=r"^net.prototxt:6, layer 'c1' \(ReLU\): negative_slope"):
        network_of(text)


def test_missing_outputs_are_answered_with_near_ones():
    with pytest.raises(ModelError, match=r"(?s)no blob 'oute'.*'out'"):
        network_of(text_of(layer("ReLU")), outputs=["oute"])
    with pytest.raises(ModelError, match="twice"):
        network_of(text_of(layer("ReLU")), outputs=["out", "out"])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"conv": [W]}, r"1 weight blobs for this layer; the bias are missing"),
        ({"conv": [W[:, :2], B]}, r"(?s)have the shape 2x2x1x1.*expected 2x3x1x1"),
        ({"conv": [W.transpose(1, 0, 2, 3), B]}, r"shape 3x2x1x1"),
        ({"other": [W, B]}, r"(?s)no weights for this layer.*name layers alike"),
    ],
)
def test_weights_that_do_not_fit(weights, words):
    with pytest.raises(ModelError, match=words):
        network_of(text_of(CONVOLUTION), weights)


def test_weights_that_are_damaged():
    good = caffemodel({"conv": [W, B]})
    for data, words in [
        (good[:-3], "truncated or damaged"),
        (b"\xff" * 40, "truncated or damaged"),
        (b"\x89HDF\r\n\x1a\n" + bytes(50), "HDF5"),
        (field(2, field(1, field(1, b"x"))), "V0"),
        (field(100, field(1, b"conv") + field(7, field(5, b"\0" * 8))), "2 values do not fill"),
        (field(1, b"only \xff a name"), "there are no layers"),
    ]:
        with pytest.raises(ModelError, match=words):
            network_of(text_of(CONVOLUTION), data)


def test_files(tmp_path):
    text, weights = tmp_path / "n.prototxt", tmp_path / "n.caffemodel"
    with pytest.raises(ModelError, match="cannot be read"):
        network_from_caffe(text, weights)
    text.write_text(text_of(CONVOLUTION))
    weights.write_bytes(b"")
    with pytest.raises(ModelError, match="empty"):
        network_from_caffe(text, weights)
    weights.write_bytes(caffemodel({"conv": [W, B]}))
    network = network_from_caffe(text, str(weights))
    assert network.path == weights
    assert network.made_from == {"proto-file": text}
    with pytest.raises(ModelError, match="this is a Caffe model"):
        network_from_caffe(weights, weights)
    with pytest.raises(ModelError, match=r"(?s)this is a Caffe network text.*caffemodel"):
        network_from_caffe(text, text)
    with pytest.raises(ModelError, match="folder"):
        network_from_caffe(tmp_path, weights)


def test_text_in_other_encodings(tmp_path):
    text = text_of(CONVOLUTION).encode() + "# Gewichte für später".encode("latin-1")
    (tmp_path / "n.prototxt").write_bytes(text)
    (tmp_path / "n.caffemodel").write_bytes(caffemodel({"conv": [W, B]}))
    assert network_from_caffe(tmp_path / "n.prototxt", tmp_path / "n.caffemodel").outputs
