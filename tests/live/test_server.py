"""The page's server over real connections: images, state, explanations, strangers."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import struct
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace.config import ModelConfig
from headrace.errors import HeadraceError
from headrace.live import Address, LiveServer, LiveView, live_address
from headrace.live.address import TOKEN
from headrace.live.allowed import ServiceRules
from headrace.media import Frame, PixelFormat
from tests.pipeline.fakes import FakeModel, FakeSource

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
FILES = ("detector.onnx", "config_infer_primary.txt", "conveyor_parser.py", "labels.txt")


class Client:
    """One connection, kept alive."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=15)

    def ask(
        self, path: str, body: Any = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            answer = self._answer(path, data, headers)
        except http.client.RemoteDisconnected:  # it was idle for some seconds
            self._connection.close()
            answer = self._answer(path, data, headers)
        return answer.status, answer.read(), answer.headers

    def _answer(
        self, path: str, data: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        self._connection.request("GET" if data is None else "POST", path, data, headers)
        return self._connection.getresponse()

    def json(self, path: str, body: Any = None) -> Any:
        status, data, _ = self.ask(path, body)
        assert status == 200, data
        return json.loads(data)

    def images(self, seen: dict[int, int], width: int = 640) -> list[tuple[Any, Image.Image]]:
        status, data, _ = self.ask("/api/images", {"seen": seen, "width": width})
        assert status == 200, data
        (length,) = struct.unpack(">I", data[:4])
        start, found = 4 + length, []
        for head in json.loads(data[4:start]):
            jpeg = data[start : start + head["bytes"]]
            found.append((head, Image.open(BytesIO(jpeg))))
            start += head["bytes"]
        assert start == len(data)
        return found

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(SCENE / name, tmp_path)
    return tmp_path


@pytest.fixture
def client(scene: Path) -> Iterator[Client]:
    """The demo scene, two sources, its frames held back until the end of the test."""
    view, gate = LiveView(), threading.Semaphore(6)
    config = scene / "config_infer_primary.txt"
    pipeline = headrace.open_pipeline(
        config,
        sources=[SCENE / "conveyor.mp4", SCENE / "conveyor.mp4"],
        outputs=[view],
        on_result=lambda _: gate.acquire(),
    )
    server = LiveServer(pipeline, view, Address(port=0), [ModelConfig.load(config)])
    running = threading.Thread(target=pipeline.run)
    running.start()
    client = Client(server.address)
    yield client
    client.close()
    pipeline.stop()
    gate.release(1000)
    running.join(20)
    server.close()
    assert not running.is_alive()


def test_images_objects_and_state(client: Client) -> None:
    found = {head["source"]: (head, image) for head, image in client.images({0: 0, 1: 0})}
    if len(found) < 2:  # the other came a moment later
        found |= {
            h["source"]: (h, p) for h, p in client.images(dict.fromkeys({0, 1} - set(found), 0))
        }
    head, image = found[0]
    assert image.size == (head["width"], head["height"]) == (640, 384)
    assert {o["label"] for o in head["objects"]} <= {
        "box",
        "envelope",
        "bag",
        "tube",
        "crate",
        "drum",
    }
    left, top, _, height = head["objects"][0]["box"]
    edge = np.asarray(image)[round(top + height / 2), max(0, round(left) - 1) : round(left) + 3]
    assert np.ptp(edge.astype(int), axis=0).max() > 60  # its border is drawn
    ((small, thumbnail),) = client.images({0: 0}, width=300)
    assert thumbnail.size == (320, 192)
    assert small["width"] == 640
    state = client.json("/api/state")
    assert state["state"] == "running"
    assert [s["state"] for s in state["sources"]] == ["running", "running"]
    assert sum(state["sources"][0]["counts"].values()) == len(small["objects"])
    assert state["stages"]["infer"] > 0


def test_it_waits_for_the_next_image(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    while client.images({0: 0, 1: 0})[0][0]["frame"] < 2:
        time.sleep(0.01)
    (head, _), *_ = client.images({0: 0})
    monkeypatch.setattr("headrace.live.app._WAIT_S", 0.4)
    start = time.monotonic()
    assert client.images({0: head["number"]}) == []
    assert time.monotonic() - start >= 0.4


def test_why_there_is_no_box(client: Client) -> None:
    (head, _), *_ = client.images({0: 0})
    wanted = {"source": 0, "number": head["number"], "x": 320, "y": 378}
    text = client.json("/api/explain", wanted)["text"]
    assert text.startswith(f"frame {head['frame']} of {SCENE}/conveyor.mp4\n")
    assert "pre-cluster-threshold" in text
    status, data, _ = client.ask("/api/explain", wanted | {"x": 9999})
    assert (status, b"outside of the frame" in data) == (422, True)
    assert client.ask("/api/explain", wanted | {"source": 7})[0] == 404


@pytest.mark.parametrize("path", ["/api/images", "/api/explain"])
@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"null", b"[" * 4000, b'{"seen": 3}', b'{"seen": {"a": 0}, "width": 1}',
     b'{"seen": {"0": 0}, "width": "wide"}', b'{"source": [], "x": 1, "y": 2}',
     b'{"seen": {"0": 1e400}, "width": 1, "source": 0, "x": 1e400, "y": 2}',
     b'{"seen": {"0": 0}, "width": 1e999, "source": -1e999, "x": 1, "y": 2}',
     b'{"seen": {"0": 0}, "width": Infinity, "source": 0, "x": NaN, "y": 2}',
     json.dumps({"seen": {str(i): 0 for i in range(65)}, "width": 1}).encode()],
)  # fmt: skip
def test_damaged_requests(quiet: Client, path: str, body: bytes) -> None:
    status, data, _ = quiet.ask(path, body)
    assert status == 400
    assert "expected" in json.loads(data)["error"] or "64 sources" in json.loads(data)["error"]


@pytest.fixture(scope="module")
def quiet() -> Iterator[Client]:
    """A pipeline that has not begun."""
    view = LiveView()
    server = LiveServer(
        headrace.Pipeline(FakeSource(3), FakeModel(), [view]), view, Address(port=0)
    )
    client = Client(server.address)
    yield client
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Length": "1000000000"}, 413),
        ({"Content-Length": "many"}, 400),  # refused by the server itself
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_strangers_are_refused(quiet: Client, headers: dict[str, str], status: int) -> None:
    client = Client(quiet.address)
    assert client.ask("/api/state", **headers)[0] == status
    client.close()
    assert quiet.json("/api/state")["state"] == "new"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost"}, 200),  # as browsers write port 80, and 443 behind a proxy
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]"}, 200),
        ({"Host": "LocalHost.:8088"}, 200),
        ({"Host": "localhost", "Origin": "http://localhost"}, 200),
        ({"Host": "localhost", "Origin": "https://localhost"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost"}, 200),
        ({"Host": "localhost:443", "Origin": "https://localhost"}, 200),
        ({"Host": "localhost", "Origin": "http://localhost:80"}, 200),
        ({"Host": "localhost:8088", "Origin": "http://localhost"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost:8088"}, 403),
        ({"Host": "localhost:443", "Origin": "http://localhost"}, 403),
        ({"Host": "localhost", "Origin": "http://127.0.0.1"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80", "Origin": "http://evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "localhost:80:80"}, 403),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Host": ""}, 403),
    ],
)
def test_host_and_origin_with_and_without_ports(
    quiet: Client, headers: dict[str, str], status: int
) -> None:
    client = Client(quiet.address)
    assert client.ask("/api/state", **headers)[0] == status
    client.close()


def test_other_paths(quiet: Client) -> None:
    for path in ("/../server.py", "/%2e%2e/server.py", "/page/index.html", "/app.js/x", "/api"):
        status, data, _ = quiet.ask(path)
        assert (status, json.loads(data)) == (404, {"error": "Not Found"})
    assert json.loads(quiet.ask("/api/explain")[1]) == {"error": "Method Not Allowed"}
    assert quiet.ask("/api/explain", {"source": 0, "x": 1, "y": 1})[0] == 404
    status, data, headers = quiet.ask("/")
    assert status == 200
    assert b"<title>Headrace</title>" in data
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"http" not in data  # nothing is loaded from elsewhere
    assert quiet.ask("/app.js")[0] == quiet.ask("/app.css")[0] == 200


def link_to(client: Client, begun: bytes) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", client.address.port), 10)
    link.sendall(begun)
    return link


def is_closed(link: socket.socket) -> bool:
    """Whether the server closes a connection without an answer."""
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("end", [b"", b"Content-Length: 9\r\n\r\n{"])
def test_half_open_connections_keep_nobody_out(quiet: Client, end: bytes) -> None:
    """The server holds 256: those that owe a request longest make room."""
    begun = f"POST /api/images HTTP/1.1\r\nHost: {quiet.address.url[7:-1]}\r\n".encode()
    links = [link_to(quiet, begun + end) for _ in range(400)]
    fresh = Client(quiet.address)
    assert fresh.json("/api/state")["state"] == "new"
    assert is_closed(links[0])
    for link in links:
        link.close()
    fresh.close()
    quiet._connection.close()  # it was among the oldest


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET / HT",
     b"POST /api/explain HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n\r\n{"],
)  # fmt: skip
def test_a_request_that_never_ends(
    quiet: Client, begun: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headrace.live.connections.REQUEST_S", 0.2)
    link = link_to(quiet, begun.replace(b"HOST", quiet.address.url[7:-1].encode()))
    assert is_closed(link)
    link.close()
    time.sleep(0.1)
    assert not caplog.records


def test_the_end_of_an_answer_does_not_wait_for_its_begin() -> None:
    view = LiveView()
    pipeline = headrace.Pipeline(FakeSource(1), sinks=[view])
    server = LiveServer(pipeline, view, Address(port=0))
    client = Client(server.address)
    client.json("/api/state")
    (link,) = server._server.server_state.connections
    connection = link.transport.get_extra_info("socket")
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    client.close()
    server.close()
    pipeline.close()


def test_images_that_take_long_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first does not wait for the others, and the next is the one not seen for longest."""
    monkeypatch.setattr("headrace.live.app._DRAW_S", 0.0)
    view = LiveView()
    pipeline = headrace.Pipeline(
        [FakeSource(3, source_id=i) for i in range(3)], FakeModel(), [view]
    )
    server = LiveServer(pipeline, view, Address(port=0))
    pipeline.run()
    client, seen, order = Client(server.address), {0: 0, 1: 0, 2: 0}, []
    for _ in range(3):
        ((head, _),) = client.images(seen)
        seen[head["source"]] = head["number"]
        order.append(head["source"])
    assert sorted(order) == [0, 1, 2]
    client.close()
    server.close()


def test_an_answer_that_nobody_reads(quiet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.live.connections.ANSWER_S", 0.2)
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(10)
        link.connect(("127.0.0.1", quiet.address.port))
        host = quiet.address.url[7:-1]
        requests = f"GET /app.js HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 100_000
        with pytest.raises(ConnectionError):
            link.sendall(requests)


def test_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    view = LiveView()
    pipeline = headrace.Pipeline(FakeSource(3), FakeModel(), [view])
    with pytest.raises(HeadraceError, match=TOKEN):
        LiveServer(pipeline, view, Address("0.0.0.0", 0))
    monkeypatch.setenv(TOKEN, "secret")
    server = LiveServer(pipeline, view, Address("0.0.0.0", 0))
    client = Client(server.address)
    assert client.ask("/api/state")[0] == 401
    assert client.ask("/?token=wrong")[0] == 401
    status, _, headers = client.ask("/?token=secret")
    assert (status, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert "HttpOnly" in headers["Set-Cookie"]
    assert client.ask("/api/state", Cookie=cookie)[0] == 200
    client.close()
    server.close()


@pytest.mark.parametrize("open_probes", [False, True])
def test_probes_without_the_token(monkeypatch: pytest.MonkeyPatch, open_probes: bool) -> None:
    view = LiveView()
    pipeline = headrace.Pipeline(FakeSource(3), FakeModel(), [view])
    monkeypatch.setenv(TOKEN, "secret")
    rules = ServiceRules(open_probes=open_probes)
    server = LiveServer(pipeline, view, Address("0.0.0.0", 0), service=rules)
    client = Client(server.address)
    assert client.ask("/healthz")[0] == (200 if open_probes else 401)
    assert client.ask("/readyz")[0] == (503 if open_probes else 401)
    for path in ("/metrics", "/api/sources", "/", "/healthz/", "/api/settings", "/readyz/.."):
        assert client.ask(path)[0] in (401, 404)
    assert client.ask("/readyz", Authorization="Bearer secret")[0] == 503
    client.close()
    server.close()


def test_addresses() -> None:
    assert live_address("") == Address()
    assert live_address("9000") == Address(port=9000)
    assert live_address("[::1]:9000") == Address("::1", 9000)
    assert live_address("localhost:1").is_local
    assert not live_address("0.0.0.0:1").is_local
    for text in ("video.mp4", "a:b:c", "1:99999", "http://127.0.0.1:1"):
        with pytest.raises(HeadraceError, match="--view=HOST:PORT"):
            live_address(text)


def test_a_taken_port(quiet: Client) -> None:
    view = LiveView()
    with pytest.raises(HeadraceError, match="it is taken"):
        LiveServer(headrace.Pipeline(FakeSource(1), sinks=[view]), view, quiet.address)
    with pytest.raises(HeadraceError, match="--listen=127") as error:
        LiveServer(
            headrace.Pipeline(FakeSource(1), sinks=[view]),
            view,
            quiet.address,
            service=ServiceRules(),
        )
    assert error.value.where == "--listen"


def test_the_sink_does_no_work() -> None:
    """Frames are neither copied nor drawn before they are asked for, and only the last is kept."""
    view = LiveView()
    pixels = np.zeros((1080, 1920, 3), np.uint8)
    frames = [
        Frame.from_array(pixels, PixelFormat.RGB, frame=i, source="s", source_id=0)
        for i in range(3)
    ]
    for frame in frames:
        view.write(frame, headrace.FrameMeta("s", 0, frame.frame, 0, 1920, 1080))
    kept = view.frame_of(0, 0)
    assert kept is not None
    assert kept[0] is frames[-1]
    image = view.image(0, 320)
    assert image is not None
    assert view.image(0, 320) == image
    assert view.newer({0: image.number}) == []
    assert view.newer({0: image.number - 1, 4: 0}) == [0]
    view.forget(0)
    assert view.image(0, 320) is None


def test_frames_of_sources_that_are_over_are_given_up() -> None:
    """A service kept the last frame of every video that it ever had."""
    view = LiveView()
    pixels = np.zeros((48, 64, 3), np.uint8)
    for i in range(20):
        frame = Frame.from_array(pixels, PixelFormat.RGB, frame=0, source=f"s{i}", source_id=i)
        view.write(frame, headrace.FrameMeta(f"s{i}", i, 0, 0, 64, 48))
        assert view.image(i, 320) is not None
        if i:  # the first one goes on
            view.end(i)
    there = [i for i in range(20) if view.frame_of(i, 0) is not None]
    assert there == [0, *range(12, 20)]
    assert [i for i in range(20) if view.image(i, 320)] == there
