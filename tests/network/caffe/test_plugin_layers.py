"""Caffe layers of types that only the registry knows."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ModelError
from headrace.network.caffe.importer import network_from_caffe_bytes
from headrace.plugins import (
    IPluginCreator,
    IPluginV2,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    get_plugin_registry,
)
from headrace.plugins.imported import ImportedPlugins
from headrace.plugins.memory import array_at
from tests.network.caffe.models import TEXT, WEIGHTS, caffemodel, layer, run, text_of

X = np.random.default_rng(2).normal(size=(2, 3, 6, 7)).astype(np.float32)


class AddUp(IPluginV2):
    """Each item times a factor; with `repeat`, that many such items for each image."""

    plugin_type, plugin_version, plugin_namespace, num_outputs = "AddUp_TRT", "1", "", 1

    def __init__(self, factor, repeat):
        super().__init__()
        self.factor, self.repeat, self.count = factor, repeat, 0

    def get_output_shape(self, index, input_shapes):
        return (self.repeat, *input_shapes[0]) if self.repeat else tuple(input_shapes[0])

    def supports_format(self, dtype, format):
        return dtype.name == "FLOAT"

    def configure_with_format(self, inputs, outputs, dtype, format, most):
        self.count = int(np.prod(tuple(inputs[0])))

    def execute_async(self, batch, inputs, outputs, workspace, stream):
        times = self.repeat or 1
        x = array_at(inputs[0], (batch, 1, self.count), np.float32, writable=False)
        out = array_at(outputs[0], (batch, times, self.count), np.float32, writable=True)
        out[:] = x * self.factor
        return 0

    def serialize(self):
        return np.array([self.factor, self.repeat, self.count], np.float64).tobytes()

    def clone(self):
        made = AddUp(self.factor, self.repeat)
        made.count = self.count
        return made


class Creator(IPluginCreator):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "AddUp_TRT", "1", ""
        self.field_names = PluginFieldCollection(
            [PluginField(n, None, t) for n, t in [("theFactor", PluginFieldType.FLOAT32),
             ("repeat", PluginFieldType.INT32), ("weights", PluginFieldType.FLOAT32)]]
        )  # fmt: skip

    def create_plugin(self, name, field_collection):
        values = {f.name: f.data for f in field_collection}
        factor = float(values["theFactor"][0]) if "theFactor" in values else 1.0
        factor += float(np.sum(values.get("weights", [0.0])))
        return AddUp(factor, int(values["repeat"][0]) if "repeat" in values else 0)

    def deserialize_plugin(self, name, data):
        factor, repeat, count = np.frombuffer(data, np.float64)
        made = AddUp(float(factor), int(repeat))
        made.count = int(count)
        return made


@pytest.fixture(autouse=True)
def _registered():
    creator = Creator()
    get_plugin_registry().register_creator(creator)
    yield
    get_plugin_registry().deregister_creator(creator)


def _plugins():
    return ImportedPlugins(get_plugin_registry())


def test_a_type_that_the_registry_knows():
    text = text_of(layer("AddUp", "add_up_param { the_factor: 2.5 }"), (1, *X.shape[1:]))
    (out,) = run(text, X, plugins=_plugins()).values()
    np.testing.assert_allclose(out, X * np.float32(2.5), rtol=1e-6)


def test_weights_go_into_the_field_of_that_name():
    text = text_of(layer("AddUp"), (1, *X.shape[1:]))
    (out,) = run(text, X, {"layer": [np.array([2.0, 3.0])]}, plugins=_plugins()).values()
    np.testing.assert_allclose(out, X * 6, rtol=1e-6)


def test_several_items_for_each_image_count_as_images():
    text = layer("AddUp", "add_up_param { repeat: 4 the_factor: 2 }", top="parts", name="parts")
    text += layer("InnerProduct", "inner_product_param { num_output: 5 }", bottom="parts")
    weights = np.random.default_rng(3).normal(size=(5, 126)).astype(np.float32)
    net = text_of(text, (1, *X.shape[1:]))
    blobs = {"layer": [weights, np.zeros(5)]}
    (out,) = run(net, X, blobs, plugins=_plugins()).values()
    expected = 2 * X.reshape(2, -1) @ weights.T
    np.testing.assert_allclose(out, np.repeat(expected[:, None], 4, 1), rtol=1e-4, atol=1e-4)


def test_fields_that_the_plugin_does_not_have_are_refused():
    text = text_of(layer("AddUp", "add_up_param { the_factr: 2.5 }"))
    with pytest.raises(ModelError, match=r"(?s)prototxt:4.*has no field 'the_factr'.*theFactor"):
        network_from_caffe_bytes(
            text.encode(), caffemodel({"none": []}), TEXT, WEIGHTS, plugins=_plugins()
        )


def test_without_the_registry_it_is_refused():
    with pytest.raises(ModelError, match="the layer type 'AddUp' is not known"):
        network_from_caffe_bytes(
            text_of(layer("AddUp")).encode(), caffemodel({"none": []}), TEXT, WEIGHTS
        )


@pytest.mark.parametrize(
    ("written", "declared"),
    [
        ("repeat: 4294967298", "INT32: a whole number from -2147483648 to 2147483647"),
        ("repeat: 99999999999999999999", "INT32"),
        ('repeat: "x"', "INT32"),
        ("repeat: nan", "INT32"),
        ("repeat: 1.5", "INT32"),
        ("the_factor: ABC", "FLOAT32: a number"),
        ('the_factor: "2.5"', "FLOAT32"),
        ("the_factor: 1e39", "FLOAT32"),
    ],
)
def test_values_that_do_not_fit_the_type_of_a_field(written, declared):
    text = text_of(layer("AddUp", f"add_up_param {{ {written} }}"), (1, *X.shape[1:]))
    with pytest.raises(ModelError) as caught:
        run(text, X, plugins=_plugins())
    told = str(caught.value)
    assert "layer 'layer' (AddUp)" in told
    assert written in told
    assert declared in told


@pytest.mark.parametrize(
    ("written", "factor"),
    [("the_factor: 2", 2), ("the_factor: 010", 8), ("the_factor: 0x10", 16), ("repeat: 1", 1)],
)
def test_numbers_as_they_may_be_written(written, factor):
    text = text_of(layer("AddUp", f"add_up_param {{ {written} }}"), (1, *X.shape[1:]))
    (out,) = run(text, X, plugins=_plugins()).values()
    np.testing.assert_allclose(out.reshape(X.shape), X * factor, rtol=1e-6)


@pytest.mark.parametrize("word", ["nan", "-inf"])
def test_words_for_floats(word):
    text = text_of(layer("AddUp", f"add_up_param {{ the_factor: {word} }}"), (1, *X.shape[1:]))
    (out,) = run(text, np.ones_like(X), plugins=_plugins()).values()
    np.testing.assert_array_equal(out, np.full_like(X, float(word)))
