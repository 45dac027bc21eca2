"""Limits of HLS playlists: their length, and for one in a file the folder that it lies in."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Literal
from urllib.parse import urljoin

from headrace._core.errors import MediaError
from headrace._core.urls import without_secrets

PlaylistReach = Literal["same", "public", "any"]
"""Reach of a playlist: the place it came from, public addresses, too, or anything."""

HLS_HEAD = b"#EXTM3U"

MAX_PLAYLIST_BYTES = 4 << 20
"""Bytes of one playlist: one of a day in segments of 2 s has 2 to 3 MB."""

MAX_SEGMENT_BYTES = 64 << 20
"""Bytes that the addresses of a playlist have together, each in full, as FFmpeg holds them."""

MAX_PLAYLISTS = 100
"""Playlists that one names: qualities, languages."""

MAX_WAIT_S = 60
"""Seconds of a segment of a playlist that still grows: FFmpeg waits so long, and hears nothing."""

_DURATION = re.compile(rb"^#(?:EXTINF|EXT-X-TARGETDURATION):(.*)$", re.M)
_SECONDS = re.compile(rb"\s*(\d{1,2})(?:\.\d*)?\s*(?:,|$)")
_NAMED = re.compile(rb"^#EXT-X-(?:STREAM-INF|MEDIA|I-FRAME-STREAM-INF):", re.M)
_KEY = re.compile(rb"^#EXT-X-(?:SESSION-)?KEY:(?!METHOD=NONE\b)", re.M)
_URI = re.compile(r'(?<=URI=")[^"]*')


def refused(problem: str, where: str) -> MediaError:
    """Make the error of a playlist that leads where it may not."""
    return MediaError(
        problem,
        where=where,
        expected="video, or a playlist or server that stays within `playlist_reach`",
        fix="if you trust it: open_source(…, playlist_reach='any'), or `playlist-reach: any` of"
        " the source in a pipeline file",
        code="playlist-refused",
    )


def checked_playlist(text: bytes, address: str, *, inner: bool) -> bytes:
    """Return a playlist that is not too long, and leads to an end.

    Args:
        text: of the playlist, or its first `MAX_PLAYLIST_BYTES` and one more.
        address: where it came from.
        inner: another playlist names it. Then it names segments (RFC 8216, 4.3.4): FFmpeg follows
            playlists that name each other for ever.

    Raises:
        MediaError: it is too long, names too many others, or any though it is an inner one; or its
            segments are encrypted.
    """
    where = without_secrets(address)
    try:
        text.decode()
    except UnicodeDecodeError:
        if len(text) <= MAX_PLAYLIST_BYTES:
            raise MediaError(
                "the playlist is no text", where=where, expected="UTF-8", code="playlist-refused"
            ) from None
    lines = text.count(b"\n") + text.count(b"\r") + 1
    if len(text) > MAX_PLAYLIST_BYTES or len(text) + lines * len(address) > MAX_SEGMENT_BYTES:
        raise MediaError(
            "the playlist is too long",
            where=where,
            expected=f"at most {MAX_PLAYLIST_BYTES >> 20} MiB",
            code="playlist-refused",
        )
    if len(_NAMED.findall(text)) > (most := 0 if inner else MAX_PLAYLISTS):
        raise MediaError(
            "the playlist names too many others",
            where=where,
            expected="segments: another playlist names it" if inner else f"at most {most}",
            code="playlist-refused",
        )
    grows = b"#EXT-X-ENDLIST" not in text
    for value in _DURATION.findall(text) if grows else ():
        match = _SECONDS.match(value)
        if match is None or int(match[1]) > MAX_WAIT_S:
            raise MediaError(
                f"a playlist that still grows has a segment of {value[:20]!r} seconds",
                where=where,
                expected=f"at most {MAX_WAIT_S}",
                code="playlist-refused",
            )
    if _KEY.search(text):
        # FFmpeg decrypts what it opens itself, unchecked.
        raise refused("the playlist's segments are encrypted, and cannot be checked", where)
    return text


def moved_playlist(text: bytes, address: str) -> bytes:
    """Write the addresses in a playlist in full, as it came from another place than was asked.

    Args:
        text: of the playlist.
        address: where it came from in the end.
    """
    lines = []
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("#"):
            lines.append(_URI.sub(lambda match: urljoin(address, match[0]), line))
        else:
            lines.append(urljoin(address, line) if line.strip() else line)
    return "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"


class FilesBeside:
    """Opens files of a folder and below for FFmpeg: (URL, flags, options) -> file.

    Args:
        path: the playlist in the folder.
    """

    def __init__(self, path: Path) -> None:
        self._refused = self._begun = False
        self._name = str(path)
        self._folder = Path(os.path.realpath(path)).parent

    def __call__(self, url: str, flags: int, options: Mapping[str, str]) -> IO[bytes]:
        """Open a file to read; an empty one after the first that is refused.

        PyAV raises one error, and prints others.

        Raises:
            MediaError: it lies elsewhere, or is no file.
        """
        if self._refused:
            return io.BytesIO()
        self._refused = True
        file = self._opened(url)
        self._refused = False
        return file

    def _opened(self, url: str) -> IO[bytes]:
        name = url.removeprefix("file:")
        path = Path(os.path.realpath(name))
        if "://" in name or name.startswith("data:") or not path.is_relative_to(self._folder):
            raise refused(
                f"the playlist names {without_secrets(url)[:200]!r}, which does not lie beside it",
                self._name,
            )
        try:
            if not path.is_file():
                raise MediaError(
                    f"the playlist names {path.name!r}, which is no file", where=self._name
                )
            file = path.open("rb")
        except OSError as error:
            raise MediaError(
                f"a file of the playlist cannot be opened: {error.strerror}", where=self._name
            ) from error
        if file.read(len(HLS_HEAD)) == HLS_HEAD:
            with file:
                file.seek(0)
                text = file.read(MAX_PLAYLIST_BYTES + 1)
            inner, self._begun = self._begun, True
            return io.BytesIO(checked_playlist(text, url, inner=inner))
        file.seek(0)
        return file
