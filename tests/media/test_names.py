"""Patterns match files; errors say what a file is."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.media.names import matching_files, nearest_file, sniff


def test_sniff(tmp_path: Path) -> None:
    def what(data: bytes) -> str:
        path = tmp_path / "x"
        path.write_bytes(data)
        return sniff(path)

    assert what(b"") == "empty (0 bytes)"
    assert what(b"hello\nworld") == what(b"  ") == "text"
    assert what("é".encode() * 300) == "text"  # the head ends inside a character
    assert "git lfs pull" in what(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert what(b"\n<!DOCTYPE html><html>") == "an HTML page"
    assert what(b"\x89PNG\r\n\x1a\n123") == "a PNG image"
    assert what(b"\x00\x01\x02\xff" * 9) == "36 bytes of unknown content"
    box = (16).to_bytes(4, "big") + b"ftyp" + bytes(8)
    assert "without its index (moov)" in what(box + (99).to_bytes(4, "big") + b"mdat" + bytes(20))
    assert "cut off in its index" in what(box + (99).to_bytes(4, "big") + b"moov" + bytes(20))
    assert sniff(tmp_path) == "a folder"
    assert "unreadable" in sniff(tmp_path / "none")


@given(data=st.binary(max_size=64))
def test_sniff_never_fails(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("s") / "x"
    path.write_bytes(data)
    assert sniff(path)


def test_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "car-detection.mp4").touch()
    assert nearest_file(tmp_path / "car-detecton.mp4") == str(tmp_path / "car-detection.mp4")
    assert nearest_file(tmp_path / "qqq") is None
    assert nearest_file(tmp_path / "no" / "such") is None


def test_patterns_match_as_in_a_shell_and_links_in_circles_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [
        "a.mp4",
        "b.txt",
        "in/c.mp4",
        "in/deep/d.mp4",
        ".hidden/e.mp4",
        "in/.f.mp4",
        "x[1].mp4",
    ]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "folder.mp4").mkdir()
    wanted = {
        pattern: sorted(p for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
        for pattern in ("*.mp4", "**/*.mp4", "in/**/*.mp4", "in/**", "**/deep/*", "i**/*", "**",
                        "**/in/**/*.mp4", str(tmp_path / "**" / "*.mp4"), "x[[]1].mp4", "none/**")
    }  # fmt: skip
    for circle in ("one", "two", "in/three"):
        (tmp_path / circle).symlink_to(tmp_path, target_is_directory=True)
    for pattern, found in wanted.items():
        assert sorted(set(matching_files(pattern))) == found
