"""The page docs/pyds-names.md: names of pyds 1.2.0, whether they are here, and their tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from headrace.gstreamer import pyds

FILE = Path(__file__).with_suffix(".txt")
"""Names of the bindings 1.2.0: enumerations with values, classes with fields, functions."""
ROOT = Path(__file__).parents[2]
ALL = "tests/gstreamer/pyds/test_pyds_names.py"
"""Holds every enumeration's values, and every field of every class."""
_HEAD = """# Names of pyds

Each name of NVIDIA's Python bindings 1.2.0 (DeepStream 7.1), whether Headrace has it, and the tests
that use it. `make schema` writes this page; [](gstreamer.md#pyds) says what they do.

"""


class Row(NamedTuple):
    """A name of the bindings.

    Attributes:
        kind: `enum`, `class` or `function`.
        name: as applications write it.
        parts: values (`NAME=number`) of an enumeration, fields and methods of a class.
    """

    kind: str
    name: str
    parts: tuple[str, ...] = ()


def rows() -> list[Row]:
    """Read the file of names."""
    names = []
    for line in FILE.read_text("utf-8").splitlines():
        owner, _, parts = line.partition(": ")
        kind, _, name = owner.partition(" ")
        if name:
            names.append(Row(kind, name, tuple(parts.split())))
        else:
            names += [Row("function", each) for each in parts.split()]
    return names


def missing(row: Row) -> list[str]:
    """List what of a name is not there: itself, or its parts."""
    owner = getattr(pyds, row.name, None)
    if owner is None:
        return [row.name]
    held = owner() if row.kind == "class" else owner
    wrong = []
    for part in row.parts:
        name, _, number = part.partition("=")
        if not hasattr(held, name) or (number and int(getattr(owner, name)) != int(number)):
            wrong.append(name)
    return wrong


@cache
def _words_of_tests() -> dict[str, set[str]]:
    """List the names in each file of tests."""
    return {
        str(path.relative_to(ROOT)): set(re.findall(r"\w+", path.read_text("utf-8")))
        for path in sorted((ROOT / "tests" / "gstreamer").rglob("test_*.py"))
    }


def files_of_tests(row: Row) -> list[str]:
    """List the files of tests that use a name, the nearest first."""
    paths = [path for path, words in _words_of_tests().items() if row.name in words]
    whole = [] if row.kind == "function" or ALL in paths else [ALL]
    return sorted(paths, key=lambda path: ("/pyds/" not in path, path)) + whole


def page() -> str:
    """Write the page."""
    lines = []
    for kind, title in (("enum", "Enumerations"), ("class", "Classes"), ("function", "Functions")):
        lines += [f"## {title}", "", "| name | here | tested by |", "|---|---|---|"]
        for row in rows():
            if row.kind == kind:
                absent = missing(row)
                count = f", {len(row.parts)} values" if kind == "enum" else ""
                here = f"without {', '.join(absent)}" if absent else f"yes{count}"
                lines.append(f"| `{row.name}` | {here} | `{files_of_tests(row)[0]}` |")
        lines.append("")
    return _HEAD + "\n".join(lines)
