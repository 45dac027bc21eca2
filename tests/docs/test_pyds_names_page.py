"""docs/pyds-names.md lists the names of pyds, and the tests that use them."""

from __future__ import annotations

from pathlib import Path

from docs._ext import pyds_names

PAGE = Path(__file__).parents[2] / "docs" / "pyds-names.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == pyds_names.page(), "make schema"


def test_no_name_is_missing() -> None:
    assert [row.name for row in pyds_names.rows() if pyds_names.missing(row)] == []
