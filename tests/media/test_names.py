"""Names never show credentials; errors say what a file is."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.text import error_text, quoted, url_name, without_secrets
from headrace.media.names import matching_files, nearest_file, sniff

secrets = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=12)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("rtsp://host:554/live/1", "rtsp://host:554/live/1"),
        ("rtsp://me:pw@host:554/live", "rtsp://host:554/live"),
        ("RTSP://me@host/live", "RTSP://host/live"),
        ("http://host/a.m3u8?token=abc", "http://host/a.m3u8"),
        ("rtsp://me:p/w@host/x", "rtsp://host/x"),
        ("rtsp://me:p?w#@host/x", "rtsp://host/x"),
        ("rtsp://10.0.0.1/user=admin_password=tlJwpbo6_channel=1.sdp", None),
        ("rtsp://host/user=admin&password=hunter2&channel=1", None),
        ("clip.mp4", "clip.mp4"),
        ("rtmp://host/live/hunter2", "rtmp://host/live/…"),
        ("rtmps://host:443/app/room/hunter2", "rtmps://host:443/app/room/…"),
        ("rtmp://host/live", "rtmp://host/live"),
    ],
)
def test_url_name(url: str, name: str | None) -> None:
    shown = url_name(url)
    if name is not None:
        assert shown == name
    for secret in ("pw", "tlJwpbo6", "hunter2", "abc", "p/w", "p?w"):
        assert secret not in shown or url == name


@given(user=st.sampled_from(("admin", "a.b", "")), start=secrets, end=secrets)
def test_no_part_of_a_password_is_shown(user: str, start: str, end: str) -> None:
    shown = url_name(f"rtsp://{user}:{start}SECRET{end}@camera:554/stream?also=SECRET")
    assert "SECRET" not in shown
    assert shown == "rtsp://camera:554/stream"


@pytest.mark.parametrize(
    "text",
    [
        "uri rtsp://bob:hunter2@host/live",
        "rtsp//bob:hunter2@host/live",
        "rtsp:/bob:hunter2@host",
        "rtps://bob:hunter2@host/live?x=1, and more",
        "rtsp:bob:hunter2@host",
        "push to rtmp://host/live/hunter2 or not",
        "rtmp:/host/live/hunter2",
        "rtmp//host:1935/live/room/hunter2: no such file",
        "RTMPS:host/live/hunter2",
        "bob:hun/ter2:hunter2@host/*.mp4",
    ],
)
def test_no_login_of_a_mistyped_address_is_shown(text: str) -> None:
    assert "hunter2" not in without_secrets(text)
    assert "hunter2" not in quoted(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "C:\\videos\\a.mp4",
        "me@home: x",
        "12:30",
        "key=a:b",
        "rtmp/a.mp4",
        "videos/rtmp_clip.mp4",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_an_exception_that_has_no_text_is_named_nevertheless() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(UnprintableError()) == (
        "UnprintableError: (its text cannot be had: __str__ raised RuntimeError)"
    )
    assert error_text(ValueError("too large\n")) == "ValueError: too large"
    assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_sniff(tmp_path: Path) -> None:
    def what(data: bytes) -> str:
        path = tmp_path / "x"
        path.write_bytes(data)
        return sniff(path)

    assert what(b"") == "empty (0 bytes)"
    assert what(b"hello\nworld") == "text (it starts 'hello')"
    assert "é" in what("é".encode() * 300)  # the head ends inside a character
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
