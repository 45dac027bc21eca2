"""The built-in classifier parser against a slow oracle, and labels of other parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.errors import ParserError
from headrace.infer.classify import BuiltinClassifier, complete_labels, narrow_outputs
from headrace.meta import Classification, ClassifierParams
from headrace.network.tensor_spec import TensorSpec

VALUES = st.sampled_from(
    [
        0.0,
        -0.0,
        0.25,
        0.5,
        np.float32(0.1),
        0.75,
        1.0,
        -1.0,
        np.nan,
        np.inf,
        -np.inf,
        np.float32(1e-45),
    ]
)


def slow(outputs: Mapping[str, Any], params: ClassifierParams) -> list[Classification]:
    """Value by value, as the rule is written."""
    results = []
    for item in range(len(next(iter(outputs.values())))):
        result = Classification()
        for index, data in enumerate(outputs.values()):
            best, value = np.float32(0), None
            flat = np.atleast_1d(data[item]).ravel()
            for c in range(data.shape[1] if data.ndim > 1 else 1):
                p = np.float32(flat[c])
                if p > np.float32(params.threshold) and p > best:
                    best, value = p, c
            if value is not None:
                label = params.label(index, value)
                result.add(index, value, float(best), label)
                if label is not None:
                    result.text += label + " "
        results.append(result)
    return results


def classify(outputs: Mapping[str, Any], params: ClassifierParams) -> list[Classification]:
    """Return what wins in each item."""
    layers = BuiltinClassifier(params).winners(outputs)
    return [
        Classification(
            [
                (layer.index, layer.values[i], layer.confidences[i], layer.names[layer.values[i]])
                for layer in layers
                if layer.values[i] >= 0
            ],
            "".join(layer.texts[i] for layer in layers),
        )
        for i in range(len(layers[0].values))
    ]


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    items = draw(st.integers(1, 5))
    rest = st.sampled_from([(1,), (3,), (7,), (3, 1, 1), (2, 2, 2), (1, 4)])
    layers = draw(st.lists(rest, min_size=1, max_size=4))
    return {
        f"layer{i}": draw(hnp.arrays(np.float32, (items, *shape), elements=VALUES))
        for i, shape in enumerate(layers)
    }


LABELS = st.lists(st.lists(st.sampled_from(["a", "red", "", "ß"]), max_size=4), max_size=3)


@given(outputs=batches(), threshold=st.sampled_from([-1.0, 0.0, 0.1, 0.5, 2.0]), labels=LABELS)
def test_a_batch_is_what_the_rule_says_item_by_item(
    outputs: dict[str, Any], threshold: float, labels: list[list[str]]
) -> None:
    params = ClassifierParams(threshold, labels)
    assert classify(outputs, params) == slow(outputs, params)


@given(outputs=batches(), labels=LABELS)
def test_items_do_not_know_of_each_other(outputs: dict[str, Any], labels: list[list[str]]) -> None:
    params = ClassifierParams(0.2, labels)
    whole = classify(outputs, params)
    for i, result in enumerate(whole):
        alone = classify({name: data[i : i + 1] for name, data in outputs.items()}, params)
        assert alone == [result]


def test_results_hold_plain_python_values() -> None:
    result = classify({"x": np.float32([[0.25, 0.75]])}, ClassifierParams(0.5, [["a", "b"]]))[0]
    assert result == Classification([(0, 1, 0.75, "b")], "b ")
    assert [type(v) for v in result.attributes[0]] == [int, int, float, str]


def test_results_of_items_are_separate() -> None:
    results = classify({"x": np.zeros((3, 2), np.float32)}, ClassifierParams(0.5))
    results[0].add(0, 0, 1.0)
    assert results[1:] == [Classification(), Classification()]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floating_point_types(dtype: type) -> None:
    outputs = {"x": np.array([[0.25, 0.75], [0.5, 0.125]], dtype)}
    found = classify(outputs, ClassifierParams(0.25, [["a", "b"]]))
    assert [r.attributes for r in found] == [[(0, 1, 0.75, "b")], [(0, 0, 0.5, "a")]]


def test_one_value_for_each_item_and_memory_in_any_order() -> None:
    line = np.float32([0.9, 0.1])
    assert [r.text for r in classify({"x": line}, ClassifierParams(0.5, [["yes"]]))] == ["yes ", ""]
    table = np.asfortranarray(np.float32([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]))
    values = [r.attributes[0][1] for r in classify({"x": table}, ClassifierParams(0.0))]
    assert values == [2, 0]


def test_layers_without_values() -> None:
    outputs = {"none": np.empty((2, 0), np.float32), "x": np.float32([[0.9], [0.9]])}
    found = classify(outputs, ClassifierParams(0.5))
    assert [r.attributes for r in found] == [[(1, 0, pytest.approx(0.9), None)]] * 2
    assert classify({"x": np.empty((0, 3), np.float32)}, ClassifierParams(0.5)) == []


def test_integers_are_refused() -> None:
    with pytest.raises(ParserError, match="output best is int64"):
        classify({"best": np.zeros((1, 1), np.int64)}, ClassifierParams(0.5))


def test_labels_of_a_custom_parser_are_completed_from_the_file() -> None:
    params = ClassifierParams(0.5, [["red", "blue"], ["suv"]])
    given_ = Classification([(0, 1, 0.9, None), (1, 0, 0.8, "mine"), (1, 5, 0.7, None)], "x ")
    completed = complete_labels(given_, params)
    assert completed.attributes == [(0, 1, 0.9, "blue"), (1, 0, 0.8, "mine"), (1, 5, 0.7, None)]
    assert completed.text == "x blue "
    assert given_.attributes[0][3] is None
    assert complete_labels(given_, params, "6.2") is given_


def test_labels_of_the_built_in_parser_are_complete() -> None:
    params = ClassifierParams(0.0, [["red"]])
    for result in classify({"x": np.float32([[0.9, 0.1], [0.1, 0.9]])}, params):
        assert complete_labels(result, params) == result


def test_outputs_of_which_one_value_is_read_are_told() -> None:
    shapes: dict[str, tuple[int | str, ...]] = {
        "wide": ("N", 1, 1000),
        "usual": ("N", 1000, 1, 1),
        "flat": ("N", 1000),
        "single": ("N", 1, 1),
        "line": ("N",),
    }
    specs = [TensorSpec(name, np.dtype(np.float32), shape) for name, shape in shapes.items()]
    (notice,) = narrow_outputs(specs)
    assert "output wide" in notice.sentence
