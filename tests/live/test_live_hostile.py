"""A service under attack, and under 200 sources that come and go: it lives, and loses nothing."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live.test_live_service import Service, service
from tests.media.conftest import write_clip
from tests.pipeline.test_pipeline_dynamic import wait_until

__all__ = ["service"]
SOURCES = 200


def rss_kib(service: Service) -> int:
    text = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def answer(port: int, head: str, body: bytes = b"") -> int:
    """The status that a raw request gets; 0 if the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", port), 10) as link:
        link.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        try:
            first = link.recv(64)
        except ConnectionResetError:
            return 0
    return int(first.split()[1]) if first else 0


@pytest.mark.slow
def test_requests_that_are_refused(service: Service) -> None:
    port = service.client._connection.port
    host = f"Host: 127.0.0.1:{port}"
    post = f"POST /api/sources HTTP/1.1\n{host}"
    deep = b'{"uri":' + b"[" * 2000 + b"]" * 2000 + b"}"
    assert answer(port, f"{post}\nContent-Length: {1 << 30}", b"x" * 4096) == 413
    assert answer(port, f"{post}\nTransfer-Encoding: chunked", b"5\r\nhello\r\n") == 411
    assert answer(port, f"{post}\nContent-Length: -5") in (0, 400, 413)
    assert answer(port, f"{post}\nContent-Length: {len(deep)}", deep) == 400
    assert answer(port, f"{post}\nContent-Length: 2\nOrigin: http://evil.example", b"{}") == 403
    assert answer(port, "GET / HTTP/1.1\nHost: evil.example") == 403
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/app.js/../x"):
        assert answer(port, f"GET {path} HTTP/1.1\n{host}") in (400, 404)
    assert answer(port, f"GET /{'a' * 70_000} HTTP/1.1\n{host}") in (0, 400, 404, 431)
    assert answer(port, "\x00\x01 nonsense") in (0, 400)
    assert service.client.ask("/healthz")[0] == 200


@pytest.mark.slow
def test_a_thousand_half_open_connections(service: Service) -> None:
    port = service.client._connection.port
    before, links = rss_kib(service), []
    for _ in range(1000):
        link = socket.create_connection(("127.0.0.1", port), 10)
        link.sendall(b"POST /api/sources HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        links.append(link)
    time.sleep(1)
    grown = rss_kib(service) - before
    assert service.process.poll() is None
    for link in links:
        link.close()
    wait_until(lambda: answer(port, f"GET /healthz HTTP/1.1\nHost: 127.0.0.1:{port}") == 200, 10)
    print(f"1000 half-open connections: +{grown} KiB")
    assert grown < 64 * 1024


@pytest.mark.slow
def test_sources_that_come_and_go(service: Service, tmp_path: Path) -> None:
    short = str(write_clip(tmp_path / "short.mp4", 50))
    long = str(write_clip(tmp_path / "long.mp4", 6000))
    port = service.client._connection.port

    def ask(method: str, path: str, body: dict[str, Any] | None = None) -> int:
        data = json.dumps(body or {}).encode()
        head = f"{method} {path} HTTP/1.1\nHost: 127.0.0.1:{port}\nContent-Length: {len(data)}"
        return answer(port, head + "\nConnection: close", data)

    for name in ("one", "two"):
        assert ask("POST", "/api/sources", {"uri": long, "name": name}) == 201
    sizes = []
    for i in range(SOURCES):
        assert ask("POST", "/api/sources", {"uri": short, "name": f"guest{i}"}) == 201
        if i >= 3:
            # 404: it has come to its end already
            assert ask("DELETE", f"/api/sources/{i - 1}") in (204, 404)
        if i % 20 == 19:
            sizes.append(rss_kib(service))
    metrics = service.metrics
    for name, number in (("one", 0), ("two", 1)):
        key = f'headrace_frames_total{{source="{name}",id="{number}"}}'
        wait_until(lambda key=key: metrics().get(key) == 6000, 240)  # type: ignore[misc]
        assert metrics()[f'headrace_dropped_frames_total{{source="{name}",id="{number}"}}'] == 0
    print(f"RSS after each 20 sources, MiB: {[size >> 10 for size in sizes]}")
    assert max(sizes[3:]) - sizes[2] < 48 * 1024
    service.end()
    seen: dict[str, list[int]] = {"one": [], "two": []}
    for line in (service.folder / "found.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["source"] in seen:
            seen[row["source"]].append(row["frame"])
    assert seen == {"one": list(range(6000)), "two": list(range(6000))}
