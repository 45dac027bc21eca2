"""FP16 tried on images: overflow and lost values are found, by layer; the way out is tried."""

import numpy as np
import pytest
from onnx import helper

from headrace.engine.precision import export
from headrace.engine.tuning.half_check import check_half
from tests.engine.precision.graphs import model, network_of, small_net


def net(first, second, *, bias=0.0, free=False):
    """image -> Conv * first -> Relu -> * second -> Conv -> scores: `large` is between both."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": np.abs(rng.normal(1, 0.1, (4, 3, 3, 3))).astype(np.float32),
        "up": np.float32(first), "down": np.float32(second), "bias": np.float32(bias),
        "w2": rng.normal(0, 0.2, (2, 4, 1, 1)).astype(np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], "stem", pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c1", "up"], ["large"], "scale_up"),
        helper.make_node("Relu", ["large"], ["positive"], "relu"),
        helper.make_node("Add", ["positive", "bias"], ["shifted"], "shift"),
        helper.make_node("Mul", ["shifted", "down"], ["small"], "scale_down"),
        helper.make_node("Conv", ["small", "w2"], ["scores"], "head"),
    ]
    side = ["n", 3, "h", "w"] if free else ["n", 3, 8, 8]
    return model(nodes, {"image": side}, {"scores": ["n", 2, *side[2:]]}, weights)


def check(proto, count=2):
    network = network_of(proto)
    rng = np.random.default_rng(3)
    feeds = [{"image": rng.random((1, 3, 8, 8)).astype(np.float32)} for _ in range(count)]

    def lower(largest):
        scales = {name: value / 127 for name, value in largest.items()}
        return export(network, "fp16", scales, fold=True)

    return check_half(network, lower, feeds)


@pytest.mark.parametrize("free", [False, True])
def test_an_overflow_names_the_layer_its_value_and_the_way_out(free):
    found = check(net(1e4, 1e-4, free=free))
    assert (found.fault.layer, found.fault.operator) == ("scale_up", "Mul")
    assert found.fault.overflows
    assert 1e5 < found.fault.largest < 4e5
    assert found.broken == ("scores",)
    assert not found.harmless
    assert found.keep == ("scale_up", "relu", "shift", "scale_down")
    assert found.kept_decibels > 40


def test_small_values_that_become_0_are_found():
    found = check(net(1e-9, 6e4))
    assert found.fault.layer == "scale_up"
    assert not found.fault.overflows
    assert found.fault.share == 0
    assert found.decibels["scores"] < 1
    assert found.keep == ("scale_up", "relu", "shift", "scale_down")
    assert found.kept_decibels > 40
    assert not found.harmless


def test_a_right_network_has_nothing_to_say():
    for proto in (small_net(), net(10.0, 0.1)):
        found = check(proto, count=3)
        assert found.fault is None
        assert found.harmless
        assert found.images == 3
        assert min(found.decibels.values()) > 40


def test_an_overflow_behind_which_nothing_changes_is_harmless():
    """Sigmoid of infinity is 1, as that of 1e5 is."""
    nodes = [
        helper.make_node("Mul", ["image", "up"], ["a"], "up"),
        helper.make_node("Sigmoid", ["a"], ["b"], "sigmoid"),
        helper.make_node("Add", ["b", "image"], ["y"], "add"),
    ]
    found = check(model(nodes, {"image": ["n", 3, 8, 8]}, {"y": ["n", 3, 8, 8]},
                        {"up": np.float32(3e4)} | {}))  # fmt: skip
    assert found.fault is None or found.harmless
    nodes[0].input[1] = "big"
    proto = model(nodes, {"image": ["n", 3, 8, 8]}, {"y": ["n", 3, 8, 8]},
                  {"big": np.full((1, 3, 8, 8), 6.5e4, np.float32)})  # fmt: skip
    proto.graph.node.insert(0, helper.make_node("Mul", ["image", "big"], ["i2"], "pre"))
    proto.graph.node[1].input[0] = "i2"
    found = check(proto)
    assert found.fault.layer == "up"
    assert found.harmless


def test_masks_of_infinity_are_no_overflow():
    mask = np.zeros((1, 3, 8, 8), np.float32)
    mask[..., 4:] = -np.inf
    nodes = [
        helper.make_node("Add", ["image", "mask"], ["a"], "masked"),
        helper.make_node("Softmax", ["a"], ["y"], "softmax", axis=3),
    ]
    found = check(model(nodes, {"image": ["n", 3, 8, 8]}, {"y": ["n", 3, 8, 8]}, {"mask": mask}))
    assert found.fault is None
    assert found.harmless
