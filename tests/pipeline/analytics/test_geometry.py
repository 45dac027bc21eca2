from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.pipeline.analytics.geometry import crossing, is_inside, turn

NUMBER = st.one_of(st.integers(-20, 20).map(float), st.floats(-1e4, 1e4, allow_nan=False, width=32))
PLACE = st.tuples(NUMBER, NUMBER)
GRID = st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float))


def exact_turn(a, b, p):
    (x0, y0), (x1, y1), (x, y) = (tuple(map(Fraction, q)) for q in (a, b, p))
    value = (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
    return (value > 0) - (value < 0)


@given(a=PLACE, b=PLACE, p=PLACE)
def test_the_side_is_exact(a, b, p):
    assert turn(a, b, p) == exact_turn(a, b, p) == -turn(b, a, p)


def test_the_side_of_places_that_floats_hardly_tell_apart():
    # 0.1 + 0.2 is above 0.3 by one bit: rounded products call these three one line
    a, b, p = (0.0, 0.0), (3.0, 0.1 + 0.2), (1.0, 0.1)
    assert turn(a, b, p) == exact_turn(a, b, p) != 0


@given(p=GRID, xs=st.lists(st.integers(0, 6), min_size=2, max_size=4, unique=True))
def test_a_place_lies_in_one_of_the_regions_that_share_edges(p, xs):
    """Strips side by side, cut through in the middle: every place within is in exactly one."""
    xs = sorted(xs)
    parts = []
    for left, right in pairwise(xs):
        corners = [(left, 0.0), (right, 0.0), (right, 6.0), (left, 6.0)]
        parts.append([corners[0], corners[1], corners[2]])  # two triangles
        parts.append([corners[0], corners[2], corners[3]])
    within = xs[0] <= p[0] < xs[-1] and 0 <= p[1] < 6
    assert sum(is_inside(part, p) for part in parts) == within


@given(corners=st.lists(GRID, min_size=3, max_size=6), p=PLACE, first=st.integers(0, 5))
def test_the_first_corner_and_the_direction_do_not_matter(corners, p, first):
    first %= len(corners)
    turned = corners[first:] + corners[:first]
    assert is_inside(corners, p) == is_inside(turned, p) == is_inside(corners[::-1], p)


@given(a=GRID, b=GRID, way=st.lists(GRID, min_size=2, max_size=12))
def test_a_way_that_ends_on_its_first_side_crosses_as_often_each_way(a, b, way):
    """Steps from side to side alternate, so their sum is the change of side."""
    if a == b:
        return
    signs = [crossing(a, b, p, q, extended=True) for p, q in pairwise(way)]
    assert sum(signs) == (turn(a, b, way[-1]) >= 0) - (turn(a, b, way[0]) >= 0)
    nonzero = [s for s in signs if s]
    assert all(s != t for s, t in pairwise(nonzero))


@given(joint=GRID, a=GRID, b=GRID, p=GRID, q=GRID)
def test_a_step_through_a_joint_crosses_one_of_two_segments(joint, a, b, p, q):
    """Two segments of a line that goes on: a step between its sides crosses exactly one of them."""
    sides = turn(p, q, a), turn(p, q, b)
    straight = turn(a, b, joint) == 0 and turn(p, q, joint) == 0
    if not straight or 0 in sides or sides[0] == sides[1] or joint in (a, b):
        return
    found = [crossing(*segment, p, q, extended=False) for segment in ((a, joint), (joint, b))]
    whole = crossing(a, b, p, q, extended=False)
    assert sorted(map(abs, found)) == [0, abs(whole)]


@pytest.mark.parametrize(
    ("before", "after", "sign"),
    [
        ((5, 9), (5, 1), -1),
        ((5, 1), (5, 9), 1),
        ((5, 1), (5, 5), 1),  # on the line is its right side
        ((5, 5), (5, 9), 0),
        ((5, 5), (5, 1), -1),
        ((11, 1), (11, 9), 0),  # beyond its end
        ((5, 1), (6, 1), 0),
        ((5, 5), (5, 5), 0),
    ],
)
def test_crossing(before, after, sign):
    assert crossing((0, 5), (10, 5), before, after, extended=False) == sign


def test_an_extended_line_has_no_ends():
    assert crossing((0, 5), (10, 5), (11, 1), (11, 9), extended=True) == 1
