"""The page on C applications: its sizes are those of the table."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.gstreamer.cmeta.layout import GENERATIONS, struct_rows

PAGE = Path(__file__).parents[2] / "docs" / "c-applications.md"


def test_sizes_of_structures_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 10
    for name, *sizes in rows:
        known = struct_rows()[name].sizes
        assert [int(size) for size in sizes] == [known[g] for g in GENERATIONS], name


def test_libraries_of_the_page_are_installed() -> None:
    from headrace.custom.compile.toolchain import link_dir

    named = set(re.findall(r"`(libnv\w+\.so)`", PAGE.read_text()))
    assert named == {path.name for path in (link_dir() / "run").iterdir()}
