"""Inputs elsewhere: `s3://`, `gs://`, `http://` and all schemes of fsspec."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace._core.errors import MediaError, MissingExtraError
from headrace._core.files import hash_file
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace._core.urls import url_name, url_scheme, without_secrets
from headrace.media.names import is_media

_CHUNK = 1 << 20
_QUERY = re.compile(r"\?[^\s'\"]*")  # signatures and tokens
_STREAMS = frozenset(("rtsp", "rtsps", "rtmp", "rtmps", "udp", "rtp", "srt", "tcp"))


def remote_scheme(name: str) -> str:
    """The scheme of a URL that a batch can fetch.

    Raises:
        MediaError: it is a stream without an end.
    """
    scheme = url_scheme(name) or ""
    if scheme in _STREAMS:
        raise MediaError(
            f"{scheme}:// is a stream, which has no end",
            where=url_name(name),
            expected="files: a batch ends",
            fix="headrace run takes streams",
        )
    return scheme


def listed(url: str) -> Iterator[str]:
    """A URL itself; of a folder (`…/`) or pattern, the URLs of its videos and images.

    Raises:
        MediaError: the other side refuses, or there is nothing.
        MissingExtraError: a package is not installed.
    """
    pattern = "*" in url and not url.startswith(("http://", "https://"))
    if not (url.endswith("/") or pattern):
        yield url
        return
    with _worded(url):
        system, path = _opened(url)
        paths = system.glob(path) if pattern else system.find(path)
        entries = sorted(str(p) for p in paths)
    names = [system.unstrip_protocol(p) for p in entries if is_media(p)]
    if not names:
        raise MediaError("there is no video and no image", where=url_name(url))
    yield from names


@contextmanager
def fetched(url: str) -> Iterator[tuple[Path, int, str]]:
    """A copy of a file elsewhere, gone with the block: its path, size in bytes and SHA-256.

    Raises:
        MediaError: it cannot be fetched.
        MissingExtraError: a package is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        target = Path(folder, Path(url.split("?")[0].split("#")[0]).name or "input")
        with _worded(url):
            system, path = _opened(url)
            with system.open(path, "rb") as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy, _CHUNK)
        yield target, *hash_file(target)


def _opened(url: str) -> tuple[Any, str]:
    core = import_extra("fsspec.core", "remote")
    system, path = core.url_to_fs(url)
    return system, str(path)


@contextmanager
def _worded(url: str) -> Iterator[None]:
    """Word an exception of a foreign file system, which may be of any type."""
    try:
        yield
    except (MediaError, MissingExtraError):
        raise
    except ImportError as error:  # fsspec is there, the package for this scheme is not
        raise MissingExtraError(
            f"{without_secrets(str(error))}",
            fix=f"pip install the package for {url_scheme(url)}://",
        ) from error
    except Exception as error:
        text = _QUERY.sub("", without_secrets(error_text(error)).replace(url, url_name(url)))
        raise MediaError(f"cannot be fetched: {text}", where=url_name(url)) from error
