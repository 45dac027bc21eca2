"""Optimisation profiles."""

from __future__ import annotations

import pytest

from headrace.trt.api.profile import Range

RANGE = Range((1, 3), (2, 3), (4, 3))


@pytest.mark.parametrize(
    ("shape", "held"),
    [((1, 3), True), ((4, 3), True), ((0, 3), False), ((5, 3), False), ((2, 4), False),
     ((2,), False), ((2, 3, 1), False)],
)  # fmt: skip
def test_a_profile_holds_the_shapes_between_its_ends(shape, held):
    assert RANGE.holds(shape) == held


@pytest.mark.parametrize(
    ("given", "problem"),
    [(RANGE, None), (Range((2,), (1,), (3,)), "does not hold"),
     (Range((1,), (4,), (3,)), "does not hold"), (Range((1, 1), (1,), (1,)), "as many axes")],
)  # fmt: skip
def test_a_profile_that_holds_nothing_says_why(given, problem):
    assert (given.problem is None) if problem is None else (problem in given.problem)
