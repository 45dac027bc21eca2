"""Classifier and segmentation parsers that have a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import ParserError
from headrace.infer.classify import complete_labels
from headrace.infer.parsers import WELL_KNOWN_CLASSIFIERS, WELL_KNOWN_SEGMENTATIONS
from headrace.infer.parsers.catalogue import SEGMENTATION_HEADS
from headrace.meta import (
    Classification,
    ClassifierParams,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from tests.infer.test_classify import classify

NET = NetworkInfo(6, 4, 3)


def as_layers(layers: dict[str, Any]) -> dict[str, Layer]:
    return {name: Layer(name, np.asarray(data)) for name, data in layers.items()}


def attributes_of(
    name: str, layers: dict[str, Any], *, threshold: float = 0.0, width: int = 96, labels: Any = ()
) -> Classification:
    return WELL_KNOWN_CLASSIFIERS[name](
        as_layers(layers), NetworkInfo(width, 48, 3), ClassifierParams(threshold, labels)
    )


# ---- classifiers


def test_vehicle_types() -> None:
    layers = {"types": np.float32([0.1, 0.2, 0.6, 0.1, 0, 0]), "rest": np.float32([0.4, 0.6])}
    found = attributes_of("NvDsInferClassiferParseCustomSoftmax", layers, threshold=0.5)
    assert found.attributes == [
        (0, 2, pytest.approx(0.6), "sedan1"),
        (1, 1, pytest.approx(0.6), None),
    ]
    assert found.text == "sedan1 "
    equal = attributes_of("NvDsInferClassiferParseCustomSoftmax", layers, threshold=0.6)
    assert equal == Classification()  # float32(0.6) is not above float32(0.6)
    seventh = {"types": np.eye(7, dtype=np.float32)[6]}
    assert attributes_of("NvDsInferClassiferParseCustomSoftmax", seventh).attributes == [
        (0, 6, 1.0, None)
    ]


def test_logits_are_soft_maxed_and_labels_left_to_the_file() -> None:
    logits = np.float32([1, 3, 2])
    found = attributes_of("NvDsInferClassiferParseNonSoftmax", {"x": logits}, threshold=0.5)
    expected = np.exp(logits) / np.exp(logits).sum()
    assert found.attributes == [(0, 1, pytest.approx(expected[1], abs=1e-6), None)]
    assert found.text == ""
    params = ClassifierParams(0.5, [["a", "b", "c"]])
    assert complete_labels(found, params).text == "b "
    built_in = classify({"x": expected[None].astype(np.float32)}, params)[0]
    assert complete_labels(found, params).attributes[0][1:2] == built_in.attributes[0][1:2]
    assert attributes_of("NvDsInferClassiferParseNonSoftmax", {"x": logits}, threshold=0.7) == (
        Classification()
    )
    huge = attributes_of("NvDsInferClassiferParseNonSoftmax", {"x": np.float32([1e4, 0])})
    assert huge.attributes == [(0, 0, 1.0, None)]  # without overflow


def test_poses() -> None:
    found = attributes_of(
        "NvDsParseCustomPoseClassification", {"x": np.float32([0, 0, 0, 0, 9, 0])}
    )
    assert found.attributes == [(0, 4, pytest.approx(0.9994, abs=1e-3), "walking")]
    assert found.text == "walking"


@pytest.mark.parametrize(
    "name", ["NvDsInferClassiferParseNonSoftmax", "NvDsInferParseCustomNVPlate"]
)
def test_outputs_of_another_kind_are_told(name: str) -> None:
    with pytest.raises(ParserError) as caught:
        attributes_of(name, {"best": np.int32([1, 2])}, labels=[["a"]])
    assert f"parse-classifier-func-name={name}" in str(caught.value)
    assert "'best' int32[2]" in str(caught.value)


@pytest.mark.parametrize("name", sorted(WELL_KNOWN_CLASSIFIERS))
def test_nothing_wins_among_nothing(name: str) -> None:
    layers = {"c": np.full(24, np.nan, np.float32), "i": np.full(24, 99, np.int32)}
    if "Plate" not in name:
        del layers["i"]
    if "Ctc" in name:
        layers = {"c": layers["c"].reshape(8, 3)}
    assert attributes_of(name, layers, labels=[["a"]]) == Classification()


PLATE = {
    "confidences": np.float32([0.5, 0.5, 0.25, 1, 1, 0.5, 1, *[1] * 17]),
    "indices": np.int32([1, 1, 3, 1, 0, 2, 2, *[3] * 17]),  # 3 is blank
}


def test_license_plates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "NvDsInferParseCustomNVPlate"
    with pytest.raises(ParserError, match=r"dict\.txt cannot be read"):
        attributes_of(name, PLATE)
    labels = [["X"], ["Y"], ["Z"]]
    assert attributes_of(name, PLATE, labels=labels).text == "YYXZ"
    (tmp_path / "dict.txt").write_text("0\nA\nß\n", encoding="utf-8")
    found = attributes_of(name, PLATE, labels=labels)
    assert found == Classification([(0, 1, 0.25, "AA0ß")], "AA0ß")
    assert attributes_of(name, PLATE, width=16).text == ""  # 4 places: two characters
    assert attributes_of(name, PLATE, width=20).text == "AA0"


# ---- segmentation


def map_of(name: str, classes: int = 3, threshold: float = 0.0, **layers: Any) -> Segmentation:
    return WELL_KNOWN_SEGMENTATIONS[name](
        as_layers(layers), NET, SegmentationParams(classes, threshold)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(4, 6, 1), (4, 6), (1, 4, 6)])
def test_class_numbers_are_copied(dtype: type, shape: tuple[int, ...]) -> None:
    numbers = np.arange(24) % 5 - 1
    wanted = np.where(numbers < 3, numbers, -1).reshape(4, 6)
    for name, output in (
        ("NvDsInferParseCustomPeopleSemSegNet", "argmax_1"),
        ("NvDsInferParseCustomSegformerTAO", "output"),
    ):
        found = map_of(name, **{output: numbers.reshape(shape).astype(dtype)})
        np.testing.assert_array_equal(found.class_map, wanted)
        assert found.class_map.dtype == np.int32
        assert found.probabilities is None


def test_the_first_values_count() -> None:
    name = "NvDsInferParseCustomSegformerTAO"
    found = map_of(name, output=np.arange(48).reshape(2, 4, 6), classes=100)
    np.testing.assert_array_equal(found.class_map, np.arange(24).reshape(4, 6))
    with pytest.raises(ParserError, match="20 class numbers for 6x4 pixels"):
        map_of(name, output=np.zeros((4, 5), np.int64))
    with pytest.raises(ParserError, match="the output is float32"):
        map_of(name, output=np.zeros((4, 6), np.float32))


@pytest.mark.parametrize("size", [(4, 6), (2, 3), (5, 7), (8, 1)])
def test_the_largest_is_resized_to_the_nearest_cell(size: tuple[int, int]) -> None:
    scores = np.random.default_rng(5).normal(size=(3, *size)).astype(np.float32)
    found = map_of("NvDsInferParseCustomSegformerTAO2", output=scores, threshold=99)
    for y in range(4):
        for x in range(6):
            cell = scores[:, y * size[0] // 4, x * size[1] // 6]
            assert found.class_map[y, x] == cell.argmax()


def test_the_largest_above_the_threshold() -> None:
    scores = np.random.default_rng(6).random((3, 4, 6)).astype(np.float32)
    found = map_of("NvDsInferParseCustomChangeNet", output_final=scores, threshold=0.75)
    expected = np.where(scores.max(axis=0) > 0.75, scores.argmax(axis=0), -1)
    np.testing.assert_array_equal(found.class_map, expected)
    assert found.probabilities is not None


ANY_NAME = {"HeadraceParseClassMap"}


@pytest.mark.parametrize("name", sorted(WELL_KNOWN_SEGMENTATIONS.keys() - ANY_NAME))
def test_other_outputs_are_told(name: str) -> None:
    with pytest.raises(ParserError) as caught:
        map_of(name, argmax=np.zeros((4, 6), np.int32))
    assert f"parse-segmentation-func-name={name}" in str(caught.value)
    assert "'argmax' int32[4, 6]" in str(caught.value)


def test_heads_that_fit_are_suggested() -> None:
    with pytest.raises(ParserError, match="func-name=NvDsInferParseCustomPeopleSemSegNet"):
        map_of("NvDsInferParseCustomChangeNet", argmax_1=np.zeros((4, 6, 1), np.int32))
    assert len(SEGMENTATION_HEADS) == len(WELL_KNOWN_SEGMENTATIONS)
