"""Loops and conditionals."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.trt as trt
from headrace.network.shapes.model_shapes import ModelShapes
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


@pytest.mark.parametrize("kind", ["COUNT", "WHILE"])
def test_shapes_of_a_loop_are_known_before_it_runs(kind):
    net = network()
    x = net.add_input("x", trt.float32, (-1, 4))
    loop, value, twice = doubling(net, x, scalar(net, 3, np.int32))
    if kind == "WHILE":
        loop.add_trip_limit(scalar(net, True, np.bool_), trt.TripLimit.WHILE)
    stacked = {"all": trt.LoopOutput.CONCATENATE, "back": trt.LoopOutput.REVERSE}
    layers = {"last": loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)}
    layers |= {name: loop.add_loop_output(twice, what, 1) for name, what in stacked.items()}
    for name, layer in layers.items():
        layer.get_output(0).name = name
        net.mark_output(layer.get_output(0))
    config, profile = net.builder.create_builder_config(), net.builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (1, 4), (8, 4))
    config.add_optimization_profile(profile)
    context = engine_of(net, config).create_execution_context()
    assert context.get_tensor_shape("last") == (-1, 4)
    assert context.set_input_shape("x", (5, 4))
    assert context.get_tensor_shape("last") == (5, 4)
    assert context.get_max_output_size("last") == 8 * 4 * 4
    turns = 3 if kind == "COUNT" else -1
    for name in stacked:
        assert context.get_tensor_shape(name) == (5, turns, 4)


def test_a_loop_that_grows_its_value_has_an_unknown_axis():
    net = network()
    x = net.add_input("x", trt.float32, (2, 4))
    loop = net.add_loop()
    loop.add_trip_limit(scalar(net, 3, np.int32), trt.TripLimit.COUNT)
    value = loop.add_recurrence(x)
    longer = net.add_concatenation([value.get_output(0), x])
    longer.axis = 0
    value.set_input(1, longer.get_output(0))
    last = loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    last.name = "y"
    net.mark_output(last)
    infos = ModelShapes(engine_of(net)._plan.blobs["model"]).outputs({"x": (2, 4)})
    assert infos == {"y": (-1, 4)}


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


@pytest.mark.parametrize(("limit", "turns"), [(1000, 3), (5, 2), (0, 0)])
def test_all_turns_are_stacked_whichever_limit_ends_a_loop(limit, turns):
    net = network()
    x = net.add_input("x", trt.float32, (2,))
    loop, value, twice = doubling(net, x, scalar(net, 3, np.int32))
    most = net.add_reduce(value.get_output(0), trt.ReduceOperation.MAX, 1, False).get_output(0)
    less = trt.ElementWiseOperation.LESS
    small = net.add_elementwise(most, scalar(net, limit, np.float32), less).get_output(0)
    loop.add_trip_limit(small, trt.TripLimit.WHILE)
    rows = loop.add_loop_output(twice, trt.LoopOutput.CONCATENATE).get_output(0)
    rows.name = "y"
    net.mark_output(rows)
    made = execute(engine_of(net), x=np.array([1, 2], np.float32))["y"]
    assert made.tolist() == [[2.0 * 2**i, 4.0 * 2**i] for i in range(turns)]


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


@pytest.mark.parametrize("order", ["axis 0", "axis 1 backwards"])
def test_loop_inside_a_loop(order):
    """Outer: rows of x. Inner: total <- total * w + element, over the row; w differs by row."""
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    weights = np.array([0.5, 2.0], np.float32)
    ops = trt.ElementWiseOperation
    axis, reverse = (0, False) if order == "axis 0" else (1, True)

    def make(net, t, w):
        outer = net.add_loop()
        outer.add_trip_limit(scalar(net, t.shape[axis], np.int32), trt.TripLimit.COUNT)
        row = outer.add_iterator(t, axis, reverse).get_output(0)
        weight = outer.add_iterator(w).get_output(0)
        inner = net.add_loop()
        inner.add_trip_limit(scalar(net, t.shape[1 - axis], np.int32), trt.TripLimit.COUNT)
        element = inner.add_iterator(row).get_output(0)
        total = inner.add_recurrence(scalar(net, 0, np.float32))
        less = net.add_elementwise(total.get_output(0), weight, ops.PROD).get_output(0)
        total.set_input(1, net.add_elementwise(less, element, ops.SUM).get_output(0))
        row_total = inner.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE)
        grand = outer.add_recurrence(scalar(net, 100, np.float32))
        grown = net.add_elementwise(grand.get_output(0), row_total.get_output(0), ops.SUM)
        grand.set_input(1, grown.get_output(0))
        last = outer.add_loop_output(grand.get_output(0), trt.LoopOutput.LAST_VALUE)
        kept = outer.add_loop_output(row_total.get_output(0), trt.LoopOutput.CONCATENATE)
        return Both(last, kept)

    weights = np.resize(weights, x.shape[axis])
    last, kept = run_layer(make, x, weights)
    rows = x if axis == 0 else x.T[::-1]
    want = []
    for row, weight in zip(rows, weights, strict=True):
        total = 0.0
        for element in row:
            total = total * weight + element
        want.append(total)
    assert kept.tolist() == want
    assert last == 100 + sum(want)


class Both:
    """Outputs of two layers."""

    def __init__(self, *layers) -> None:
        self.layers = layers
        self.num_outputs = len(layers)

    def get_output(self, index):
        return self.layers[index].get_output(0)


def test_while_loop_inside_a_counted_one():
    """Collatz: how many steps each start takes; the inner loop's length differs by turn."""
    starts = np.array([6, 1, 7, 27], np.int32)
    ops = trt.ElementWiseOperation

    def make(net, t):
        def number(value):
            return scalar(net, value, np.int32)

        def binary(a, b, op):
            return net.add_elementwise(a, b, op).get_output(0)

        outer = net.add_loop()
        outer.add_trip_limit(number(4), trt.TripLimit.COUNT)
        inner = net.add_loop()
        n = inner.add_recurrence(outer.add_iterator(t).get_output(0))
        steps = inner.add_recurrence(number(0))
        value = n.get_output(0)
        inner.add_trip_limit(binary(value, number(1), ops.GREATER), trt.TripLimit.WHILE)
        half = binary(value, number(2), ops.FLOOR_DIV)
        odd = binary(value, binary(half, number(2), ops.PROD), ops.GREATER)
        up = binary(binary(value, number(3), ops.PROD), number(1), ops.SUM)
        n.set_input(1, net.add_select(odd, up, half).get_output(0))
        steps.set_input(1, binary(steps.get_output(0), number(1), ops.SUM))
        count = inner.add_loop_output(steps.get_output(0), trt.LoopOutput.LAST_VALUE)
        return outer.add_loop_output(count.get_output(0), trt.LoopOutput.CONCATENATE)

    want = []
    for n in starts.tolist():
        count = 0
        while n > 1:
            n, count = (3 * n + 1 if n % 2 else n // 2), count + 1
        want.append(count)
    assert run_layer(make, starts)[0].tolist() == want


def test_loops_three_deep():
    def make(net, t):
        value, limits = t, []
        loops = []
        for times in (2, 3, 2):
            loop = net.add_loop()
            loop.add_trip_limit(scalar(net, times, np.int32), trt.TripLimit.COUNT)
            loops.append((loop, loop.add_recurrence(value)))
            value = loops[-1][1].get_output(0)
            limits.append(times)
        one = net.add_constant((1,), np.ones(1, np.float32)).get_output(0)
        value = net.add_elementwise(value, one, trt.ElementWiseOperation.SUM).get_output(0)
        for loop, recurrence in reversed(loops):
            recurrence.set_input(1, value)
            layer = loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE)
            value = layer.get_output(0)
        return layer

    assert run_layer(make, np.array([5.0], np.float32))[0].tolist() == [5 + 2 * 3 * 2]


def test_loops_that_overlap_are_refused():
    """Each takes what the other gives: neither can come first."""
    net = network()
    t = net.add_input("x", trt.float32, (1,))
    loops = [net.add_loop(), net.add_loop()]
    values = []
    for loop in loops:
        loop.add_trip_limit(scalar(net, 2, np.int32), trt.TripLimit.COUNT)
        values.append(loop.add_recurrence(t))
    both = net.add_elementwise(
        values[0].get_output(0), values[1].get_output(0), trt.ElementWiseOperation.SUM
    ).get_output(0)
    for loop, value in zip(loops, values, strict=True):
        value.set_input(1, both)
        net.mark_output(
            loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
        )
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "is inside a loop that is inside it" in net.builder.logger.errors[-1]


@pytest.mark.parametrize("length", [2, 3, 5])
def test_all_values_have_the_length_that_is_asked_for(length):
    net = network()
    x = net.add_input("x", trt.float32, (3,))
    loop = net.add_loop()
    loop.add_trip_limit(scalar(net, 3, np.int32), trt.TripLimit.COUNT)
    carried = loop.add_recurrence(x)
    twice = net.add_elementwise(
        carried.get_output(0), carried.get_output(0), trt.ElementWiseOperation.SUM
    ).get_output(0)
    carried.set_input(1, twice)
    out = loop.add_loop_output(twice, trt.LoopOutput.CONCATENATE, 0)
    out.set_input(1, scalar(net, length, np.int32))
    out.get_output(0).name = "y"
    net.mark_output(out.get_output(0))
    assert tuple(out.get_output(0).shape) == (length, 3)
    made = execute(engine_of(net), x=np.ones(3, np.float32))["y"]
    np.testing.assert_array_equal(made[:, 0], [2, 4, 8, 0, 0][:length])
