"""Python classifier, segmentation and instance parsers, and the input initialiser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Layer,
    NetworkInfo,
    SegmentationParams,
)

NET = NetworkInfo(4, 3, 3)
HEAD = "import numpy as np\nfrom headrace import Classification, Detections, Segmentation\n"
DEF = "def parse(layers, network, params):\n    return "


def write(folder: Path, text: str) -> Path:
    path = folder / "my_parser.py"
    path.write_text(HEAD + text)
    return path


def layers(**arrays: object) -> dict[str, Layer]:
    return {name: Layer(name, np.asarray(a, np.float32)) for name, a in arrays.items()}


# ---- classifiers


def classify(folder: Path, expression: str) -> Classification:
    library = open_library(write(folder, DEF + expression))
    return library.classifier_parser("parse")(layers(x=[0.25, 0.75]), NET, ClassifierParams(0.5))


def test_a_classifier_is_called_and_its_values_made_plain(tmp_path: Path) -> None:
    text = """
def parse(layers, network, params):
    p = layers["x"].data
    result = Classification(text="a car ")
    result.add(np.int64(0), p.argmax(), p.max(), "car")
    result.add(1, 2, np.float32(0.5))
    return result
"""
    parse = open_library(write(tmp_path, text)).classifier_parser("parse")
    found = parse(layers(x=[0.25, 0.75]), NET, ClassifierParams(0.5))
    assert found == Classification([(0, 1, 0.75, "car"), (1, 2, 0.5, None)], "a car ")
    assert [type(v) for v in found.attributes[0]] == [int, int, float, str]
    assert parse.notices == []


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("None", "returned None"),
        ("'car'", "returned a str"),
        ("Detections.empty()", "returned a headrace.meta.detections.Detections"),
        ("Classification(text=3)", "a text of type int"),
        ("Classification(text='x' * 2_000_000)", "a text of 2,000,000 characters"),
        ("Classification({0: 1})", "attributes of type dict"),
        ("Classification([(0, 1, 0.5)])", "attribute 0 as (0, 1, 0.5)"),
        ("Classification([(0, 1.5, 0.5, None)])", "attribute 0 as (0, 1.5, 0.5, None)"),
        ("Classification([(0, 1, 'x', None)])", "attribute 0 as (0, 1, 'x', None)"),
        ("Classification([(0, 1, 0.5, b'car')])", "a label of type bytes"),
        ("Classification([(0, 1, .5, None), (0, -1, .5, None)])", "attribute 1 with number 0 and"),
        ("Classification([(2**32, 1, 0.5, None)])", "number 4294967296"),
        ("Classification([(0, 1, 0.5, None)] * 10_001)", "10,001 attributes"),
        ("1 / 0", "raised ZeroDivisionError"),
    ],
)
def test_what_is_no_classification_is_named(tmp_path: Path, expression: str, words: str) -> None:
    with pytest.raises(ParserError) as caught:
        classify(tmp_path, expression)
    assert words in str(caught.value)
    assert "my_parser.py" in str(caught.value)


def test_attributes_without_a_finite_confidence_go_and_it_is_said_once(tmp_path: Path) -> None:
    expression = "Classification([(0, 1, np.nan, None), (1, 0, 0.5, 'a')], 'a ')"
    parse = open_library(write(tmp_path, DEF + expression)).classifier_parser("parse")
    for _ in range(2):
        assert parse({}, NET, ClassifierParams(0)).attributes == [(1, 0, 0.5, "a")]
    assert len(parse.notices) == 1


# ---- segmentation


def test_a_segmentation_is_called(tmp_path: Path) -> None:
    text = """
def parse(layers, network, params):
    scores = layers["out"].data
    return Segmentation(scores.argmax(axis=0), scores.astype(np.float64))
"""
    out = np.random.default_rng(1).random((2, 3, 4), np.float32)
    parse = open_library(write(tmp_path, text)).segmentation_parser("parse")
    found = parse(layers(out=out), NET, SegmentationParams(2))
    np.testing.assert_array_equal(found.class_map, out.argmax(axis=0))
    assert found.class_map.dtype == np.int32
    assert found.probabilities is not None
    np.testing.assert_array_equal(found.probabilities, out)
    assert found.probabilities.dtype == np.float32


@pytest.mark.parametrize(
    ("class_map", "classes", "expected", "said"),
    [
        ("np.array([[0, 1], [-1, 0]], np.int8)", 2, [[0, 1], [-1, 0]], []),
        ("np.array([[True, False]])", 2, [[1, 0]], []),
        ("np.array([[0, 255], [1, 0]], np.uint8)", 2, [[0, -1], [1, 0]], ["class 255"]),
        ("np.array([[-2, 2**40]])", 3, [[-1, -1]], ["class 1099511627776"]),
        ("np.array([[-2, 1]])", 3, [[-1, 1]], ["class -2"]),
        ("np.array([[7, 300]])", 0, [[7, 300]], []),
    ],
)
def test_class_maps_of_any_integers_become_classes(
    tmp_path: Path, class_map: str, classes: int, expected: object, said: list[str]
) -> None:
    library = open_library(write(tmp_path, DEF + f"Segmentation({class_map})"))
    parse = library.segmentation_parser("parse")
    for _ in range(2):
        found = parse({}, NET, SegmentationParams(classes))
        assert found.class_map.tolist() == expected
        assert found.class_map.dtype == np.int32
    assert [n.sentence.partition(" in")[0] for n in parse.notices] == said


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("None", "returned None"),
        ("np.zeros((3, 4), int)", "returned a numpy.ndarray"),
        ("Segmentation([[0, 1]])", "a class_map of type list"),
        ("Segmentation(np.zeros((3, 4)))", "a class_map of float64 and shape (3, 4)"),
        ("Segmentation(np.zeros((1, 3, 4), int))", "a class_map of int64 and shape (1, 3, 4)"),
        ("Segmentation(np.zeros((0, 4), int))", "a class_map of shape (0, 4)"),
        (
            "Segmentation(np.broadcast_to(np.int32(0), (10**5, 10**5)))",
            "a class_map of shape (100000, 100000)",
        ),
        ("Segmentation(np.zeros((3, 4), int), 'p')", "a probabilities of type str"),
        ("Segmentation(np.zeros((3, 4), int), np.zeros(3, int))", "a probabilities of int64"),
    ],
)
def test_what_is_no_segmentation_is_named(tmp_path: Path, expression: str, words: str) -> None:
    library = open_library(write(tmp_path, DEF + expression))
    with pytest.raises(ParserError) as caught:
        library.segmentation_parser("parse")({}, NET, SegmentationParams(3))
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["classifier", "segmentation", "instance"])
def test_missing_functions_and_wrong_signatures(tmp_path: Path, kind: str) -> None:
    library = open_library(write(tmp_path, "def parse(a, b, c): pass\ndef other(a): pass\n"))
    find = getattr(library, f"{kind}_parser")
    result = {"classifier": "Classification", "segmentation": "Segmentation"}.get(kind)
    with pytest.raises(CustomLibraryError, match="did you mean parse") as caught:
        find("pars")
    assert f"def pars(layers, network, params) -> {result or 'Detections'}" in str(caught.value)
    with pytest.raises(CustomLibraryError, match="cannot be called with three arguments"):
        find("other")


# ---- instances


def test_masks_of_a_python_parser(tmp_path: Path) -> None:
    text = """
def parse(layers, network, params):
    masks = layers["masks"].data
    return Detections(np.ones((len(masks), 4)), [0.5] * len(masks), [0] * len(masks),
                      masks=list(masks))
"""
    masks = np.random.default_rng(2).random((2, 5, 6)).astype(np.float32)
    params = DetectionParams(1, np.zeros(1, np.float32))
    parse = open_library(write(tmp_path, text)).instance_parser("parse")
    found = parse(layers(masks=masks), NET, params)
    assert found.masks is not None
    np.testing.assert_array_equal(found.masks, masks)


# ---- inputs beside the image

FILL = "def NvDsInferInitializeInputLayers(layers, network, max_batch):\n"


def inputs() -> dict[str, np.ndarray]:
    return {"im_info": np.zeros((4, 3), np.float32), "scale": np.zeros((4, 1), np.float32)}


@pytest.mark.parametrize("end", ["", "    return True\n", "    return np.True_\n"])
def test_inputs_are_filled(tmp_path: Path, end: str) -> None:
    text = FILL + "    layers['im_info'][:] = network.height, network.width, max_batch\n" + end
    library = open_library(write(tmp_path, text))
    assert library.symbols() == []
    fill = library.input_initializer()
    assert fill is not None
    given = inputs()
    fill(given, NET, 4)
    assert given["im_info"].tolist() == [[3, 4, 4]] * 4
    assert given["scale"].tolist() == [[0]] * 4


def test_inputs_that_are_replaced_are_copied(tmp_path: Path) -> None:
    text = FILL + "    layers['scale'] = np.full((4, 1), 2.5)\n    layers['im_info'] = [1, 2, 3]\n"
    fill = open_library(write(tmp_path, text)).input_initializer()
    assert fill is not None
    given = inputs()
    kept = given["scale"]
    fill(given, NET, 4)
    assert given["scale"] is kept
    assert kept.ravel().tolist() == [2.5] * 4
    assert given["im_info"].tolist() == [[1, 2, 3]] * 4


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return False", "returned false"),
        ("return 3", "returned int"),
        ("return layers['info']", "the inputs beside the image are: im_info, scale"),
        ("raise ValueError('no')", "ValueError: no"),
        ("raise SystemExit(0)", "tried to end the program"),
        ("layers['im_info'][:] = np.zeros((7, 7))", "could not broadcast"),
        ("layers['scale'] = np.zeros((9, 9))", "input scale was set to something that does not"),
        ("layers['scale'] = 1j", "input scale was set to something that does not"),
        ("layers['scale'] = 'x'", "input scale was set to something that does not"),
        ("layers['other'] = 1", "set other, which the network has no input for"),
    ],
)
def test_an_initializer_that_fails_is_told(tmp_path: Path, body: str, words: str) -> None:
    fill = open_library(write(tmp_path, f"{FILL}    {body}\n")).input_initializer()
    assert fill is not None
    with pytest.raises(CustomLibraryError) as caught:
        fill(inputs(), NET, 4)
    assert words in str(caught.value)
    assert "my_parser.py" in str(caught.value)
    if "return" not in words and "set" not in words:
        assert "my_parser.py:4" in str(caught.value)


def test_a_wrong_initializer_is_refused_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert open_library(write(tmp_path, "")).input_initializer() is None
    library = open_library(write(tmp_path, "def NvDsInferInitializeInputLayers(a): pass\n"))
    with pytest.raises(CustomLibraryError, match="cannot be called with three arguments"):
        library.input_initializer()
