"""Addresses that a source reaches: the named one, and others that its server names."""

from __future__ import annotations

import ipaddress
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from headrace._core import _native

if TYPE_CHECKING:
    from headrace.media.sources.feed import Feed
    from headrace.media.sources.playlists import PlaylistReach

_PORTS = {"http": 80, "https": 443, "rtmp": 1935, "rtmps": 443, "rtsp": 554, "rtsps": 322}
_log = logging.getLogger("headrace.media")


class ConnectionRule:
    """Judges the addresses that FFmpeg connects to for a source: it follows those of a server.

    A server of RTSP or RTMP may redirect, and names where media are sent to. The host that was
    named is reached at its port, by datagrams at any.

    Args:
        url: what the user named.
        reach: "same": that host alone; "public": public addresses, too.

    Attributes:
        refused: the first address that it refused, with its port; empty without one.
    """

    def __init__(self, url: str, reach: PlaylistReach) -> None:
        parts = urlsplit(url)
        self._port, self._public, self.refused = port_of(parts), reach == "public", ""
        try:
            self._named = set(addresses_of(parts))
        except (OSError, UnicodeError, ValueError):  # FFmpeg will not find it either, and says so
            self._named = set()

    def __call__(self, address: str, port: int, stream: bool) -> bool:
        """Return whether it may be reached; `stream`: by TCP."""
        named = address in self._named and (not stream or port == self._port)
        if named or (self._public and is_public(address)):
            return True
        self.refused = self.refused or f"{address}:{port}"
        return False

    def hold(self, feed: Feed) -> None:
        """Judge the connections of the calling thread, until its feed ends."""
        if _native.judge_connections(self):
            feed.at_close.append(partial(_native.judge_connections, None))
        else:
            _log.warning(
                "this FFmpeg's connections cannot be checked here: a server of RTSP or RTMP may "
                "lead to addresses that were not named"
            )


def port_of(parts: SplitResult) -> int:
    """The port of an address; 0 where there is none."""
    try:
        return parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return 0


def addresses_of(parts: SplitResult) -> list[str]:
    """Addresses of the host of an address, as text.

    Raises:
        OSError: there is no such host.
    """
    rows = socket.getaddrinfo(parts.hostname, port_of(parts), type=socket.SOCK_STREAM)
    return [str(row[4][0]).partition("%")[0] for row in rows]


def is_public(address: str) -> bool:
    """Return whether an address is reached from anywhere; True if it is."""
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(
        address.partition("%")[0]
    )
    if isinstance(ip, ipaddress.IPv6Address):
        packed = ip.packed
        inner = ip.ipv4_mapped or ip.sixtofour
        if packed[:12] == bytes.fromhex("0064ff9b") + bytes(8):  # NAT64, RFC 6052
            inner = ipaddress.IPv4Address(packed[12:])
        ip = inner or ip
    return ip.is_global and not ip.is_multicast
