"""Layers, order and places of a graph's nodes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.pages.layering import arranged, layers_of

LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


def test_a_late_source_stands_right_above_what_it_leads_to() -> None:
    links = [("a", "b"), ("b", "c"), ("c", "d"), ("late", "d")]
    assert layers_of(["a", "b", "c", "d", "late"], links) == {
        "a": 0, "b": 1, "c": 2, "d": 3, "late": 2,
    }  # fmt: skip


@given(LINKS)
def test_links_go_down_where_there_is_no_circle(links: list[tuple[int, int]]) -> None:
    down = [(one, other) for one, other in links if one < other]
    layer = layers_of(range(10), down)
    assert all(layer[one] < layer[other] for one, other in down)


@given(LINKS)
def test_a_circle_ends(links: list[tuple[int, int]]) -> None:
    assert set(layers_of(range(10), links)) == set(range(10))


def test_a_long_chain_needs_no_deep_stack() -> None:
    layer = layers_of(range(5000), [(n, n + 1) for n in range(4999)])
    assert layer[4999] == 4999


def test_what_four_lead_to_stands_below_their_middle() -> None:
    rows = [["a", "b", "c", "d"], ["mux"]]
    widths = dict.fromkeys("abcd", 100.0) | {"mux": 60.0}
    middles = arranged(rows, [(n, "mux") for n in "abcd"], widths, 20)
    assert [middles[n] for n in "abcd"] == [50, 170, 290, 410]
    assert middles["mux"] == 230


def test_links_are_untangled() -> None:
    rows = [["a", "b"], ["x", "y"]]
    middles = arranged(rows, [("a", "y"), ("b", "x")], dict.fromkeys("abxy", 10.0), 5)
    assert (middles["a"] < middles["b"]) == (middles["y"] < middles["x"])


@given(LINKS)
def test_neighbours_keep_their_distance(links: list[tuple[int, int]]) -> None:
    rows = [list(range(5)), list(range(5, 10))]
    down = [(one, other) for one, other in links if one < 5 <= other]
    middles = arranged(rows, down, dict.fromkeys(range(10), 8.0), 4)
    for row in rows:
        places = sorted(middles[node] for node in row)
        assert all(b - a >= 12 - 1e-6 for a, b in pairwise(places))
    assert min(middles.values()) == pytest.approx(4)
