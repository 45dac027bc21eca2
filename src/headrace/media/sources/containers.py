"""Containers of video, opened by FFmpeg with the protocols and formats of their kind of source.

Left alone, FFmpeg takes any content for a playlist that looks like one, and opens what stands in
it: files of this machine, and addresses that only this machine reaches.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import av

from headrace._core.urls import url_name, url_scheme
from headrace.binary.regular_files import open_regular
from headrace.media.sources.feed import Feed
from headrace.media.sources.playlists import HLS_HEAD, FilesBeside, PlaylistReach, refused

# Formats whose demuxers open what stands in the content.
_REFERRING = {"hls", "concat", "dash", "imf", "sdp", "sap", "webm_dash_manifest", "vobsub"}
_FILES = "file,crypto,data"
_WEB = "http,https,httpproxy,tls,tcp"
_PROTOCOLS = {
    "http": "http,tcp",
    "https": "https,httpproxy,tls,tcp",
    "rtsp": "rtsp,rtp,srtp,udp,tcp",
    "rtsps": "rtsps,rtsp,rtp,srtp,udp,tls,tcp",
    "rtmp": "rtmp,tcp",
    "rtmps": "rtmps,tls,tcp",
    "rtp": "rtp,udp",
}
_LEADING = ("rtsp", "rtsps", "rtmp", "rtmps")  # protocols that redirect without an option
_NOTHING = "none"  # no protocol has this name
# FFmpeg would reuse connections that are not its own.
_OWN_CONNECTIONS = {"http_persistent": "0", "http_multiple": "0"}


def open_file(path: Path, reach: PlaylistReach = "public", **more: Any) -> Any:
    """Open a video file.

    Args:
        path: the file.
        reach: what a playlist may open; see `open_source`.
        more: arguments of `av.open`.

    Raises:
        MediaError: it is a playlist that opens what it may not.
        av.error.FFmpegError, OSError, ValueError: it cannot be opened.
    """
    name = f"file:{path}"  # a colon in a plain name would be taken for a protocol
    if reach == "any":
        return av.open(name, options={"protocol_whitelist": f"{_FILES},{_WEB}"}, **more)
    try:
        return av.open(name, options=closed_options("file"), **more)
    except av.error.ArgumentError:  # the format is not on the list
        head = _head(path)
        if head.startswith(HLS_HEAD):
            return _open_hls(name, FilesBeside(path), more)
        if head.startswith(b"ffconcat version"):
            raise refused("it is a list of files for FFmpeg", str(path)) from None
        raise


def open_url(
    url: str,
    timeout_s: float,
    feed: Feed,
    *,
    format: str | None = None,
    options: Mapping[str, str],
    reach: PlaylistReach = "public",
    **more: Any,
) -> Any:
    """Open a stream or device; blocks for up to `timeout_s` seconds at a time.

    Raises:
        MediaError: it is a playlist that opens what it may not.
        av.error.FFmpegError, OSError, ValueError: it cannot be opened.
    """
    scheme = url_scheme(url) or ""
    known = dict(options)
    if reach != "any":
        known = closed_options(scheme) | known
    opened = partial(av.open, url, format=format, options=known, timeout=(timeout_s, None), **more)
    if scheme in _LEADING and reach != "any":
        return _open_led(url, reach, feed, opened)
    try:
        return opened()
    except (av.error.ArgumentError, OSError) as error:
        # The format is not on the list, or the server refers to another place.
        refers = isinstance(error, av.error.ArgumentError) or error.errno == errno.EIO
        if not refers or scheme not in ("http", "https") or reach == "any":
            raise
        from headrace.media.sources.playlist_http import WebFiles

        files = WebFiles(url, reach, options, timeout_s, feed)
        final, head = files.resolved()
        if head.startswith(HLS_HEAD):
            return _open_hls(final, files, more)
        if final == url:
            raise
    return av.open(final, io_open=files, options=closed_options(_NOTHING), **more)


def _open_led(url: str, reach: PlaylistReach, feed: Feed, opened: Callable[[], Any]) -> Any:
    """Open a stream of a protocol that follows redirects.

    Raises:
        MediaError: it names one that may not be reached.
    """
    from headrace.media.sources.reach import ConnectionRule

    rule = ConnectionRule(url, reach)
    rule.hold(feed)
    try:
        return opened()
    except (av.error.FFmpegError, OSError, ValueError):
        if not rule.refused:
            raise
        problem = f"it leads to {rule.refused}, an address that you did not name"
    raise refused(problem, url_name(url))


def closed_options(scheme: str) -> dict[str, str]:
    """Options by which FFmpeg opens an address, and no other that stands in its content."""
    protocols = _PROTOCOLS.get(scheme, scheme or _NOTHING)
    closed = {"protocol_whitelist": protocols, "format_whitelist": _formats()}
    return closed | ({"max_redirects": "0"} if scheme in ("http", "https") else {})


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(64)
    except (OSError, ValueError):
        return b""


@cache
def _formats() -> str:
    return ",".join(sorted(av.formats_available - _REFERRING))


def _open_hls(name: str, files: Any, more: Mapping[str, Any]) -> Any:
    return av.open(name, format="hls", io_open=files, options=_OWN_CONNECTIONS, **more)
