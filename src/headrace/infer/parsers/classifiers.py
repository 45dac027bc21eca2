"""Classifier parsers that have a name; the nameless one is `headrace.infer.classify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from headrace._core.errors import ParserError
from headrace.infer.parsers.boxes import to_float32
from headrace.infer.parsers.head import CTC, layers_text
from headrace.infer.parsers.text import parse_ctc
from headrace.meta.detections import FloatArray
from headrace.meta.layers import (
    Classification,
    ClassifierParams,
    ClassifierParser,
    Layer,
    NetworkInfo,
)

Layers = Mapping[str, Layer]

_VEHICLES = ("coupe1", "largevehicle1", "sedan1", "suv1", "truck1", "van1")
_POSES = ("sitting_down", "getting_up", "sitting", "standing", "walking", "jumping")
_DICTIONARY = Path("dict.txt")
_SHORTEST_PLATE = 3


def _values(layer: Layer, name: str) -> FloatArray:
    """The first shape[0] values of a layer, as the built-in parser reads it."""
    if layer.dtype.kind != "f":
        raise _unfit(name, [layer], "floating point outputs")
    return to_float32(layer.data.reshape(-1)[: layer.shape[0]])


def _unfit(name: str, layers: Sequence[Layer], expected: str) -> ParserError:
    return ParserError(
        "the network's outputs do not fit this parser",
        where=f"parse-classifier-func-name={name}",
        expected=expected,
        fix=f"the network's outputs are {layers_text(layers)}",
    )


def _best(values: FloatArray, threshold: float) -> tuple[int, float] | None:
    """The largest value and its place, if it is above the threshold and above 0."""
    if not values.size:
        return None
    numbers = np.where(np.isnan(values), np.float32(-np.inf), values)
    index = int(numbers.argmax())
    best = numbers[index]
    return (index, float(best)) if best > max(np.float32(threshold), np.float32(0)) else None


def _soft_max(logits: FloatArray) -> FloatArray:
    if not logits.size:
        return logits
    with np.errstate(all="ignore"):
        powers = np.exp(logits - np.fmax.reduce(logits))
        return np.asarray(powers / powers.sum(), np.float32)


def _vehicle_types(
    layers: Layers, network: NetworkInfo, params: ClassifierParams
) -> Classification:
    result = Classification()
    for index, layer in enumerate(layers.values()):
        best = _best(_values(layer, "NvDsInferClassiferParseCustomSoftmax"), params.threshold)
        if best is None:
            continue
        named = index == 0 and best[0] < len(_VEHICLES)
        result.add(index, *best, _VEHICLES[best[0]] if named else None)
        if named:
            result.text += _VEHICLES[best[0]] + " "
    return result


def _logits(layers: Layers, network: NetworkInfo, params: ClassifierParams) -> Classification:
    result = Classification()
    for index, layer in enumerate(layers.values()):
        probabilities = _soft_max(_values(layer, "NvDsInferClassiferParseNonSoftmax"))
        if best := _best(probabilities, params.threshold):
            result.add(index, *best)
    return result


def _poses(layers: Layers, network: NetworkInfo, params: ClassifierParams) -> Classification:
    name = "NvDsParseCustomPoseClassification"
    layer = next(iter(layers.values()), None)
    if layer is None:
        raise _unfit(name, [], "logits in the first output")
    result = Classification()
    best = _best(_soft_max(_values(layer, name)), params.threshold)
    if best and best[0] < len(_POSES):
        result.add(0, *best, _POSES[best[0]])
        result.text = _POSES[best[0]]
    return result


def _plate(layers: Layers, network: NetworkInfo, params: ClassifierParams) -> Classification:
    name = "NvDsInferParseCustomNVPlate"
    kinds = [(layer.dtype.kind, layer.data.reshape(-1)) for layer in layers.values()]
    confidences = next((data for kind, data in kinds if kind == "f"), None)
    codes = next((data for kind, data in kinds if kind in "iu"), None)
    if confidences is None or codes is None:
        raise _unfit(name, list(layers.values()), "confidences (float32) and indices (int32)")
    characters = _dictionary(params)
    length = min(network.width // 4, len(confidences), len(codes))
    text, confidence, before = "", 1.0, -1
    for code, probability in zip(
        codes[:length].tolist(), confidences[:length].tolist(), strict=True
    ):
        if code != before and 0 <= code < len(characters):
            text += characters[code]
            confidence *= probability
        before = code
    if len(text) < _SHORTEST_PLATE:
        return Classification()
    return Classification([(0, 1, confidence, text)], text)


def _dictionary(params: ClassifierParams) -> tuple[str, ...]:
    """The characters, one a line: `dict.txt` of the working directory, else the label file."""
    try:
        stamp = _DICTIONARY.stat().st_mtime_ns
        return _read_dictionary(_DICTIONARY.absolute(), stamp)
    except (OSError, UnicodeDecodeError) as error:
        if params.labels:
            return tuple(record[0] for record in params.labels)
        raise ParserError(
            f"there are no characters: {_DICTIONARY} cannot be read from the working directory",
            where="parse-classifier-func-name=NvDsInferParseCustomNVPlate",
            expected="one character a line in dict.txt",
            fix="or name that file in labelfile-path",
        ) from error


@cache
def _read_dictionary(path: Path, stamp: int) -> tuple[str, ...]:
    return tuple(line.rstrip("\r") for line in path.read_text("utf-8").split("\n") if line)


_ENTRIES: tuple[tuple[str, Callable[..., Classification], str], ...] = (
    (
        "NvDsInferClassiferParseCustomSoftmax",
        _vehicle_types,
        "as without a name, but values of output 0 are the six vehicle types of its model",
    ),
    (
        "NvDsInferClassiferParseNonSoftmax",
        _logits,
        "outputs are logits: soft-max, then the best above classifier-threshold",
    ),
    (
        "NvDsInferParseCustomNVPlate",
        _plate,
        "license plates: indices and confidences of width / 4 places, characters from dict.txt",
    ),
    (
        "NvDsParseCustomPoseClassification",
        _poses,
        "output 0 holds logits of six poses: soft-max, then the best above classifier-threshold",
    ),
    (
        CTC,
        parse_ctc,
        "PaddleOCR's readers: a line of text, its characters from the label file",
    ),
)

PARSERS: Mapping[str, ClassifierParser] = {name: parser for name, parser, _ in _ENTRIES}
"""Name for `parse-classifier-func-name` -> parser."""

SUMMARIES: Mapping[str, str] = {name: summary for name, _, summary in _ENTRIES}
"""One line about each, for the documentation."""
