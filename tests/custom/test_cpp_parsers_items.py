"""C++ classifier and segmentation parsers, and the input initialiser."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.custom import open_library
from headrace.custom.cpp_parsers import ParserReturnedFalseError
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import ClassifierParams, Layer, NetworkInfo, SegmentationParams
from tests.custom.conftest import Compile
from tests.infer.test_classify import classify
from tests.memory import resident
from tests.profiles import examples

NET = NetworkInfo(4, 3, 3)
PARAMS = ClassifierParams(0.25)


def layers(**arrays: object) -> dict[str, Layer]:
    return {name: Layer(name, np.asarray(a, np.float32)) for name, a in arrays.items()}


TWO = layers(color=[0.1, 0.7, 0.2], kind=[0.6, 0.4])


# ---- classifiers


def test_attributes_labels_and_text(items: Path) -> None:
    found = open_library(items).classifier_parser("ParseAttributes")(TWO, NET, PARAMS)
    assert found.attributes == [
        (0, 1, pytest.approx(0.7), "color=1"),
        (1, 0, pytest.approx(0.6), "kind=0"),
    ]
    assert found.text == "".join(
        f"{label}; a text too long for the string itself " for label in ("color=1", "kind=0")
    )


@settings(max_examples=examples(30))
@given(
    data=hnp.arrays(np.float32, (3, 5), elements=st.floats(0, 1, width=32)),
    threshold=st.floats(0, 1, width=32),
)
def test_the_same_rule_in_cpp_gives_what_the_built_in_parser_does(
    items: Path, data: np.ndarray, threshold: float
) -> None:
    parse = open_library(items).classifier_parser("ParseAttributesUnlabelled")
    params = ClassifierParams(threshold)
    for row in data:
        assert parse(layers(x=row), NET, params) == classify({"x": row[None]}, params)[0]


def test_arguments_arrive(items: Path) -> None:
    found = open_library(items).classifier_parser("ParseAttributeArguments")(TWO, NET, PARAMS)
    assert found.attributes == [(4, 3, 0.25, None), (3, 2, 1.0, "color")]
    assert found.text == ""


def test_odd_texts_and_numbers(items: Path) -> None:
    parse = open_library(items).classifier_parser("ParseAttributeOdd")
    for _ in range(2):
        found = parse(TWO, NET, PARAMS)
        assert found.attributes == [(0, 4294967295, 0.5, "\ufffd\ufffd café")]
        assert found.text == "seen"
    assert [n.sentence[:24] for n in parse.notices] == ["1 of 2 attributes of an "]


def test_one_label_in_two_attributes_is_freed_once(items: Path) -> None:
    found = open_library(items).classifier_parser("ParseAttributeShared")(TWO, NET, PARAMS)
    assert [a[3] for a in found.attributes] == ["once", "once"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ParseAttributesFalse", "returned false: the item has no attributes"),
        ("ParseAttributesThrow", "threw std::out_of_range: after the labels"),
        ("ParseAttributesMany", "returned 10,001 attributes"),
    ],
)
def test_refused_attributes(items: Path, name: str, words: str) -> None:
    library = open_library(items)
    with pytest.raises(ParserError, match=words) as caught:
        library.classifier_parser(name)(TWO, NET, PARAMS)
    assert isinstance(caught.value, ParserReturnedFalseError) == (name == "ParseAttributesFalse")
    assert name in str(caught.value)
    assert len(library.classifier_parser("ParseAttributes")(TWO, NET, PARAMS).attributes) == 2


@pytest.mark.parametrize("some", [TWO, layers(x=[1.0])])  # it says false, and true
def test_labels_leave_no_memory_behind(items: Path, some: dict[str, Layer]) -> None:
    parse = open_library(items).classifier_parser("ParseLabelLong")

    def call() -> None:
        try:
            parse(some, NET, PARAMS)
        except ParserReturnedFalseError:
            assert len(some) == 2

    for _ in range(20):
        call()
    before = resident()
    for _ in range(200):
        call()
    assert resident() - before < 10 << 20  # a leak of labels would be 50 MiB


@pytest.mark.slow
def test_strings_of_the_layout_before_cpp11_are_refused(compile_parser: Compile) -> None:
    old = compile_parser("items.cpp", "-D_GLIBCXX_USE_CXX11_ABI=0")
    library = open_library(old)
    with pytest.raises(CustomLibraryError, match="_GLIBCXX_USE_CXX11_ABI=0"):
        library.classifier_parser("ParseAttributes")
    assert library.segmentation_parser("ParseMap") is not None  # has no string


# ---- segmentation


def test_arguments_of_segmentation_arrive(items: Path) -> None:
    parse = open_library(items).segmentation_parser("ParseMapArguments")
    found = parse(TWO, NET, SegmentationParams(9, 0.5))
    assert found.class_map.shape == (3, 4)
    assert found.class_map.ravel()[:6].tolist() == [-1, 4, 3, 2, 1, 0]  # 9 is no class of 9
    assert "class 9 in a class map" in parse.notices[0].sentence
    assert found.probabilities is None


def test_class_map_and_probabilities(items: Path) -> None:
    scores = np.random.default_rng(4).random((2, 3, 4), np.float32)
    parse = open_library(items).segmentation_parser("ParseMap")
    found = parse(layers(out=scores), NET, SegmentationParams(2, 0.5))
    expected = np.where(scores[1] > 0.5, 1, np.where(scores[0] > 0.5, 0, -1))
    np.testing.assert_array_equal(found.class_map, expected)
    assert found.class_map.dtype == np.int32
    assert found.probabilities is not None
    np.testing.assert_array_equal(found.probabilities, scores)
    assert parse.notices == []


def test_what_a_parser_does_not_write_is_no_class(items: Path) -> None:
    out = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    parse = open_library(items).segmentation_parser("ParseMapFirstPixel")
    found = parse(layers(out=out), NET, SegmentationParams(2))
    assert found.class_map.ravel().tolist() == [1, *[-1] * 11]
    assert found.probabilities is not None
    np.testing.assert_array_equal(found.probabilities, np.arange(2, 24))


def test_classes_out_of_range_and_foreign_memory_are_said_once(items: Path) -> None:
    library = open_library(items)
    parse = library.segmentation_parser("ParseMapForeign")
    before = len(library.decisions)
    for _ in range(2):
        found = parse(TWO, NET, SegmentationParams(21))
        assert found.class_map.ravel().tolist() == [-1, -1, 0, *[-1] * 9]
        assert found.probabilities is None
    assert [n.sentence[:24] for n in parse.notices] == ["class 255 in a class map"]
    assert "outside of the output layers" in library.decisions[-1].sentence
    assert len(library.decisions) == before + 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ParseMapFalse", "returned false: the item has no class map"),
        ("ParseMapThrow", "threw std::runtime_error: no such layer"),
    ],
)
def test_refused_maps(items: Path, name: str, words: str) -> None:
    with pytest.raises(ParserError, match=words):
        open_library(items).segmentation_parser(name)(TWO, NET, SegmentationParams(2))


def test_absurd_networks_are_refused(items: Path) -> None:
    parse = open_library(items).segmentation_parser("ParseMap")
    with pytest.raises(ParserError, match="100000x100000"):
        parse(TWO, NetworkInfo(100_000, 100_000, 3), SegmentationParams(2))


# ---- inputs beside the image


def inputs() -> dict[str, np.ndarray]:
    return {
        "im_info": np.zeros((4, 3), np.float32),
        "b": np.zeros((4, 2, 1), np.int64),
        "c": np.zeros(4, np.int64),
    }


def test_inputs_are_filled_for_every_batch_entry(compile_parser: Compile) -> None:
    fill = open_library(compile_parser("inputs.cpp")).input_initializer()
    assert fill is not None
    given_ = inputs()
    fill(given_, NET, 4)
    np.testing.assert_array_equal(given_["im_info"], [[3, 4, 3]] * 4)
    assert given_["b"].ravel().tolist() == [2121] * 8  # binding 2, input, 2 axes
    assert given_["c"].tolist() == [3112] * 4


@pytest.mark.parametrize(
    ("flag", "words"),
    [("-DREFUSE", "returned false"), ("-DTHROW", "threw std::runtime_error: no im_info")],
)
def test_an_initializer_that_fails(compile_parser: Compile, flag: str, words: str) -> None:
    fill = open_library(compile_parser("inputs.cpp", flag)).input_initializer()
    assert fill is not None
    with pytest.raises(CustomLibraryError, match=words) as caught:
        fill(inputs(), NET, 4)
    assert "NvDsInferInitializeInputLayers" in str(caught.value)


def test_types_that_cpp_has_no_name_for(compile_parser: Compile) -> None:
    fill = open_library(compile_parser("inputs.cpp")).input_initializer()
    assert fill is not None
    with pytest.raises(CustomLibraryError, match="layer x is float64"):
        fill({"x": np.zeros((4, 3))}, NET, 4)


def test_a_library_without_initializer(items: Path) -> None:
    assert open_library(items).input_initializer() is None


def test_the_initializers_name_has_c_linkage_by_the_header(compile_parser: Compile) -> None:
    path = compile_parser("inputs.cpp")
    names = subprocess.run(["nm", "-D", str(path)], capture_output=True, text=True).stdout
    assert " T NvDsInferInitializeInputLayers" in names
