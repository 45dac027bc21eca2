"""Inputs elsewhere: `s3://`, `gs://`, `http://` and all schemes of fsspec."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from headrace._core.errors import MediaError, MissingExtraError
from headrace._core.files import hash_file
from headrace._core.lazy import import_extra
from headrace._core.storages import BUCKETS, NO_BUCKET, missing_package, refusal
from headrace._core.urls import url_name, url_scheme
from headrace.batches.transfer import (
    CALL_S,
    LIST_S,
    MOST_BYTES,
    PIECE,
    Transfer,
    TransferError,
    within,
)
from headrace.config.paths import LIVE_SCHEMES
from headrace.media.names import is_media

_HTTP = ("http", "https")
_PAGE = 16 << 20


def remote_scheme(name: str) -> str:
    """The scheme of a URL that a batch can fetch.

    Raises:
        MediaError: it is a stream without an end.
    """
    scheme = url_scheme(name) or ""
    if scheme in LIVE_SCHEMES:
        raise MediaError(
            f"{scheme}:// is a stream, which has no end",
            where=url_name(name),
            expected="files: a batch ends",
            fix="headrace run takes streams",
        )
    return scheme


def is_remote_pattern(url: str) -> bool:
    """True if a URL names several files by `*`; a web server does not tell which it has."""
    return "*" in url and url_scheme(url) not in (None, "file", *_HTTP)


def listed(url: str) -> Iterator[str]:
    """A URL itself; of a folder (`…/`) or pattern, the URLs of its videos and images.

    Raises:
        MediaError: the other side refuses, or there is nothing.
        MissingExtraError: a package is not installed.
    """
    pattern = is_remote_pattern(url)
    if not (url.endswith("/") or pattern):
        yield url
        return

    def find(_: Transfer) -> tuple[Any, list[str]]:
        system, path = _opened(url)
        paths = system.glob(path) if pattern else system.find(path)
        bucket = path.partition("/")[0]
        if not paths and url_scheme(url) in BUCKETS and not system.exists(bucket):
            raise MediaError(NO_BUCKET, where=url_name(url))  # a list of nothing is its answer
        return system, sorted(str(p) for p in paths)

    with _worded(url):
        system, entries = within(find, LIST_S)
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

        def fetch(transfer: Transfer) -> None:
            system, path = _opened(url)
            block, most = PIECE, MOST_BYTES
            if url_scheme(url) in _HTTP:
                block = 0  # as it comes: a server need not know of ranges
            elif (size := system.info(path).get("size")) is not None:
                most = min(most, size)
            with (
                system.open(path, "rb", block_size=block) as source,
                open(target, "wb") as copy,
            ):
                transfer.copy(source, copy, most)

        with _worded(url):
            within(fetch)
        yield target, *hash_file(target)


def _opened(url: str) -> tuple[Any, str]:
    core = import_extra("fsspec.core", "remote")
    options = _http_options() if url_scheme(url) in _HTTP else {}
    system, path = core.url_to_fs(url, **options)
    return system, str(path)


@cache
def _http_options() -> dict[str, Any]:
    """Bounds of HTTP: the time of `transfer`, not five minutes for any file; pages of some size."""
    import aiohttp

    class BoundedResponse(aiohttp.ClientResponse):  # type: ignore[misc]
        """A response with a limit for a body that is read at once."""

        async def read(self) -> bytes:
            """Read a page.

            Raises:
                TransferError: it has more than 16 MiB.
            """
            body = bytearray()
            while data := await self.content.read(_PAGE + 1 - len(body)):
                body += data
                if len(body) > _PAGE:
                    self.close()
                    raise TransferError(f"the page of a folder has more than {_PAGE >> 20} MiB")
            self._body = bytes(body)  # where `text` looks for it
            return self._body

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=CALL_S)
    return {"client_kwargs": {"response_class": BoundedResponse, "timeout": timeout}}


@contextmanager
def _worded(url: str) -> Iterator[None]:
    """Word an exception of a foreign file system, which may be of any type."""
    try:
        yield
    except (MediaError, MissingExtraError):
        raise
    except ImportError as error:  # fsspec is there, the package for this scheme is not
        raise missing_package(url, error) from error
    except Exception as error:
        text, fix = (str(error), ()) if isinstance(error, TransferError) else refusal(error)
        text = text.replace(url, url_name(url))
        raise MediaError(f"cannot be fetched: {text}", where=url_name(url), fix=fix) from error
