"""Answers of the emulated program, as a user's code may have changed them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.custom.emulated.messages import Body, NonsenseError, Reader


@pytest.mark.parametrize("data", [b"", b"\1", Body().text("abc").data()[:-1]])
def test_a_text_that_ends_early_is_refused(data: bytes) -> None:
    with pytest.raises(NonsenseError):
        Reader(data).text()


@given(st.lists(st.text(), max_size=4), st.lists(st.integers(0, 2**32 - 1), max_size=4))
def test_what_is_written_is_read(texts: list[str], numbers: list[int]) -> None:
    reader = Reader(Body().text(*texts).add(f"{len(numbers)}I", *numbers).data())
    assert [reader.text() for _ in texts] == texts
    assert list(reader.numbers(f"{len(numbers)}I")) == numbers
    assert reader.left == 0
