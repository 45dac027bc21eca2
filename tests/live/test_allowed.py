"""Sources of requests are held against a list, and answers say nothing of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.live.allowed import AllowedSources, SourceRefusedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, a link out of it and a folder with links; a secret is beside it."""
    folder = tmp_path / "videos"
    (folder / "images").mkdir(parents=True)
    (folder / "a b.mp4").touch()
    (tmp_path / "videos2").mkdir()
    (tmp_path / "secret.mp4").touch()
    (folder / "out.mp4").symlink_to(tmp_path / "secret.mp4")
    (folder / "in.mp4").symlink_to(folder / "a b.mp4")
    (folder / "images" / "1.jpg").symlink_to(tmp_path / "secret.mp4")
    return folder


def test_files_of_the_folders_alone(folder: Path) -> None:
    allowed = AllowedSources([str(folder)])
    video = str(folder / "a b.mp4")
    for text in (video, f"file://{folder}/a%20b.mp4", f"{folder}/../videos/./a b.mp4"):
        assert allowed.checked(text) == video
    assert allowed.checked(str(folder / "in.mp4")) == video
    assert allowed.checked(str(folder / "none.mp4")) == str(folder / "none.mp4")
    for text in (
        folder / "out.mp4", folder.parent / "secret.mp4", folder / ".." / "secret.mp4",
        folder.parent / "videos2", f"file://{folder}/../secret.mp4", folder / "images",
        f"file://{folder}/%2e%2e/secret.mp4", "a\0b", "x" * 5000, "", "rtsp://gate/x", "camera:0",
        "/dev/video0", f"concat:{folder}/a b.mp4|/etc/passwd", f"subfile,,:{folder}/a b.mp4",
    ):  # fmt: skip
        with pytest.raises(SourceRefusedError):
            allowed.checked(str(text))


def test_schemes_and_hosts(folder: Path) -> None:
    allowed = AllowedSources(["rtsp:", "http://Gate.example:8080", "srt://10.0.0.7", "camera:"])
    for text in (
        "rtsp://any/x", "RTSP://me:word@any:99/x?y", "http://gate.example:8080/live",
        "http://me@GATE.example.:8080/live", "srt://10.0.0.7", "srt://10.0.0.7:9?mode=caller",
        "camera:0", "/dev/video1",
    ):  # fmt: skip
        assert allowed.checked(text) == text
    for text in (
        "http://gate.example/x", "http://gate.example:80/x", "https://gate.example:8080/x",
        "http://gate.example:8080@evil/x", "http://evil/@gate.example:8080/", "srt://10.0.0.70",
        "http://gate.example:8080\\@evil/x", "http://evil#@gate.example:8080/", "rtsps://any/x",
        "http://gate.example:8080 @evil/", str(folder / "a b.mp4"), "file:///etc/passwd",
        "rtsp://a@b@c/x", "rtsp://a\n/x",
    ):  # fmt: skip
        with pytest.raises(SourceRefusedError):
            allowed.checked(text)


def test_without_entries_all_are_allowed() -> None:
    assert AllowedSources().checked("/etc/passwd") == "/etc/passwd"


@pytest.mark.parametrize(
    "entry", ["nowhere", "", "rtsp//gate", "rtsp://a b", "http://a@b@c", "/x:"]
)
def test_entries_that_are_none(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadraceError, match="no place of sources"):
        AllowedSources([entry])
