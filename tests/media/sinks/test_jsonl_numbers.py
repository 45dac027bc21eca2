"""Numbers of the native core as Python writes them."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace._core import _native
from tests.profiles import examples

TIES = st.integers(-(2**30), 2**30).map(lambda n: n / 64)
NONE = 2**64 - 1
BOX = tuple(f',"{name}":'.encode() for name in ("left", "top", "width", "height"))
NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | TIES
)


def fixed(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text


class Heads(dict):
    def __missing__(self, key):
        return b"{"


def objects(rows, ids=None, scores=None, tails=(), heads=None):
    """The text of objects, and how many are left out."""
    with np.errstate(over="ignore"):
        values = np.array(rows, np.float32).reshape(-1, 5)
    count = len(values)
    text, lost = _native.json_objects(
        Heads() if heads is None else heads,
        np.arange(count, dtype=np.int32),
        np.arange(count, dtype=np.int32),
        np.full(count, NONE, np.uint64) if ids is None else np.array(ids, np.uint64),
        NONE,
        b',"object_id":',
        (((b'"confidence":',), 6), (BOX, 3)),
        (((b',"tracker_confidence":',), 6),),
        (
            np.ascontiguousarray(values[:, 0]),
            np.ascontiguousarray(values[:, 1:]),
            None if scores is None else np.array(scores, np.float32),
        ),
        list(tails),
    )
    return text.decode(), lost


@settings(max_examples=examples(300))
@given(rows=st.lists(st.tuples(*[NUMBERS] * 5), max_size=4))
@example(rows=[(0.0625, 2.0625, -0.0005, -0.00049, 1e22), (5e-7, -1.0005, 2.0**43, 2.0**44, 1e-45)])
def test_boxes_have_the_digits_of_python(rows):
    expected = []
    with np.errstate(over="ignore"):
        rows = np.array(rows, np.float32).reshape(-1, 5).tolist()
    for score, *box in rows:
        if not all(map(math.isfinite, (score, *box))):
            continue
        left, top, width, height = (fixed(v, 3) for v in box)
        numbers = f'{fixed(score, 6)},"left":{left},"top":{top},"width":{width},"height":{height}'
        expected.append(f'{{"confidence":{numbers}}}')
    assert objects(rows) == (",".join(expected), len(rows) - len(expected))


@settings(max_examples=examples(100))
@given(tracks=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.floats(width=32)), max_size=4))
def test_tracks_have_the_digits_of_python(tracks):
    rows = [(0, 0, 0, 1, 1)] * len(tracks)
    ids, scores = [i for i, _ in tracks], [s for _, s in tracks]
    bare = objects(rows[:1])[0].removesuffix("}")
    for with_scores in (True, False):
        text, _ = objects(rows, ids, scores if with_scores else None)
        expected = []
        for number, score in tracks:
            members = "" if number == NONE else f',"object_id":{number}'
            if members and with_scores and math.isfinite(score):
                members += f',"tracker_confidence":{fixed(score, 6)}'
            expected.append(bare + members + "}")
        assert text == ",".join(expected)


def test_heads_and_tails_are_written_as_they_are():
    text, lost = objects(
        [(1, 2, 3, 4, 5), (0.5, math.nan, 0, 1, 1), (0.5, 0, 0, 1, 1)],
        heads={(0, 0): '{"label":"käse",'.encode(), (2, 2): b"{"},
        tails=[b',"text":"a"', b""],
    )
    assert lost == 1
    box = '"left":2.000,"top":3.000,"width":4.000,"height":5.000'
    assert text == (
        f'{{"label":"käse","confidence":1.000000,{box},"text":"a"}},'
        '{"confidence":0.500000,"left":0.000,"top":0.000,"width":1.000,"height":1.000}'
    )
    assert objects([]) == ("", 0)


@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00])
def test_a_rounding_mode_that_a_library_left_changes_no_digit(mode):
    rows = np.array([(2 / 3, 0.0625, 0.5295, 2.0005, 1 / 3)], np.float32)
    expected = objects(rows)
    libm = ctypes.CDLL("libm.so.6")
    libm.fesetround(mode)
    try:
        found = objects(rows)
    finally:
        libm.fesetround(0)
    assert found == expected
