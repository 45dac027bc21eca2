"""C++ instance parsers: masks are copied, and the library's own deleted exactly once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.custom import open_library
from headrace.custom.cpp_parsers import ParserReturnedFalseError
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile, rows_layer
from tests.memory import resident
from tests.profiles import examples

ROWS = np.float32([[1, 10, 20, 30, 40, 0.9], [2, 5, 6, 7, 8, 0.5], [0, 1, 2, 3, 4, 0.25]])
MASKS = np.random.default_rng(0).random((3, 5, 4)).astype(np.float32)


def with_masks(rows: np.ndarray = ROWS, masks: np.ndarray = MASKS) -> dict[str, Layer]:
    return {**rows_layer(rows), "masks": Layer("masks", np.ascontiguousarray(masks))}


@settings(max_examples=examples(40))
@given(
    data=st.integers(0, 7).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.float32, (n, 6), elements=st.floats(0, 100, width=32)),
            hnp.arrays(
                np.float32,
                st.tuples(st.just(n), st.integers(1, 6), st.integers(1, 6)),
                elements=st.floats(-2, 2, width=32),
            ),
        )
    )
)
def test_objects_and_masks_are_what_the_parser_wrote(
    items: Path, data: tuple[np.ndarray, np.ndarray]
) -> None:
    rows, masks = data
    params = DetectionParams(3, np.zeros(3, np.float32))
    parse = open_library(items).instance_parser("ParseMasks")
    found = parse(with_masks(rows, masks), NetworkInfo(416, 320, 3), params)
    np.testing.assert_array_equal(found.boxes, rows[:, 1:5])
    np.testing.assert_array_equal(found.scores, rows[:, 5])
    np.testing.assert_array_equal(found.class_ids, rows[:, 0].astype(int))
    if len(rows):
        assert found.masks is not None
        np.testing.assert_array_equal(found.masks, masks)
        assert {m.dtype for m in found.masks} == {np.dtype(np.float32)}


def test_arguments_arrive(items: Path, network: NetworkInfo, params: DetectionParams) -> None:
    found = open_library(items).instance_parser("ParseMaskArguments")(with_masks(), network, params)
    assert found.class_ids.tolist() == [3]
    assert found.boxes.tolist() == [[416, 320, 3, 0.5]]
    assert found.scores.tolist() == [2]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("ParseMasksOfSome", [20, 0, 20]),
        ("ParseMaskShared", [20, 20, 20, 20]),
        ("ParseMaskEmpty", [0, 20, 20]),
        ("ParseMaskSizeForgotten", [0, 20, 20]),
    ],
)
def test_objects_keep_their_own_masks(
    items: Path, network: NetworkInfo, params: DetectionParams, name: str, sizes: list[int]
) -> None:
    parse = open_library(items).instance_parser(name)
    for _ in range(2):
        found = parse(with_masks(), network, params)
        assert found.masks is not None
        assert [m.size for m in found.masks] == sizes
        for i, mask in enumerate(found.masks):
            assert mask.ndim == 2
            if mask.size:
                np.testing.assert_array_equal(mask, MASKS[i % 3])
    said = [n.sentence for n in parse.notices]
    assert len(said) == (name == "ParseMaskSizeForgotten")
    assert all("1 of 3 masks" in text and "mask_size" in text for text in said)


def test_without_masks_there_are_none(
    items: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    parse = open_library(items).instance_parser("ParseMasksNever")
    assert parse(with_masks(), network, params).masks is None


def test_masks_with_odd_numbers_are_taken_from_their_objects_and_said_once(
    items: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    masks = MASKS.copy()
    masks[0, 4, 3], masks[2, 0, 0] = np.nan, np.inf
    parse = open_library(items).instance_parser("ParseMasks")
    for _ in range(2):
        found = parse(with_masks(masks=masks), network, params)
        assert found.masks is not None
        assert [m.size for m in found.masks] == [0, 20, 0]
        assert len(found) == 3
    assert [n.sentence[:34] for n in parse.notices] == ["2 of 3 masks of a frame had NaN or"]


def test_broken_boxes_go_with_their_masks(
    items: Path, network: NetworkInfo, params: DetectionParams
) -> None:
    rows = ROWS.copy()
    rows[1, 2] = np.nan
    parse = open_library(items).instance_parser("ParseMasks")
    found = parse(with_masks(rows), network, params)
    assert found.class_ids.tolist() == [1, 0]
    assert found.masks is not None
    np.testing.assert_array_equal(found.masks, MASKS[[0, 2]])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ParseMasksFalse", "returned false"),
        ("ParseMasksThrow", "threw std::runtime_error: after the masks"),
        ("ParseMaskHuge", "the largest of 16,781,312"),
        ("ParseMasksMillion", "returned 1,000,001 boxes"),
    ],
)
def test_refused_results(
    items: Path, network: NetworkInfo, params: DetectionParams, name: str, words: str
) -> None:
    library = open_library(items)
    with pytest.raises(ParserError, match=words) as caught:
        library.instance_parser(name)(with_masks(), network, params)
    assert isinstance(caught.value, ParserReturnedFalseError) == (name == "ParseMasksFalse")
    assert len(library.instance_parser("ParseMasks")(with_masks(), network, params)) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 4, 12, 48])
@pytest.mark.parametrize("flags", [(), ("-DHEADRACE_BOX_BYTES=24",)])
@pytest.mark.sampled
def test_a_detector_parser_is_told_from_an_instance_parser_and_nothing_is_freed(
    compile_parser: Compile,
    network: NetworkInfo,
    params: DetectionParams,
    count: int,
    flags: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its result, where its code shows nothing."""
    monkeypatch.setattr("headrace.custom.cpp_library.kinds_of", lambda calls, name: ())
    library = open_library(compile_parser("items.cpp", *flags), guard="never")
    rows = np.tile(ROWS, (16, 1))[:count]
    with pytest.raises(ParserError) as caught:
        library.instance_parser("ParseBoxesOnly")(with_masks(rows), network, params)
    assert "no list of NvDsInferInstanceMaskInfo" in str(caught.value)
    assert "CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE" in str(caught.value)


def test_missing_names_are_told(items: Path, compile_parser: Compile) -> None:
    library = open_library(items)
    with pytest.raises(CustomLibraryError, match="did you mean ParseMasks"):
        library.instance_parser("ParseMask5")
    with pytest.raises(CustomLibraryError, match="CHECK_CUSTOM_INSTANCE_MASK"):
        open_library(compile_parser("mangled.cpp")).instance_parser("ParseForgotten")


@pytest.mark.parametrize(
    "name",
    [
        "ParseMasks",
        "ParseMaskShared",
        "ParseMaskSizeForgotten",
        "ParseMasksFalse",
        "ParseMasksThrow",
    ],
)
def test_masks_leave_no_memory_behind(
    items: Path, network: NetworkInfo, params: DetectionParams, name: str
) -> None:
    parse = open_library(items).instance_parser(name)
    masks = np.ones((3, 160, 160), np.float32)  # 307 kB a call
    masks[2, 5, 5] = np.nan  # refused ones are deleted like the others
    layers = with_masks(masks=masks)

    def call() -> None:
        with suppress(ParserError):
            parse(layers, network, params)

    for _ in range(20):
        call()
    before = resident()
    for _ in range(300):
        call()
    assert resident() - before < 10e6  # a leak of one mask a call would be 30 MB
