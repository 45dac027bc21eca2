"""Which shapes the numbers of a run decide."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from headrace.plugins.static_shapes import decided_by_values


def graph(body: str) -> onnx.GraphProto:
    return onnx.parser.parse_graph(
        f"g (float[b, c, h] x, int64[2] wish) => (float y)"
        f"<int64[3] flat = {{0, -1, 1}}, int64 one = {{1}}> {{ {body} }}"
    )


@pytest.mark.parametrize(
    "body",
    [
        "y = Reshape(x, flat)",
        "s = Shape(x) c = Gather(s, one) z = Concat<axis = 0>(c, c) y = Reshape(x, z)",
        "s = Shape(x) z = Mul(s, s) y = Expand(x, z)",
        "m = ArgMax(x) s = Shape(m) y = ConstantOfShape(s)",
        "y = Relu(x) n = NonZero(x)",  # another value
        "p = Other(x) y = Relu(given)",  # given: what a plugin makes
        "y = Add(x, x)",
    ],
)
def test_shapes_that_follow_from_shapes(body: str) -> None:
    assert not decided_by_values(graph(body), "y", {"given"})


@pytest.mark.parametrize(
    "body",
    [
        "y = NonZero(x)",
        "n = NonZero(x) y = Relu(n)",
        "y = Reshape(x, wish)",
        "m = ArgMax(x) y = Reshape(x, m)",
        "k = Cast<to = 7>(x) r = Range(one, k, one) y = Relu(r)",
        "y = Reshape(x, given)",
        "y = ReduceSum(x, wish)",
        "y = com.other.Relu(x)",
    ],
)
def test_shapes_that_follow_from_numbers(body: str) -> None:
    assert decided_by_values(graph(body), "y", {"given"})
