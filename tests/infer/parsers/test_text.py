"""Lines in a map of probabilities, and characters in a row of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from headrace.infer.parsers import WELL_KNOWN, WELL_KNOWN_CLASSIFIERS
from headrace.infer.parsers.text import regions
from headrace.meta import Classification, ClassifierParams, DetectionParams, Layer, NetworkInfo
from tests.profiles import examples

READ = WELL_KNOWN_CLASSIFIERS["HeadraceParseCtc"]
LABELS = (("a",), ("b",), ("", ""))  # the line of a semicolon


def labelled(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Boxes of connected regions, cell by cell."""
    left, found = {tuple(p) for p in np.argwhere(mask)}, []
    while left:
        todo, region = [left.pop()], []
        while todo:
            y, x = todo.pop()
            region.append((y, x))
            near = {(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            todo += near
        ys, xs = zip(*region, strict=True)
        found.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1))
    return sorted(found)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 0.8))
def test_regions_are_those_of_a_walk_over_cells(seed: int, share: float) -> None:
    likely = np.random.default_rng(seed).random((7, 9), np.float32)
    boxes, scores = regions(likely, np.float32(share))
    assert sorted(tuple(map(int, box)) for box in boxes) == labelled(likely > share)
    assert (scores > share).all()


def test_a_line_grows_to_its_letters() -> None:
    likely = np.zeros((1, 40, 60), np.float32)
    likely[0, 10:20, 10:40] = 0.9
    likely[0, 30:32, 5:9] = 0.9  # a speck
    params = DetectionParams(1, np.float32([0.5]))
    parse = WELL_KNOWN["HeadraceParseTextRegions"]
    found = parse({"map": Layer("map", likely)}, NetworkInfo(120, 80, 3), params)
    reach = 2 * 30 * 10 / (2 * (30 + 10))  # 7.5 cells of 2 pixels
    expected = [2 * (10 - reach), 2 * (10 - reach), 2 * (30 + 2 * reach), 2 * (10 + 2 * reach)]
    np.testing.assert_allclose(found.boxes, [expected])
    np.testing.assert_allclose(found.scores, [0.9], rtol=1e-6)
    strict = DetectionParams(1, np.float32([0.95]))
    assert not len(parse({"map": Layer("map", likely)}, NetworkInfo(120, 80, 3), strict))


def read(best: list[int], threshold: float = 0.5, columns: int = 5) -> Classification:
    steps = np.full((len(best), columns), 0.05, np.float32)
    steps[np.arange(len(best)), best] = 0.8
    params = ClassifierParams(threshold, LABELS)
    return READ({"steps": Layer("steps", steps)}, NetworkInfo(320, 48, 3), params)


def test_repeats_are_one_character_and_blanks_part_them() -> None:
    found = read([0, 1, 1, 0, 1, 2, 4, 3, 0])
    assert found.text == "aab ; "
    assert found.attributes == [(0, 0, pytest.approx(0.8), "aab ;")]


def test_nothing_read_is_nothing_attached() -> None:
    assert read([0, 0]) == Classification()
    assert read([1, 2], threshold=0.9) == Classification()
    assert read([4]) == Classification()  # a space alone


def test_another_dictionary_is_an_error() -> None:
    with pytest.raises(ParserError, match="does not fit a label file of 3 characters"):
        read([0, 1], columns=9)
