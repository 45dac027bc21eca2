"""Names of URLs never show credentials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.text import quoted
from headrace._core.urls import url_name, without_secrets

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
