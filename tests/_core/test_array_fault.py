"""What is wrong with a value that is no array of numbers, in words that no NumPy changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.array_fault import array_fault


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([[1, 2], [3]], "[1] has 1 entry, [0] has 2 entries"),
        ([[1], 2], "[1] is one value, [0] has 1 entry"),
        ([[1, 2], [3, "x"]], "[1][1] is of type str"),
        ([1, None], "[1] is None"),
        ({"a": 1}, "it is of type dict"),
        ("text", "it is of type str"),
        ([np.zeros(2), np.zeros(3)], "[1] has 3 entries, [0] has 2 entries"),
        (np.array(["a"]), "it is an array of <U1"),
        ([1j], "[0] is of type complex"),
    ],
)
def test_the_first_fault_is_named(value: Any, fault: str) -> None:
    assert array_fault(value) == fault


_leaves = st.none() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=2)


@given(st.recursive(_leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_what_numpy_refuses_has_a_fault(value: Any) -> None:
    try:
        refused = np.asarray(value).dtype.kind not in "fiub"
    except ValueError:
        refused = True
    if refused:
        assert array_fault(value)
