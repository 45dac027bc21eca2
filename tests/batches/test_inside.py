"""A batch deletes and overwrites in its own folder alone, and its own results alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.batches.folder import BatchFolder
from headrace.batches.inside import move_inside, remove_inside
from headrace.batches.storage import StorageError
from headrace.errors import HeadraceError
from tests.batches.test_driver import NAMES, expected, rows, run


def _content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "name", ["objects", ".parts", "ledger.jsonl", "run.json", "manifest.parquet", "objects/run=run"]
)
def test_a_link_in_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Each led to the entry of another batch."""
    other, mine = tmp_path / "other", tmp_path / "mine"
    run(other, NAMES)
    (other / ".parts").mkdir(exist_ok=True)
    (other / ".parts" / "kept").write_text("kept")
    before = _content(other)
    (mine / "objects").mkdir(parents=True)
    (mine / "ledger.jsonl").touch()
    if (mine / name).exists():
        shutil.rmtree(mine / name) if (mine / name).is_dir() else (mine / name).unlink()
    (mine / name).symlink_to(other / name)
    with pytest.raises((StorageError, HeadraceError), match=r"is a link to|ledger"):
        run(mine, ["new"])
    assert _content(other) == before


def test_tables_of_other_runs_and_strange_files_stay(tmp_path: Path) -> None:
    run(tmp_path, NAMES)
    objects = tmp_path / "objects"
    (own,) = {path.parent.parent for path in objects.rglob("*.parquet")}
    kept = [
        objects / "run=0123456789ab" / "shard=a" / "a123456789abcdef.parquet",
        own / "shard=a" / "notes.parquet",
        own / "mine.parquet",
    ]
    leftover = own / "shard=a" / "a123456789abcdef.parquet"
    for path in (*kept, leftover):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    run(tmp_path, NAMES)
    assert all(path.exists() for path in kept)
    assert not leftover.exists()
    for path in kept:
        path.unlink()
    assert rows(tmp_path) == expected(NAMES)


def test_tables_without_their_ledger_are_not_removed(tmp_path: Path) -> None:
    run(tmp_path, NAMES)
    before = sorted(tmp_path.rglob("*.parquet"))
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(HeadraceError, match=r"ledger.jsonl is gone"):
        BatchFolder(tmp_path, "run")
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_a_file_that_is_no_ledger_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("expenses of March, without a line feed")
    with pytest.raises(HeadraceError, match="no line of a ledger"):
        BatchFolder(tmp_path, "run")
    assert (tmp_path / "ledger.jsonl").read_text().startswith("expenses")


def test_files_move_and_go_without_links_on_the_way(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    for folder in (root, elsewhere):
        folder.mkdir()
    (elsewhere / "x").write_text("theirs")
    (root / "a").symlink_to(elsewhere)
    for act in (
        lambda: move_inside(_file(tmp_path), root, "a/x"),
        lambda: remove_inside(root, "a/x"),
    ):
        with pytest.raises(StorageError, match="is a link to"):
            act()
    assert (elsewhere / "x").read_text() == "theirs"
    move_inside(_file(tmp_path), root, "b/c/x")
    assert (root / "b" / "c" / "x").read_text() == "mine"
    (root / "b" / "link").symlink_to(elsewhere / "x")
    move_inside(_file(tmp_path), root, "b/link")
    assert (root / "b" / "link").read_text() == "mine"
    remove_inside(root, "b/c/x")
    remove_inside(root, "b/none/x")
    assert (elsewhere / "x").read_text() == "theirs"


def _file(folder: Path) -> Path:
    path = folder / "content"
    path.write_text("mine")
    return path
