"""Addresses in HLS playlists of the web, checked and opened for FFmpeg."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import IO
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from headrace._core.exchange import Exchange
from headrace._core.urls import url_name
from headrace.media.sources.feed import Feed
from headrace.media.sources.playlists import (
    HLS_HEAD,
    MAX_PLAYLIST_BYTES,
    PlaylistReach,
    checked_playlist,
    moved_playlist,
    refused,
)
from headrace.media.sources.reach import addresses_of, is_public, port_of

_REDIRECTS = 5
_SCHEMES = ("http", "https")
_AT_ONCE = 32 << 10
_SAFE = "/%:=&?~#+!$,;'@()*[]"


class WebFiles:
    """Opens addresses on the web for FFmpeg, where it may go: (URL, flags, options) -> file.

    The connections are its own: the address that was checked is the one that is connected. User,
    password and headers go to the host that the user named alone.

    Args:
        url: what the user named.
        reach: "same": that host alone; "public": public addresses, too.
        options: FFmpeg's `headers`, `user_agent`, `referer`, `tls_verify` and `ca_file` count.
        timeout_s: for a connection, an answer, a playlist, and each piece of anything else.
        feed: for which it is opened.
    """

    def __init__(
        self,
        url: str,
        reach: PlaylistReach,
        options: Mapping[str, str],
        timeout_s: float,
        feed: Feed,
    ) -> None:
        self._name, self._reach = url_name(url), reach
        self._options, self._timeout_s, self._feed = options, timeout_s, feed
        self._named = urlsplit(url)
        self._url = url
        self._refused = self._is_playlist = self._begun = False
        # An inner address that the user named is one; a name that moves to one later is not.
        self._inner = {address for address in addresses_of(self._named) if not is_public(address)}

    def resolved(self) -> tuple[str, bytes]:
        """The address that the user's one leads to, and the first bytes of its content.

        Raises:
            MediaError: it leads where it may not.
            OSError: there is nothing.
        """
        body = _Body(self, self._url)
        with body:
            self._is_playlist = body.head.startswith(HLS_HEAD)
            return body.final, body.head

    def __call__(self, url: str, flags: int, options: Mapping[str, str]) -> IO[bytes] | _Body:
        """Open an address to read; nothing after the first that is refused.

        A segment that cannot be read is empty: FFmpeg goes on with the next. PyAV raises one error,
        and prints others.

        Raises:
            MediaError: it may not be opened.
        """
        if self._feed.left or self._refused:
            return io.BytesIO()
        self._refused = True
        file = self._opened(url, options)
        self._refused = False
        return file

    def failed(self, error: OSError) -> bytes:
        """End a body that breaks off, with an error at most once."""
        if self._is_playlist or self._refused:
            return b""
        self._refused = True
        raise error

    def _opened(self, url: str, options: Mapping[str, str]) -> IO[bytes] | _Body:
        start, end = int(options.get("offset", 0)), options.get("end_offset")
        try:
            body = _Body(self, url, start, int(end) if end else None)
        except OSError:
            return io.BytesIO()
        if body.head.startswith(HLS_HEAD):
            with body:
                try:
                    text = body.all(monotonic() + self._timeout_s)
                except OSError:
                    return io.BytesIO()
            inner, self._begun = self._begun, True
            text = checked_playlist(text, body.final, inner=inner)
            return io.BytesIO(text if body.final == url else moved_playlist(text, body.final))
        return body

    def request(
        self, url: str, start: int, end: int | None
    ) -> tuple[str, Exchange, http.client.HTTPResponse]:
        """Ask for bytes from `start` to before `end`; the final address, and the answer.

        Raises:
            MediaError: it may not go there.
            OSError: no answer.
        """
        for _ in range(_REDIRECTS):
            exchange = Exchange(self._timeout_s)
            parts = urlsplit(url)
            connection, headers = self._connected(parts, exchange), self._headers(parts)
            if start or end is not None:
                headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
            target = quote(parts.path or "/", _SAFE)
            target += f"?{quote(parts.query, _SAFE)}" if parts.query else ""
            exchange.begin()
            try:
                connection.request("GET", target, headers=headers)
                answer = connection.getresponse()
            except http.client.HTTPException as error:
                raise ConnectionError("the server answers with something else than HTTP") from error
            moved = answer.getheader("Location")
            if answer.status in (301, 302, 303, 307, 308) and moved:
                connection.close()
                url = urljoin(url, moved)
                continue
            if answer.status not in (200, 206) or (start and answer.status != 206):
                connection.close()
                raise ConnectionError(f"the server answers {answer.status}")
            return url, exchange, answer
        raise ConnectionError("the server leads from one address to the next")

    def _is_same(self, parts: SplitResult) -> bool:
        port, named = port_of(parts), port_of(self._named)
        return parts.hostname == self._named.hostname and (
            port == named or {port, named} <= {80, 443}
        )

    def _connected(self, parts: SplitResult, exchange: Exchange) -> http.client.HTTPConnection:
        shown = url_name(parts.geturl())[:200]
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise refused(f"it leads to {shown!r}, which is no address of the web", self._name)
        same = self._is_same(parts)
        if self._reach == "same" and not same:
            raise refused(f"it leads to {shown!r}, which is another place", self._name)
        allowed = [
            address
            for address in addresses_of(parts)
            if is_public(address) or (same and address in self._inner)
        ]
        if not allowed:
            raise refused(f"it leads to {shown!r}, which is an inner address", self._name)
        failure: OSError | None = None
        for address in allowed:
            try:
                link = socket.create_connection((address, port_of(parts)), self._timeout_s)
            except OSError as error:
                failure = error
                continue
            if parts.scheme == "https":
                link = self._tls(exchange).wrap_socket(link, server_hostname=parts.hostname)
            else:
                link = exchange.bounded(link)
            connection = http.client.HTTPConnection(parts.hostname, port_of(parts))
            connection.sock = link
            return connection
        assert failure is not None
        raise failure

    def _tls(self, exchange: Exchange) -> ssl.SSLContext:
        context = exchange.tls_context()
        exchange.begin()
        if file := self._options.get("ca_file"):
            context.load_verify_locations(file)
        if self._options.get("tls_verify") == "0":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _headers(self, parts: SplitResult) -> dict[str, str]:
        host = parts.netloc.rpartition("@")[2]
        headers = {"Host": host, "User-Agent": self._options.get("user_agent", "headrace")}
        if not self._is_same(parts):
            return headers
        if referer := self._options.get("referer"):
            headers["Referer"] = referer
        if self._named.username is not None:
            login = f"{unquote(self._named.username)}:{unquote(self._named.password or '')}"
            headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        for line in self._options.get("headers", "").splitlines():
            name, _, value = line.partition(":")
            if name.strip():
                headers[name.strip()] = value.strip()
        return headers


class _Body:
    """The body of an answer, as FFmpeg reads a file.

    Attributes:
        final: the address that it came from.
        head: its first bytes.
    """

    def __init__(self, files: WebFiles, url: str, start: int = 0, end: int | None = None) -> None:
        self._files, self._url, self._start, self._end = files, url, start, end
        self._at = 0
        self._open()
        self.head = self._ahead = self._first()

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self.final, self._exchange, self._answer = self._files.request(
            self._url, self._start + self._at, self._end
        )
        self._ahead = b""

    def _first(self) -> bytes:
        first = b""
        while len(first) < len(HLS_HEAD) and (piece := self._next(len(HLS_HEAD) - len(first))):
            first += piece
        return first

    def _next(self, size: int) -> bytes:
        self._exchange.begin()
        try:
            return self._answer.read1(min(size, _AT_ONCE))
        except http.client.HTTPException as error:
            raise ConnectionError("the answer broke off") from error

    def all(self, until: float) -> bytes:
        """The rest, at most one byte more than a playlist has; `until` is of `monotonic()`.

        Raises:
            OSError: it takes longer.
        """
        text = self._ahead
        while len(text) <= MAX_PLAYLIST_BYTES and (piece := self._next(_AT_ONCE)):
            text += piece
            if monotonic() > until:
                raise TimeoutError("the playlist did not come in time")
        return text

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end.

        Raises:
            OSError: they do not come.
        """
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        try:
            piece = piece or self._next(size)
        except OSError as error:
            return self._files.failed(error)
        self._at += len(piece)
        return piece

    def seekable(self) -> bool:
        """Return whether it can be read from another place; True if it offers ranges."""
        return self._answer.status == 206 or self._answer.getheader("Accept-Ranges", "") == "bytes"

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte, from the start (0) or from here (1).

        Raises:
            OSError: the server gives nothing from there.
        """
        if whence not in (0, 1):
            raise OSError("its length is not known")
        offset += self._at if whence else 0
        if offset != self._at:
            self.close()
            self._at = offset
            self._open()
        return self._at

    def tell(self) -> int:
        """The next byte that is read."""
        return self._at

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self._answer.close()
        self._exchange.hang_up()
