"""Ports of this machine for servers of tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
