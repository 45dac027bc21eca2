"""Loops and conditionals."""

from __future__ import annotations

import numpy as np
import pytest

import noria.trt as trt
from tests.trt.harness import engine_of, execute, network, run_layer


def scalar(net, value, dtype):
    return net.add_constant((), np.array(value, dtype)).get_output(0)


def doubling(net, start, times):
    """x <- 2 x, `times` times; outputs: the last value, all values, all of them backwards."""
    loop = net.add_loop()
    loop.add_trip_limit(times, trt.TripLimit.COUNT)
    value = loop.add_recurrence(start)
    two = net.add_constant((1,) * len(start.shape), np.full(1, 2, np.float32)).get_output(0)
    product = trt.ElementWiseOperation.PROD
    twice = net.add_elementwise(value.get_output(0), two, product).get_output(0)
    value.set_input(1, twice)
    return loop, value, twice


@pytest.mark.parametrize("axis", [0, 1])
def test_counted_loop(axis):
    x = np.array([1, 3], np.float32)
    net = network()
    t = net.add_input("x", trt.float32, (2,))
    loop, value, twice = doubling(net, t, scalar(net, 4, np.int32))
    outputs = {
        "last": loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE),
        "all": loop.add_loop_output(twice, trt.LoopOutput.CONCATENATE, axis),
        "back": loop.add_loop_output(twice, trt.LoopOutput.REVERSE, axis),
    }
    for name, layer in outputs.items():
        layer.get_output(0).name = name
        net.mark_output(layer.get_output(0))
    made = execute(engine_of(net), x=x)
    assert made["last"].tolist() == (x * 16).tolist()
    rows = np.stack([x * 2**i for i in range(1, 5)], axis)
    assert made["all"].tolist() == rows.tolist()
    assert made["back"].tolist() == np.flip(rows, axis).tolist()


@pytest.mark.parametrize("reverse", [False, True])
def test_iterator_sums_rows(reverse):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)

    def make(net, t):
        loop = net.add_loop()
        loop.add_trip_limit(scalar(net, 4, np.int32), trt.TripLimit.COUNT)
        row = loop.add_iterator(t, 0, reverse).get_output(0)
        assert row.shape == (3,)
        zero = net.add_constant((3,), np.zeros(3, np.float32)).get_output(0)
        total = loop.add_recurrence(zero)
        half = net.add_constant((1,), np.array([0.5], np.float32)).get_output(0)
        ops = trt.ElementWiseOperation
        less = net.add_elementwise(total.get_output(0), half, ops.PROD).get_output(0)
        total.set_input(1, net.add_elementwise(less, row, ops.SUM).get_output(0))
        return loop.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE)

    want = np.zeros(3)
    for row in x[::-1] if reverse else x:
        want = want * 0.5 + row
    assert run_layer(make, x)[0].tolist() == want.tolist()


def test_while_loop_looks_before_each_turn():
    def make(net, t):
        loop = net.add_loop()
        value = loop.add_recurrence(t)
        hundred = scalar(net, 100, np.float32)
        small = net.add_elementwise(value.get_output(0), hundred, trt.ElementWiseOperation.LESS)
        loop.add_trip_limit(small.get_output(0), trt.TripLimit.WHILE)
        three = scalar(net, 3, np.float32)
        more = net.add_elementwise(value.get_output(0), three, trt.ElementWiseOperation.PROD)
        value.set_input(1, more.get_output(0))
        return loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)

    assert run_layer(make, np.array(5, np.float32))[0] == 135
    assert run_layer(make, np.array(200, np.float32))[0] == 200


def test_loop_without_limit_is_refused():
    net = network()
    t = net.add_input("x", trt.float32, (2,))
    loop = net.add_loop()
    value = loop.add_recurrence(t)
    value.set_input(1, net.add_identity(value.get_output(0)).get_output(0))
    out = loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)
    net.mark_output(out.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "no trip limit" in net.builder.logger.errors[-1]


@pytest.mark.parametrize("flag", [True, False])
def test_conditional(flag):
    x = np.array([1.0, -2.0], np.float32)

    def make(net, t, c):
        branch = net.add_if_conditional()
        branch.set_condition(c)
        inside = branch.add_input(t).get_output(0)
        yes = net.add_unary(inside, trt.UnaryOperation.NEG).get_output(0)
        return branch.add_output(yes, inside)

    made = run_layer(make, x, np.array(flag))[0]
    assert made.tolist() == (-x if flag else x).tolist()
