"""Runs on a GPU have few different numbers of rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.infer.gpu.run_size import _PATIENCE, RunSize


@given(st.integers(1, 48), st.lists(st.integers(1, 48), max_size=80))
def test_rows_hold_the_items_and_are_powers_of_two(most: int, counts: list[int]) -> None:
    size = RunSize(most)
    before = 0
    for count in (c for c in counts if c <= most):
        rows = size.rows(count)
        assert count <= rows <= most
        assert rows == most or rows.bit_count() == 1
        assert rows >= before  # so few runs shrink nothing
        before = rows


def test_changing_counts_have_one_size() -> None:
    size = RunSize(32)
    assert [size.rows(n) for n in (32, 8, 31, 32, 1, 8)] == [32] * 6


def test_it_shrinks_when_many_runs_were_small() -> None:
    size = RunSize(32)
    assert size.rows(30) == 32
    small = [size.rows(3) for _ in range(_PATIENCE)]
    assert small[-2:] == [32, 4]
    assert [size.rows(4), size.rows(5), size.rows(1)] == [4, 8, 8]


def test_one_larger_run_among_many_keeps_the_size() -> None:
    size = RunSize(32)
    size.rows(32)
    found = {size.rows(20 if i % 100 == 0 else 2) for i in range(5 * _PATIENCE)}
    assert found == {32}


def test_rows_that_are_kept_grow_and_do_not_shrink() -> None:
    size = RunSize(32)
    assert size.keep(5) == 8
    assert {size.rows(1) for _ in range(2 * _PATIENCE)} == {8}
    assert [size.rows(9), size.rows(1)] == [16, 16]
    assert RunSize(32).keep(64) == 32
