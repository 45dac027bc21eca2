"""docs/guard.md says where a library runs; the code decides so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.custom.guard import keeper
from headrace.custom.library import GuardMode, is_guarded

PAGE = Path(__file__).parents[2] / "docs" / "guard.md"
ROWS = re.findall(
    r"^\| `(auto|always|never)`.*? \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.M
)


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no worker processes here")
@pytest.mark.parametrize(("mode", "library", "module"), ROWS, ids=[row[0] for row in ROWS])
def test_a_library_runs_where_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: GuardMode, library: str, module: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for cell, name in ((library, "lib.so"), (module, "lib.py")):
        path = tmp_path / name
        path.write_bytes(b"content")
        guarded, _ = is_guarded(path, name.endswith(".py"), mode)
        assert guarded == cell.startswith("in a worker")


def test_the_table_has_every_mode() -> None:
    assert [row[0] for row in ROWS] == ["auto", "always", "never"]
