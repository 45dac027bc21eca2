"""Classifier outputs: the built-in parser over a whole batch, and labels of other parsers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Literal

import numpy as np

from headrace._core.errors import ParserError
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, Arrays
from headrace.infer.parsers.boxes import to_float32
from headrace.infer.tally import ItemTally
from headrace.meta import Classification, ClassifierMeta, ClassifierParams, LabelInfo
from headrace.network.tensor_spec import TensorSpec

Attribute = tuple[int, int, float, str | None]


class Winners(PlainRecord, frozen=True):
    """Winners of one layer, lists of N: value -1 and text "" for an item where nothing wins.

    Attributes:
        names: name of each value, None if it has none; the last, [-1], is that of no value.
        complete: there is no item without a winner.
    """

    index: int
    values: list[int]
    confidences: list[float]
    names: list[str | None]
    texts: list[str]
    complete: bool

    def label_infos(self) -> Iterator[LabelInfo]:
        """The attributes as metadata has them, where a value without a name has the name ""."""
        names = [name or "" for name in self.names]
        labels = map(names.__getitem__, self.values)
        infos = zip(repeat(self.index), self.values, self.confidences, labels, strict=False)
        return map(tuple.__new__, repeat(LabelInfo), infos)


class BuiltinClassifier:
    """The best class of every output layer, for each item of a batch, straight to metadata.

    Every layer is one attribute, numbered in the order of the outputs. Of a layer only the first
    `shape[1]` values of an item are looked at, whatever its other axes are; (N,) counts as (N, 1).
    The largest value wins, the first of equals, if it is above the threshold and above 0; NaN never
    does. A label that the file has is appended to the text, with a blank behind it.
    Source: spec C.3.

    A batch may hold a thousand objects: their tuples are made without their constructors, which
    take twice the time, and without a loop in Python.

    Args:
        params: threshold and labels.
        tally: counts the items in which nothing wins.
    """

    def __init__(self, params: ClassifierParams, tally: ItemTally | None = None) -> None:
        self._params = params
        self._tally = ItemTally() if tally is None else tally
        self._limit = max(np.float32(params.threshold), np.float32(0))
        self._names: dict[tuple[int, int], list[str | None]] = {}

    def metas(self, outputs: Arrays, component_id: int, kind: str) -> list[ClassifierMeta | None]:
        """Metadata to attach to each of N items, None where no attribute or text was found.

        Raises:
            ParserError: a layer does not hold floating point numbers.
        """
        layers = self.winners(outputs)
        texts = layers[0].texts
        if len(layers) > 1:
            texts = list(map("".join, zip(*(layer.texts for layer in layers), strict=True)))
        infos: Iterable[tuple[LabelInfo, ...]]
        infos = zip(*(layer.label_infos() for layer in layers), strict=True)
        if not all(layer.complete for layer in layers):
            infos = (tuple(info for info in item if info[1] >= 0) for item in infos)
        fields = zip(repeat(component_id), infos, texts, repeat(kind), strict=False)
        metas: list[ClassifierMeta | None]
        metas = list(map(tuple.__new__, repeat(ClassifierMeta), fields))
        if not all(texts):  # an attribute without a name alone is not attached
            self._tally.unnamed += sum(bool(m and m.labels and not m.text) for m in metas)
            metas = [meta if text else None for meta, text in zip(metas, texts, strict=True)]
        return metas

    def winners(self, outputs: Arrays) -> list[Winners]:
        """The winners of each layer.

        Raises:
            ParserError: a layer does not hold floating point numbers.
        """
        return [self._winners(i, name, data) for i, (name, data) in enumerate(outputs.items())]

    def _winners(self, index: int, name: str, data: Array) -> Winners:
        if data.dtype.kind != "f":
            raise ParserError(
                f"output {name} is {data.dtype}",
                where="built-in classifier parser",
                expected="probabilities as floating point numbers",
                fix="decode it in a parser of your own: parse-classifier-func-name, "
                "custom-lib-path",
            )
        items = len(data)
        classes = data.shape[1] if data.ndim > 1 else 1
        if not data.size:
            return Winners(index, [-1] * items, [0.0] * items, [None], [""] * items, False)
        values, best = _largest(to_float32(data.reshape(items, -1)[:, :classes]))
        wins = best > self._limit
        complete = bool(wins.all())
        names = self._names_of(index, classes)
        if not complete:
            self._tally.lost(names, values[~wins].tolist(), best[~wins].tolist())
            values[~wins] = -1
        texts = [f"{label} " if label is not None else "" for label in names]
        numbers = values.tolist()
        label_texts = list(map(texts.__getitem__, numbers))
        return Winners(index, numbers, best.tolist(), names, label_texts, complete)

    def _names_of(self, index: int, classes: int) -> list[str | None]:
        names = self._names.get((index, classes))
        if names is None:
            label = self._params.label
            names = self._names[index, classes] = [
                *(label(index, value) for value in range(classes)),
                None,
            ]
        return names


def _largest(table: Array) -> tuple[Array, Array]:
    """(index, value) of the largest number of each row, the first of equals; NaN is the least."""
    rows = np.arange(len(table))
    values = table.argmax(axis=1)
    best = table[rows, values]
    if np.isnan(best).any():
        table = np.where(np.isnan(table), np.float32(-np.inf), table)
        values = table.argmax(axis=1)
        best = table[rows, values]
    return values, best


def narrow_outputs(outputs: Sequence[TensorSpec]) -> list[Finding]:
    """Warnings about outputs of which the built-in parser reads one value, although there are more.

    Of an output (N, 1, C) only the first value counts, as in the original.
    """
    return [
        Finding(
            "classifier-output-shape",
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
        params: labels and threshold.
        generation: whose rules apply.

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
