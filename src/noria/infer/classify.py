"""Classifier outputs: the built-in parser over a whole batch, and labels of other parsers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from noria.engine.session import TensorSpec
from noria.errors import ParserError
from noria.infer.parsers.scan import to_float32
from noria.meta import Classification, ClassifierParams
from noria.notices import Notice

__all__ = ["Attribute", "attributes_and_texts", "classify", "complete_labels", "narrow_outputs"]

Attribute = tuple[int, int, float, str | None]


def classify(
    outputs: Mapping[str, npt.NDArray[Any]], params: ClassifierParams
) -> list[Classification]:
    """The best class of every output layer, for each item of a batch.

    Every layer is one attribute, numbered in the order of `outputs`. Of a layer only the first
    `shape[1]` values of an item are looked at, whatever its other axes are. The largest value wins,
    the first of equals, if it is above the threshold and above 0; NaN never does.

    Args:
        outputs: name -> (N, C, ...) float16, float32 or float64; (N,) counts as (N, 1).
        params: threshold and labels; a label that the file has is appended to the text, with a
            blank behind it.

    Returns:
        N classifications, those of items where nothing wins without attributes.

    Raises:
        ParserError: a layer does not hold floating point numbers.
    Source: spec C.3.
    """
    return list(map(Classification, *attributes_and_texts(outputs, params)))


def attributes_and_texts(
    outputs: Mapping[str, npt.NDArray[Any]], params: ClassifierParams
) -> tuple[Iterable[list[Attribute]], Iterable[str]]:
    """What `classify` puts into its N classifications, for N objects too many to make two of.

    Raises:
        ParserError: a layer does not hold floating point numbers.
    """
    limit = max(np.float32(params.threshold), np.float32(0))
    layers = [
        _winners(name, index, data, limit, params)
        for index, (name, data) in enumerate(outputs.items())
    ]
    texts = map("".join, zip(*(texts for _, texts, _ in layers), strict=True))
    items: Iterable[list[Attribute]] = map(
        list, zip(*(found for found, _, _ in layers), strict=True)
    )
    if not all(complete for _, _, complete in layers):
        items = ([attribute for attribute in item if attribute[1] >= 0] for item in items)
    return items, texts


def _winners(
    name: str,
    index: int,
    data: npt.NDArray[Any],
    limit: np.float32,
    params: ClassifierParams,
) -> tuple[list[Attribute], list[str], bool]:
    """(attribute, text) of each item for one layer, value -1 for none; whether there is no none."""
    if data.dtype.kind != "f":
        raise ParserError(
            f"output {name} is {data.dtype}",
            where="built-in classifier parser",
            expected="probabilities as floating point numbers",
            fix="decode it in a parser of your own: parse-classifier-func-name, custom-lib-path",
        )
    items = len(data)
    classes = data.shape[1] if data.ndim > 1 else 1
    if not data.size:
        return [(index, -1, 0.0, None)] * items, [""] * items, False
    table = to_float32(data.reshape(items, -1)[:, :classes])
    values, best = _largest(table)
    wins = best > limit
    complete = bool(wins.all())
    if not complete:
        values[~wins] = -1
    # The last entry, [-1], is that of no class.
    names = [*(params.label(index, value) for value in range(classes)), None]
    texts = [f"{label} " if label is not None else "" for label in names]
    numbers = values.tolist()
    labels = map(names.__getitem__, numbers)
    found = list(zip(repeat(index), numbers, best.tolist(), labels, strict=False))
    return found, list(map(texts.__getitem__, numbers)), complete


def _largest(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(index, value) of the largest number of each row, the first of equals; NaN is the least."""
    rows = np.arange(len(table))
    values = table.argmax(axis=1)
    best = table[rows, values]
    if np.isnan(best).any():
        table = np.where(np.isnan(table), np.float32(-np.inf), table)
        values = table.argmax(axis=1)
        best = table[rows, values]
    return values, best


def narrow_outputs(outputs: Sequence[TensorSpec]) -> list[Notice]:
    """Warnings about outputs of which the built-in parser reads one value, although there are more.

    Of an output (N, 1, C) only the first value counts, as in the original.
    """
    return [
        Notice(
            "warning",
            f"the built-in classifier parser reads one value of output {spec}: its first axis "
            "after the batch counts as the classes; a parser of your own can read all of them",
        )
        for spec in outputs
        if len(spec.shape) > 2
        and spec.shape[1] == 1
        and any(isinstance(d, int) and d > 1 for d in spec.shape[2:])
    ]


def complete_labels(
    classification: Classification,
    params: ClassifierParams,
    generation: Literal["6.2", "9.1"] = "9.1",
) -> Classification:
    """Give the attributes that a custom parser left without a label the label file's.

    Each label found is appended to the text, with a blank behind it. Labels that the parser set are
    not: it wrote its own text. Generation 6.2 does neither.

    Args:
        classification: what the parser returned; it is not changed.

    Returns:
        The same object if there is nothing to fill, else a new one.
    Source: spec C.3; custom-library spec 2.3.
    """
    if generation == "6.2" or all(label is not None for *_, label in classification.attributes):
        return classification
    text = classification.text
    attributes: list[Attribute] = []
    for attribute, value, confidence, label in classification.attributes:
        if label is None and (label := params.label(attribute, value)) is not None:
            text += label + " "
        attributes.append((attribute, value, confidence, label))
    return Classification(attributes, text)
