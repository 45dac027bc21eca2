"""Whole files: names, inputs and their order, damage; and the real model."""

import numpy as np
import pytest

from headrace.errors import ModelError
from headrace.network.uff.importer import network_from_uff
from headrace.plugins.imported import ImportedPlugins
from headrace.plugins.registry import known_plugins
from tests.network.uff.digits import digit
from tests.network.uff.models import const, network_of, node, orders, run, source, uff

X = np.random.default_rng(2).normal(size=(2, 3, 5, 6)).astype(np.float32)
FLAT = [node("y", "Flatten", ["x"]), node("MarkOutput_0", "MarkOutput", ["y"])]


def last(x):
    return x.transpose(0, 2, 3, 1).reshape(len(x), -1)


@pytest.mark.parametrize(
    ("shape", "how", "wanted"),
    [
        ((-1, 5, 6, 3), {"input_dims": (3, 5, 6)}, last(X)),
        ((-1, 3, 5, 6), {"input_dims": (3, 5, 6)}, X.reshape(2, -1)),
        ((-1, 5, 6, 3), {}, last(X)),
        ((-1, 3, 5, 6), {}, X.reshape(2, -1)),
        ((-1, -1, -1, 3), {"input_dims": (3, 5, 6)}, last(X)),
        ((-1, -1, -1, -1), {"input_dims": (3, 5, 6), "input_order": "NHWC"}, last(X)),
        ((-1, -1, -1, -1), {"input_dims": (3, 5, 6)}, X.reshape(2, -1)),
        ((-1, 90), {"input_dims": (3, 5, 6), "input_order": "NC"}, X.reshape(2, -1)),
    ],
)
def test_the_order_that_the_graph_wants(shape, how, wanted):
    (found,) = run(uff(source(shape), *FLAT), X, **how).values()
    np.testing.assert_array_equal(found, wanted)


def test_the_order_that_a_reader_of_the_input_says():
    w = np.eye(3, dtype=np.float32).reshape(1, 1, 3, 3)
    data = uff(
        source((-1, -1, -1, -1)), const("w", w),
        node("c", "Conv", ["x", "w"], inputs_orders=orders("N+C", "+CK"), strides=[1, 1]),
        node("y", "Flatten", ["c"]), node("m", "MarkOutput", ["y"]),
    )  # fmt: skip
    (found,) = run(data, X, input_dims=(3, 5, 6)).values()
    np.testing.assert_allclose(found, last(X), atol=1e-6)


def test_names_of_outputs():
    data = uff(source((-1, 3, 5, 6)), *FLAT, node("z", "Unary", ["x"], func="abs"))
    assert [s.name for s in network_of(data).outputs] == ["y"]
    assert [s.name for s in network_of(data, outputs=["z", "y"]).outputs] == ["z", "y"]
    assert [s.name for s in network_of(data, outputs=["MarkOutput_0"]).outputs] == ["MarkOutput_0"]
    assert [s.name for s in network_of(data, outputs=["y:0"]).outputs] == ["y:0"]
    with pytest.raises(ModelError, match=r"(?s)no node 'yy'.*'y'"):
        network_of(data, outputs=["yy"])
    with pytest.raises(ModelError, match="marks no output"):
        network_of(uff(source(), node("z", "Unary", ["x"], func="abs")))


def test_names_of_inputs():
    data = uff(source((-1, 3, 5, 6)), *FLAT)
    assert network_of(data, input_name="x").inputs[0].shape == ("batch", 3, 5, 6)
    with pytest.raises(
        ModelError, match=r"(?s)no input is called 'data'.*'x'.*uff-input-blob-name"
    ):
        network_of(data, input_name="data")
    two = uff(source((-1, 3, 5, 6)), source((-1, 2), "other"), *FLAT)
    with pytest.raises(ModelError, match="the input is not named"):
        network_of(two)
    assert network_of(two, input_name="x").outputs
    both = uff(source((-1, 3, 5, 6)), source((-1, 3, 5, 6), "o"),
               node("y", "Binary", ["x", "o"], func="add"))  # fmt: skip
    with pytest.raises(ModelError, match="second input"):
        network_of(both, input_name="x", outputs=["y"])


def test_dims_that_nobody_knows():
    with pytest.raises(ModelError, match="infer-dims"):
        network_of(uff(source((-1, -1, -1, 3)), *FLAT))
    with pytest.raises(ModelError, match="channels, height, width"):
        network_of(uff(source(), *FLAT), input_dims=(3, 0, 5))


def test_odd_graphs():
    with pytest.raises(ModelError, match="depends on itself"):
        network_of(uff(source(), node("y", "Binary", ["x", "z"], func="add"),
                       node("z", "Identity", ["y"]), node("m", "MarkOutput", ["y"])))  # fmt: skip
    with pytest.raises(ModelError, match="no node 'w'"):
        network_of(uff(source(), node("y", "Binary", ["x", "w"], func="add"),
                       node("m", "MarkOutput", ["y"])))  # fmt: skip
    with pytest.raises(ModelError, match="does not depend on the input"):
        network_of(uff(source(), const("c", np.ones(3, np.float32))), outputs=["c"])
    with pytest.raises(ModelError, match="two nodes"):
        network_of(uff(source(), source()))
    chain = [node(f"n{i}", "Identity", [f"n{i - 1}" if i else "x"]) for i in range(5000)]
    assert network_of(uff(source(), *chain), outputs=["n4999"]).outputs


def test_damage():
    good = uff(source(), const("c", np.ones(4, np.float32)), *FLAT)
    for data, words in [
        (good[:-3], "truncated or damaged"),
        (b"\xff" * 30, "truncated or damaged"),
        (b"\x08\x01\x10\x01", "no nodes"),
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (good.replace(b"weights_c", b"weights_d", 1), "refers to 'weights_d'"),
    ]:
        with pytest.raises(ModelError, match=words):
            network_of(data)
    short = node("c", "Const", shape=[9], dtype=131104, values=b"1234")
    with pytest.raises(ModelError, match="4 bytes do not fill"):
        network_of(uff(source(), short, node("y", "Binary", ["x", "c"], func="add")),
                   outputs=["y"])  # fmt: skip


def evaluate_pb(path, x):
    """The TensorFlow graph of the real model, read and computed here: two dense layers."""

    def varint(data, at):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    def fields(data):
        at = 0
        while at < len(data):
            tag, at = varint(data, at)
            if tag & 7 == 0:
                value, at = varint(data, at)
            else:
                length, at = varint(data, at) if tag & 7 == 2 else (4 if tag & 7 == 5 else 8, at)
                value, at = data[at : at + length], at + length
            yield tag >> 3, value

    arrays = {}
    for number, node_data in fields(path.read_bytes()):
        parts = list(fields(node_data)) if number == 1 else []
        if (2, b"Const") not in parts:
            continue
        for attribute in (v for n, v in parts if n == 5):
            pair = dict(fields(attribute))
            if pair[1] == b"value":
                tensor = list(fields(dict(fields(pair[2]))[8]))
                dims = [dict(fields(d))[1] for n, s in tensor if n == 2 for _, d in fields(s)]
                content = dict(tensor).get(4)
                if content is not None and dict(tensor)[1] == 1:
                    arrays[dict(parts)[1].decode()] = np.frombuffer(content, "<f4").reshape(dims)
    flat = x.transpose(0, 2, 3, 1).reshape(len(x), -1).astype(np.float64)
    hidden = np.maximum(flat @ arrays["dense/kernel"] + arrays["dense/bias"], 0)
    logits = hidden @ arrays["dense_1/kernel"] + arrays["dense_1/bias"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_the_real_model_equals_the_graph_it_came_from_and_reads_digits(data_dir):
    path = data_dir / "models" / "lenet5.uff"
    network = network_from_uff(path, "input_1", (1, 28, 28), "NCHW", ["dense_1/Softmax"])
    assert [str(s) for s in network.outputs] == ["dense_1/Softmax float32[batch, 10]"]
    from headrace.engine import BuildOptions, build

    hands = [(w, s) for w in (2.0, 2.6, 3.2) for s in (0.0, 0.15, 0.3)]
    images = np.array([digit(d, width=w, slant=s) for w, s in hands for d in range(10)])[:, None]
    noise = np.random.default_rng(0).random((20, 1, 28, 28), np.float32)
    x = np.concatenate([images, noise])
    with build(network, BuildOptions(max_batch=128)).open_session() as session:
        found = session.run({"input_1": x})["dense_1/Softmax"]
    np.testing.assert_allclose(found, evaluate_pb(path.with_suffix(".pb"), x), atol=1e-5)
    read = found[: len(images)].argmax(1).reshape(-1, 10)
    assert (read == np.arange(10)).all()


def test_a_plugin_without_inputs_is_the_same_for_every_image():
    grid = {"minSize": 0.2, "maxSize": 0.95, "numLayers": 1, "featureMapShapes": [3],
            "aspectRatios": [1, 2, 3], "variance": [1, 1, 1, 1]}  # fmt: skip
    data = uff(
        source((-1, 3, 5, 6)),
        node("GridAnchor", "_GridAnchor_TRT", [], **grid),
        node("m", "MarkOutput", ["GridAnchor"]),
    )
    x = np.zeros((3, 3, 5, 6), np.float32)
    how = {"input_name": "x", "input_dims": (3, 5, 6), "plugins": ImportedPlugins(known_plugins())}
    (priors,) = run(data, x, outputs=["GridAnchor"], **how).values()
    assert priors.shape[:2] == (3, 2)
    np.testing.assert_array_equal(priors[1:], priors[:1].repeat(2, 0))
    assert priors[0, 0].std() > 0.1
