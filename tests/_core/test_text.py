"""Words of messages."""

from __future__ import annotations

import pytest

from headrace._core.text import counted, error_text, quoted, shortened


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "file", "0 files"),
        (1, "box", "1 box"),
        (2, "box", "2 boxes"),
        (2000, "class", "2,000 classes"),
    ],
)
def test_a_number_with_its_noun(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_a_long_text_is_cut_to_the_length_that_is_asked_for() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
    assert quoted("a" * 90) == "a" * 79 + "…"
    assert quoted("a\n\x1b" * 40, limit=None) == r"a\n\x1b" * 40


def test_an_exception_that_has_no_text_is_named_nevertheless() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(UnprintableError()) == (
        "UnprintableError: (its text cannot be had: __str__ raised RuntimeError)"
    )
    assert error_text(ValueError("too large\n")) == "ValueError: too large"
    assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"
