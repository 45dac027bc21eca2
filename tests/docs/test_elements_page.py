"""Every name in the table of elements is there, on its road."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace
from docs._ext import elements
from headrace.config.app.keys import APP_GROUPS
from headrace.config.pipeline_keys import SECTIONS, TOP_KEYS
from headrace.gstreamer.elements.register import ELEMENTS

GROUPS = {group.name: group for group in APP_GROUPS}
NOT = re.compile(r"not: .{5,}")


def cells(column: int) -> list[tuple[str, str]]:
    return [
        (row.part, name) for row in elements.ELEMENTS for name in
        ([row[column]] if NOT.fullmatch(row[column]) else row[column].split())
    ]  # fmt: skip


@pytest.mark.parametrize(("part", "name"), cells(1))
def test_groups_act(part: str, name: str) -> None:
    if not NOT.fullmatch(name):
        assert "applied" in GROUPS[name.strip("[]")].states().values(), part


@pytest.mark.parametrize(("part", "name"), cells(2))
def test_keys_of_pipeline_files(part: str, name: str) -> None:
    section, _, key = name.partition(".")
    if NOT.fullmatch(name) or section in TOP_KEYS:
        return
    assert not key or key in SECTIONS[section].keys, part


@pytest.mark.parametrize(("part", "name"), cells(3))
def test_names_of_python(part: str, name: str) -> None:
    if NOT.fullmatch(name):
        return
    found: object = headrace
    for word in name.split("."):
        found = getattr(found, word)
    assert callable(found), part


@pytest.mark.parametrize(("part", "name"), cells(4))
def test_elements_of_gstreamer(part: str, name: str) -> None:
    if not NOT.fullmatch(name):
        assert name in ELEMENTS, part
        assert ELEMENTS[name][0] != "passing", "it changes nothing"


def test_every_group_that_acts_is_in_the_table() -> None:
    """Those of whole pipelines and of tests are no elements."""
    named = {row.group.strip("[]") for row in elements.ELEMENTS}
    acting = {g.name for g in APP_GROUPS if "applied" in g.states().values() and g.reason is None}
    assert acting - named - {"source-attr-all", "source", "tests"} == set()


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "elements.md"
    assert page.read_text("utf-8") == elements.page(), "make schema writes it"
