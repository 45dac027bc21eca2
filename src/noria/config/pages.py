"""Documentation pages of which a part is written by a program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def between(page: str, begin: str, end: str, text: str) -> str:
    """The page with `text` between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"no {begin} ... {end} in the page")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"


def bring_up_to_date(names: Iterable[str], begin: str, end: str, text: str) -> None:
    """Write `text` between the marks of the files."""
    for page in map(Path, names):
        page.write_text(between(page.read_text(encoding="utf-8"), begin, end, text), "utf-8")
