"""Numbers of the native core as Python writes them."""

from __future__ import annotations

import json
import math

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noria import _native
from tests.profiles import examples

TIES = st.integers(-(2**30), 2**30).map(lambda n: n / 64)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.floats(width=32) | TIES


def fixed(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text


@settings(max_examples=examples(300))
@given(rows=st.lists(st.tuples(*[NUMBERS] * 5), max_size=4))
@example(
    rows=[(0.0625, 2.0625, -0.0005, -0.00049, 1e22), (5e-7, -1.0005, 2.0**43, 2.0**44, 1e-320)]
)
def test_boxes_have_the_digits_of_python(rows):
    table = np.array(rows, np.float64).reshape(-1, 5)
    found = _native.json_boxes(table[:, 0].copy(), table[:, 1:].copy())
    assert len(found) == len(rows)
    for text, (score, *box) in zip(found, rows, strict=True):
        if not all(map(math.isfinite, (score, *box))):
            assert text is None
            continue
        left, top, width, height = (fixed(v, 3) for v in box)
        expected = f'{fixed(score, 6)},"left":{left},"top":{top},"width":{width},"height":{height}'
        assert text == expected


@settings(max_examples=examples(100))
@given(tracks=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.floats(width=32)), max_size=4))
def test_tracks_have_the_digits_of_python(tracks):
    none = 2**64 - 1
    ids = np.array([i for i, _ in tracks], np.uint64)
    scores = np.array([s for _, s in tracks], np.float64)
    for text, (number, score) in zip(_native.json_tracks(ids, scores, none), tracks, strict=True):
        if number == none:
            assert text == ""
            continue
        expected = f',"object_id":{number}'
        if math.isfinite(score):
            expected += f',"tracker_confidence":{fixed(score, 6)}'
        assert text == expected
        assert json.loads(f'{{"a":1{text}}}')["object_id"] == number
    assert _native.json_tracks(ids, np.empty(0), none) == [
        "" if i == none else f',"object_id":{i}' for i, _ in tracks
    ]
