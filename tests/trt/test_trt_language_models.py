"""Layers of several experts or devices are refused by name; others of their releases computed."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.trt as trt
from headrace.errors import EngineError
from headrace.trt import release
from tests.trt.harness import network, run_layer

RNG = np.random.default_rng(7)
REFUSED = {
    "add_moe": ("10.15", "10.16"),
    "add_dist_collective": ("10.15", "10.16"),
}
CLASSES = [
    "AttentionIOForm",
    "CollectiveOperation",
    "IDistCollectiveLayer",
    "IMoELayer",
    "MoEActType",
]


@pytest.fixture
def looks_like():
    before = release.current().name
    yield release.set_version
    release.set_version(before)


@pytest.mark.parametrize("name", REFUSED)
def test_methods_of_language_models_are_refused_by_name(name, looks_like):
    net = network()
    assert not hasattr(net, name)
    assert name not in dir(net)
    with pytest.raises(AttributeError, match=f"INetworkDefinition: {name} is refused: ") as caught:
        getattr(net, name)
    assert isinstance(caught.value, EngineError)
    assert "Headrace runs vision pipelines and does not compute" in str(caught.value)
    assert caught.value.finding.remedies[0].startswith("use ")
    without, first = REFUSED[name]
    looks_like(without)
    with pytest.raises(AttributeError, match=f"no attribute '{name}' in TensorRT {without}"):
        getattr(net, name)
    looks_like(first)
    with pytest.raises(AttributeError, match="is refused"):
        getattr(net, name)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_language_models_are_refused_by_name(name, looks_like):
    assert not hasattr(trt, name)
    assert name not in dir(trt)
    with pytest.raises(
        AttributeError, match=f"'tensorrt': {name} is refused: Headrace runs vision"
    ):
        getattr(trt, name)
    looks_like("8.6")
    with pytest.raises(AttributeError, match=f"no attribute '{name}' in TensorRT 8\\.6"):
        getattr(trt, name)


def test_other_names_are_missing_as_ever(looks_like):
    net = network()
    with pytest.raises(
        AttributeError, match="'INetworkDefinition' object has no attribute 'add_x'"
    ):
        net.add_x()
    looks_like("8.6")
    with pytest.raises(AttributeError, match=r"no attribute 'add_squeeze' in TensorRT 8\.6"):
        net.add_squeeze  # noqa: B018


def fails(net, layer):
    """What the logger says when the network is built."""
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    return net.builder.logger.errors[-1]


@pytest.mark.parametrize("block", [(1, 4), (2, 4), (1, -1), (-1, -1)])
def test_rounding_in_blocks(block):
    x = RNG.standard_normal((4, 8)).astype(np.float32)
    x[0] = 0  # a block of zeros

    def make(net, x):
        return net.add_dynamic_quantize_v2(x, block, trt.int8, trt.float32)

    rounded, scales = run_layer(make, x)
    step = [n if b == -1 else b for b, n in zip(block, x.shape, strict=True)]
    assert scales.shape == (4 // step[0], 8 // step[1])
    for i, j in np.ndindex(*scales.shape):
        at = np.s_[i * step[0] : (i + 1) * step[0], j * step[1] : (j + 1) * step[1]]
        scale = np.abs(x[at]).max() / np.float32(127)
        assert scales[i, j] == pytest.approx(scale, rel=1e-6)
        want = np.rint(x[at] / scale) if scale else np.zeros_like(x[at])
        assert np.abs(rounded[at] - want).max() <= (1 if scale else 0)  # a tie may fall either way
        assert np.abs(rounded[at] * scale - x[at]).max() <= scale * 0.5001


def test_rounding_to_fp4_is_refused():
    net = network()
    x = net.add_input("x", trt.float32, (4, 16))
    layer = net.add_dynamic_quantize(x, 1, 16, trt.DataType.FP4, trt.DataType.FP8)
    assert layer.block_size == 16
    assert "blocks to FP4 with scales of FP8" in fails(net, layer)


def test_a_ragged_soft_max_of_a_scalar_is_refused_in_words():
    net = network()
    x, bounds = net.add_input("x", trt.float32, ()), net.add_input("b", trt.int32, (2, 3, 1))
    message = fails(net, net.add_ragged_softmax(x, bounds))
    assert "needs a tensor with an axis" in message
    assert "Error:" not in message
