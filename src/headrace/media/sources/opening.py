"""Opening sources: a path, pattern, URL or camera; one image of any of them."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from headrace._core.errors import MediaError
from headrace._core.files import os_errors
from headrace._core.findings import Finding
from headrace._core.near import did_you_mean
from headrace._core.notices import warn_of
from headrace._core.storages import BUCKETS
from headrace._core.text import counted
from headrace._core.urls import url_name, url_scheme, without_secrets
from headrace.config.paths import is_live
from headrace.media import sources
from headrace.media.frame import Frame
from headrace.media.names import IMAGE_SUFFIXES, matching_files, natural_key, nearest_file
from headrace.media.pixel_format import PixelFormat
from headrace.media.sources.arrays import ArraySource
from headrace.media.sources.base import Source
from headrace.media.sources.decoded import Decoding
from headrace.media.sources.feed import GRACE_S
from headrace.media.sources.playlists import PlaylistReach
from headrace.media.sources.reconnect import ReconnectPolicy
from headrace.media.sources.video import VideoSource

_CAMERA = re.compile(r"(?:camera:|/dev/video)(\d+)")
_DEFAULT_RECONNECT = ReconnectPolicy()


def open_source(
    url: str | os.PathLike[str] | int,
    *,
    source_id: int = 0,
    threads: int | None = None,
    fps: float | None = None,
    live: bool | None = None,
    timeout_s: float = 10.0,
    reconnect: ReconnectPolicy | None = _DEFAULT_RECONNECT,
    transport: Literal["tcp", "udp"] = "tcp",
    latency_s: float | None = None,
    options: Mapping[str, str] | None = None,
    gpu: int | None = None,
    playlist_reach: PlaylistReach = "public",
    key_frames_only: bool = False,
    low_delay: bool = False,
    renumber: bool = False,
) -> Source:
    """Open a video file, image, folder or pattern of images, stream or camera.

    Args:
        url: a path; a folder or glob pattern of images; an `rtsp://`, `http://` … URL;
            `camera:0`, `/dev/video0` or the number 0.
        source_id: number of the source, copied into its frames.
        threads: decoder threads; None means 2.
        fps: rate at which images follow each other, or of video without time stamps.
        live: whether frames of a stream come in real time, so that they cannot wait and the
            connection is made again when it is lost; None: RTSP, RTMP, SRT, UDP, RTP, TCP and
            cameras do, HTTP does not.
        timeout_s: for streams, cameras and pipes: how long to wait for an answer or the next
            packet before it counts as lost.
        reconnect: how a live stream comes back after a loss; None: it ends there, with a notice.
        transport: what carries RTSP.
        latency_s: for RTSP over UDP: how long packets may wait for earlier ones; None means 0.1.
        options: further options of FFmpeg's protocol and demuxer for streams and cameras.
        gpu: number of the NVIDIA GPU that decodes videos and streams, as far as it can; their
            images stay there until somebody reads them. None: the CPU decodes.
        playlist_reach: what an HLS playlist, or a server that redirects, may open: "same": the
            host of `url`, or the files beside a file; "public": also public addresses of the web,
            for a file as before; "any": whatever FFmpeg opens, inner addresses and local files
            with it, and lists of other formats.
        key_frames_only: videos and streams are decoded at their key frames alone.
        low_delay: the decoder gives each image at once, without waiting for later ones; right for
            streams whose images need earlier ones alone.
        renumber: frame numbers of a live stream begin at 0 when it comes back after a loss.

    Returns:
        The source; nothing is decoded yet. A named pipe is opened when it is read.

    Raises:
        MediaError: there is no such thing, or it is not an image or video. The message says what
            was found there. Credentials in a URL appear nowhere.
        ValueError: `timeout_s` is not above 0, or there is no such `playlist_reach`.
    """
    if playlist_reach not in get_args(PlaylistReach):
        raise ValueError(f"playlist_reach={playlist_reach!r}: must be same, public or any")
    if not timeout_s > 0:
        raise ValueError(f"timeout_s={timeout_s}: must be above 0")
    url = f"camera:{url}" if isinstance(url, int) else os.fspath(url)
    if not url:
        raise MediaError("the source is empty", expected="a path, a pattern, a URL or camera:N")
    decoding: dict[str, Any] = {"source_id": source_id, "threads": threads, "fps": fps}
    left_out = Decoding(key_frames_only, low_delay)
    recorded: dict[str, Any] = decoding | {"gpu": gpu, "decoding": left_out}
    waiting: dict[str, Any] = recorded | {"timeout_s": timeout_s, "reconnect": reconnect}
    camera = _CAMERA.fullmatch(url)
    if camera:
        device = _camera(int(camera[1]), url)
        opener = sources.stream.url_opener(device, timeout_s, format="v4l2", options=options or {})
        return sources.stream.StreamSource(opener, url, live=True, **(waiting | {"gpu": None}))
    scheme = url_scheme(url)
    if scheme == "file":
        url = unquote(urlsplit(url).path)
    elif scheme in BUCKETS:
        raise MediaError(
            f"{scheme}:// is a bucket, which runs and services do not read",
            where=url_name(url),
            fix="headrace batch CONFIG URL reads the videos and images of buckets",
        )
    elif scheme:
        stream_options = _scheme_options(scheme, transport, latency_s, timeout_s) | dict(
            options or {}
        )
        opener = sources.stream.url_opener(
            url, timeout_s, options=stream_options, gpu=gpu, reach=playlist_reach
        )
        live = is_live(url) if live is None else live
        return sources.stream.StreamSource(
            opener, url_name(url), live=live, renumber=renumber, **waiting
        )
    path = Path(url)
    with os_errors(MediaError, "cannot be read", without_secrets(url)):
        there, folder = path.exists(), path.is_dir()
    if folder:
        return _folder(path, url, source_id, fps)
    if not there:
        if glob.has_magic(url):
            return _pattern(url, source_id, fps)
        raise MediaError(
            "there is no such file",
            where=without_secrets(url),
            fix=did_you_mean(nearest_file(path)),
        )
    if stat.S_ISFIFO(path.stat().st_mode):
        opener = sources.stream.pipe_opener(str(path), timeout_s)
        return sources.stream.StreamSource(opener, url, timeout_s=timeout_s, wait=True, **decoding)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return sources.images.ImageSource([path], url, source_id=source_id, fps=fps)
    return VideoSource(path, url, reach=playlist_reach, **recorded)


def as_frame(
    image: object, format: PixelFormat | str = PixelFormat.BGR, *, index: int = 0
) -> Frame:
    """One image from a frame, an array or a path.

    Args:
        image: a `Frame`, an array as `ArraySource` takes it, or the path of an image or video,
            of which the first frame is taken, with a `HeadraceWarning`.
        format: of an array.
        index: of the image in a list, for messages.

    Raises:
        MediaError: it is no image.
        HeadraceWarning: the filters of `warnings` make an error of it.
    """
    if isinstance(image, Frame):
        return image
    if isinstance(image, (str, Path)):
        with open_source(str(image)) as source:
            for frame in source:
                if not source.live and source.frames != 1:
                    many = f"{source.frames} images" if source.frames else "more than one image"
                    text = f"it holds {many}, and the first one alone is taken; all of them: "
                    text += f"headrace.open_pipeline(CONFIG, sources={source.name!r})"
                    warn_of([Finding("first-image", "warning", text, source.name)])
                return frame
        raise MediaError("there is no image in it", where=str(image))
    return ArraySource((), name="image", format=format).frame_of(image, index)


def _folder(path: Path, name: str, source_id: int, fps: float | None) -> Source:
    with os_errors(MediaError, "the folder cannot be read", name):
        files = [p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")]
    return _images(files, name, source_id, fps, what="the folder has")


def _pattern(pattern: str, source_id: int, fps: float | None) -> Source:
    files = list(map(Path, dict.fromkeys(matching_files(pattern))))
    if not files:
        raise MediaError("the pattern matches no file", where=without_secrets(pattern))
    if len(files) == 1 and files[0].suffix.lower() not in IMAGE_SUFFIXES:
        return open_source(str(files[0]), source_id=source_id, fps=fps)
    return _images(files, pattern, source_id, fps, what="the pattern matches")


def _images(
    files: list[Path], name: str, source_id: int, fps: float | None, *, what: str
) -> Source:
    images = [p for p in files if p.suffix.lower() in IMAGE_SUFFIXES]
    if not images:
        raise MediaError(
            f"{what} {counted(len(files), 'file')}, none of them an image",
            where=name,
            expected="images (" + ", ".join(sorted(s[1:] for s in IMAGE_SUFFIXES)) + ")",
            fix="a video is a source of its own: name each one, a pattern without quotes does",
        )
    images.sort(key=lambda p: (str(p.parent), natural_key(p)))
    source = sources.images.ImageSource(images, name, source_id=source_id, fps=fps)
    others = sorted((p for p in files if p not in set(images)), key=natural_key)
    if others:
        names = ", ".join(p.name for p in others[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        source._notice("left-out", "info", f"not images, left out: {names}{more}")
    return source


def _scheme_options(
    scheme: str, transport: str, latency_s: float | None, timeout_s: float
) -> dict[str, str]:
    silent_us = str(round((timeout_s + 2 * GRACE_S) * 1e6))  # behind the feed's: it says more
    if scheme not in ("rtsp", "rtsps"):
        return {"rw_timeout": silent_us}
    options = {"rtsp_transport": transport, "timeout": silent_us}
    if latency_s is not None:
        options["max_delay"] = str(round(latency_s * 1e6))
    return options


def _camera(number: int, name: str) -> str:
    """The device of a camera that is there."""
    device = f"/dev/video{number}"
    if not Path(device).exists():
        devices = sorted(str(p) for p in Path("/dev").glob("video[0-9]*"))
        raise MediaError(
            f"there is no camera {number}",
            where=name,
            expected=f"one of {', '.join(devices)}" if devices else "a camera at /dev/video…",
            fix=None if devices else "no camera is connected, or this user may not see it",
        )
    return device
