"""Pages that scripts write from the code are up to date, and complete."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import headrace
from docs._ext import api_pages, command_options, rooms, versions, words
from headrace.cli import _COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_page_of_a_command_describes_all_its_options(name: str) -> None:
    page = (DOCS / "cli" / f"{name}.md").read_text("utf-8")
    assert page == command_options.command_page(name, page), "make schema"


@pytest.mark.parametrize(("name", "text"), api_pages.pages().items())
def test_a_page_of_a_package_is_up_to_date(name: str, text: str) -> None:
    assert (DOCS / "api" / name).read_text("utf-8") == text, "make schema"


def test_the_table_of_rooms_is_up_to_date() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    assert page == rooms.rewritten(page), "make schema"


def test_every_public_name_has_an_entry() -> None:
    reference = (DOCS / "reference.md").read_text("utf-8")
    for face in api_pages.FACES:
        page = (DOCS / "api" / f"{api_pages.page_name(face)}.md").read_text("utf-8")
        names = pkgutil.resolve_name(face).__all__
        missing = [n for n in names if not re.search(rf"[`.]{n}(?=[`\s])", page)]
        assert missing == [], face
    whole = {n for n in headrace.__all__ if n in vars(headrace.errors)}  # by automodule
    own = {n for n in headrace.__all__ if not inspect.ismodule(getattr(headrace, n))} - whole
    assert {n for n in own if not re.search(rf"headrace\.(\w+\.)*{n}\b", reference)} == set()


def test_every_package_with_public_names_has_a_page() -> None:
    packages = [
        f"headrace.{module.name}"
        for module in pkgutil.iter_modules(headrace.__path__)
        if module.ispkg and not module.name.startswith("_")
    ]
    public = {name for name in packages if getattr(pkgutil.resolve_name(name), "__all__", ())}
    assert public - set(api_pages.FACES) == {"headrace.cli"}


def test_the_pages_are_no_longer_than_a_reader_can_bear() -> None:
    assert sum(words.by_page().values()) <= words.LIMIT


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("two words\n", 2),
        ("---\nsearch: not counted\n---\n\none\n", 1),
        ("one\n\n```sh\nnot these\n```\n\n    nor these\n\ntwo\n", 2),
        ("| a | b |\n|---|---|\n| c | d |\n", 4),
        ("one\n<!-- options: written by make schema -->\n\nnot these\n", 1),
        ("one\n<!-- heads -->\nnot these\n<!-- /heads -->\ntwo\n", 2),
    ],
)
def test_words_that_people_wrote_are_counted(text: str, count: int) -> None:
    assert words.words(text) == count


def test_versions_lie_beside_each_other(tmp_path: Path) -> None:
    html = tmp_path / "html"
    html.mkdir()
    for name in ("index.html", "404.html", "searchindex.js"):
        (html / name).write_text(name)
    site = tmp_path / "site"
    assert versions.add(html, site, "0.9.0") == ["0.9.0"]
    assert versions.add(html, site, "0.10.0rc1") == ["0.10.0rc1", "0.9.0"]
    assert 'url=0.9.0/"' in (site / "index.html").read_text()
    assert versions.add(html, site, "0.10.0") == ["0.10.0", "0.10.0rc1", "0.9.0"]
    assert 'url=0.10.0/"' in (site / "index.html").read_text()
    (html / "new.html").write_text("")
    versions.add(html, site, "0.9.0")
    assert (site / "0.9.0" / "new.html").exists()
    with pytest.raises(ValueError, match="version"):
        versions.add(html, site, "../elsewhere")
