"""Folders of workers are removed, however they are built."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.custom.guard.leavings import clear
from tests.profiles import examples

TREES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.recursive(
        st.sampled_from(["file", "link", "pipe", "empty"]),
        lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    ),
    max_size=4,
)


def build(folder: Path, tree: dict[str, Any]) -> None:
    for name, what in tree.items():
        path = folder / name
        match what:
            case "file":
                path.write_text("x")
            case "link":
                path.symlink_to("..")
            case "pipe":
                os.mkfifo(path)
            case _:
                path.mkdir()
                build(path, what if isinstance(what, dict) else {})
                path.chmod(0o300)


def cleared(folder: Path) -> None:
    here = os.getcwd()
    try:
        clear(str(folder))
    finally:
        os.chdir(here)
    assert not folder.exists()


@settings(max_examples=examples(100))
@given(TREES)
def test_any_tree_is_removed_and_nothing_beside_it(tree: dict[str, Any]) -> None:
    with TemporaryDirectory() as name:
        folder, beside = Path(name, "folder"), Path(name, "beside")
        folder.mkdir()
        beside.write_text("x")
        build(folder, tree)
        cleared(folder)
        assert os.listdir(name) == ["beside"]


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    other, folder = tmp_path / "other", tmp_path / "folder"
    for path in (other, folder):
        path.mkdir()
    (other / "kept").write_text("x")
    (folder / "link").symlink_to(other)
    cleared(folder)
    assert (other / "kept").exists()


@pytest.mark.slow
def test_one_deeper_than_any_path(tmp_path: Path) -> None:
    here = os.getcwd()
    (tmp_path / "folder").mkdir()
    try:
        os.chdir(tmp_path / "folder")
        for _ in range(3000):
            os.mkdir("deep")
            os.chdir("deep")
    finally:
        os.chdir(here)
    cleared(tmp_path / "folder")
