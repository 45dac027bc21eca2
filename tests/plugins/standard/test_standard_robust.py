"""Whatever shapes and values a standard plugin meets: results of those shapes, or our error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ModelError
from headrace.plugins.standard.layer import StandardLayer
from tests.plugins.standard.test_standard_engine import KINDS, example_of, layer_of
from tests.profiles import examples, thinned

changes = st.lists(
    st.tuples(
        st.sampled_from(["set", "drop", "add", "empty", "grow"]),
        st.integers(0, 9),
        st.integers(0, 5),
        st.integers(0, 4),
    ),
    max_size=3,
)
odd = st.sampled_from([None, np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0])


def changed(inputs: list[Any], steps: list[Any], value: float | None) -> list[Any]:
    shapes = [list(x.shape) for x in inputs]
    for kind, which, axis, number in steps:
        shape = shapes[which % len(shapes)]
        if kind == "add":
            shape.insert(min(axis, len(shape)), 1)
        elif shape:
            at = axis % len(shape)
            if kind == "drop":
                del shape[at]
            else:
                shape[at] = {"set": number, "empty": 0, "grow": min(shape[at] + 1, 99)}[kind]
    result = []
    for x, shape in zip(inputs, shapes, strict=True):
        y = np.resize(x, shape)
        if value is not None and y.size and y.dtype == np.float32:
            y = y.copy()
            y.reshape(-1)[:: max(y.size // 7, 1)] = value
        elif value is not None and y.dtype == np.int32:
            y = np.where(np.arange(y.size).reshape(y.shape) % 2, y, -(2**31)).astype(np.int32)
        result.append(np.ascontiguousarray(y))
    return result


@pytest.mark.parametrize("kind", thinned(KINDS, 3), ids=lambda k: f"{k.name}-{k.version}")
@settings(max_examples=examples(25))
@given(changes, odd)
def test_nothing_but_results_and_errors(kind: type[StandardLayer], steps: Any, value: Any) -> None:
    inputs, fields = example_of(kind)
    layer = layer_of(kind, fields)
    given_inputs = changed(inputs, steps, value)
    try:
        layer.count(given_inputs)
        shapes = layer.shapes([x.shape for x in given_inputs])
        outputs = [
            np.empty(shape, np.int32 if k in layer.integer_outputs else np.float32)
            for k, shape in enumerate(shapes)
        ]
        layer.run(given_inputs, outputs)
    except ModelError:
        return
    assert len(outputs) == layer.outputs
