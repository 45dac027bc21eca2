"""Receivers on loopback, one for each kind of output, and what each has to have got.

`OUTPUTS` has a context manager for each: it takes a folder and yields the output's text and a
function that checks what came. A receiver whose server is not installed skips the test.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import av
import pytest

from tests.media.conftest import luma_of
from tests.media.messages.servers import rabbitmq, served
from tests.media.sources.test_stream_rtsp import Server, available, wait_until
from tests.ports import free_port

FRAMES = 60
# one of each frame whose red is above the threshold, 0.2
OBJECTS = sum((luma_of(frame) - 16) / 219 > 0.2 for frame in range(FRAMES))
_COMES_S = 10.0
Received = Callable[[], None]


@contextmanager
def over_udp(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        listener.bind(("127.0.0.1", 0))

        def received() -> None:
            listener.setblocking(False)
            data = b""
            try:
                while True:
                    data += listener.recv(65536)
            except BlockingIOError:
                pass
            (folder / "got.ts").write_bytes(data)
            assert images(folder / "got.ts") >= FRAMES - 1

        yield f"{prefix}udp://127.0.0.1:{listener.getsockname()[1]}", received


@contextmanager
def to_server(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    if not available():
        pytest.skip("needs python3-gi, gir1.2-gst-rtsp-server-1.0 and GStreamer's good plugins")
    server = Server()
    server.start("--record", str(folder / "got.ts"))

    def received() -> None:
        got = folder / "got.ts"
        wait_until(lambda: images(got) >= FRAMES - 2, _COMES_S)  # its parser holds the last ones

    try:
        yield prefix + server.url(path="in"), received
    finally:
        server.kill()


@contextmanager
def to_service(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    events: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def received() -> None:
            assert len(events) == OBJECTS

        yield f"{prefix}webhook+http://127.0.0.1:{server.server_port}/events", received
        server.shutdown()
        thread.join()


@contextmanager
def to_redis(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    redis = pytest.importorskip("redis")
    with served("redis-server", "--port", "PORT", "--dir", str(folder), "--save", "") as port:

        def received() -> None:
            with redis.Redis("127.0.0.1", port) as reader:
                assert reader.xlen("cars") == OBJECTS

        yield f"{prefix}redis://127.0.0.1:{port}/cars", received


@contextmanager
def to_mqtt(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    mqtt = pytest.importorskip("paho.mqtt.client")
    with served("mosquitto", "-p", "PORT") as port:
        ready, came = threading.Event(), list[bytes]()
        reader = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        reader.on_connect = lambda client, *_: client.subscribe("cars", 1)
        reader.on_subscribe = lambda *_: ready.set()
        reader.on_message = lambda _, __, message: came.append(message.payload)
        reader.connect("127.0.0.1", port)
        reader.loop_start()
        assert ready.wait(_COMES_S)

        def received() -> None:
            wait_until(lambda: len(came) >= OBJECTS, _COMES_S)
            assert len(came) == OBJECTS

        try:
            yield f"{prefix}mqtt://127.0.0.1:{port}/cars", received
        finally:
            reader.disconnect()
            reader.loop_stop()


@contextmanager
def amqp_queue(folder: Path) -> Iterator[tuple[int, Callable[[], bytes | None]]]:
    """The port of a RabbitMQ, and the next message of its topic `cars`, None if there is none."""
    pika = pytest.importorskip("pika")
    with rabbitmq(folder) as port:
        link = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))
        channel = link.channel()
        channel.queue_declare("found", durable=True)
        channel.queue_bind("found", "amq.topic", "cars")
        try:
            yield port, lambda: channel.basic_get("found", auto_ack=True)[2]
        finally:
            link.close()


@contextmanager
def to_amqp(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    with amqp_queue(folder) as (port, following):

        def received() -> None:
            bodies = [json.loads(body) for body in iter(following, None)]
            assert len(bodies) == OBJECTS

        yield f"{prefix}amqp://127.0.0.1:{port}/cars", received


@contextmanager
def to_kafka(folder: Path, prefix: str = "") -> Iterator[tuple[str, Received]]:
    """librdkafka's mock cluster speaks the protocol on a real port; no package brings a broker."""
    kafka = pytest.importorskip("confluent_kafka")
    cluster = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = cluster.list_topics(timeout=_COMES_S).brokers.values()
    where = f"127.0.0.1:{broker.port}"

    def received() -> None:
        reader = kafka.Consumer(
            {"bootstrap.servers": where, "group.id": "t", "auto.offset.reset": "earliest"}
        )
        topic = reader.list_topics("cars", timeout=_COMES_S).topics["cars"]
        reader.assign([kafka.TopicPartition("cars", number, 0) for number in topic.partitions])
        found: list[Any] = []
        end = time.monotonic() + _COMES_S
        while len(found) < OBJECTS and time.monotonic() < end:
            found += [json.loads(m.value()) for m in reader.consume(OBJECTS, 0.5) if not m.error()]
        found += reader.consume(1, 0.2)
        assert len(found) == OBJECTS
        reader.close()

    yield f"{prefix}kafka://{where}/cars", received
    cluster.purge()


@contextmanager
def to_events(folder: Path) -> Iterator[tuple[str, Received]]:
    path = folder / "events.jsonl"
    yield f"events+file://{path}", lambda: has_events(path)


@contextmanager
def to_file(folder: Path, name: str, check: Callable[[Path], None]) -> Iterator[Any]:
    path = folder / "out" / name.rpartition(":")[2]
    kind = name.rpartition(":")[0]
    yield f"{kind}:{path}" if kind else str(path), lambda: check(path)


def images(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def is_video(path: Path) -> None:
    assert images(path) == FRAMES


def has_lines(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (len(rows), sum(len(row["objects"]) for row in rows)) == (FRAMES, OBJECTS)


def has_events(path: Path) -> None:
    assert len(path.read_text().splitlines()) == OBJECTS


def has_frames(path: Path) -> None:
    found = json.loads(path.read_text())
    assert (len(found["images"]), len(found["annotations"])) == (FRAMES, OBJECTS)


def has_files(path: Path) -> None:
    assert len(list(path.iterdir())) == FRAMES


def has_boxes(path: Path) -> None:
    """Text files of frames, a line for each object."""
    files = list(path.iterdir())
    lines = sum(len(file.read_text().splitlines()) for file in files)
    assert (len(files), lines) == (FRAMES, OBJECTS)


def has_track_lines(path: Path) -> None:
    (file,) = path.iterdir()
    assert len(file.read_text().splitlines()) == OBJECTS


def has_pictures(path: Path) -> None:
    """Of every 600 seconds, what is the default, one frame and its object."""
    assert len(list((path / "images").iterdir())) == 1


def has_clips(path: Path) -> None:
    assert sum(map(images, path.iterdir())) == FRAMES


def is_playlist(path: Path) -> None:
    assert "#EXT-X-ENDLIST" in path.read_text()
    assert sum(map(images, path.parent.glob("*.ts"))) == FRAMES


@contextmanager
def to_player(folder: Path) -> Iterator[tuple[str, Received]]:
    """A player that is there before the first frame: it counts the images."""
    port, got = free_port(), bytearray()

    def play() -> None:
        end = time.monotonic() + _COMES_S
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", port)) as link:
                    link.sendall(
                        b"SETUP rtsp://x/ds-test RTSP/1.0\r\nTransport: RTP/AVP/TCP\r\n\r\n"
                        b"PLAY rtsp://x/a RTSP/1.0\r\n\r\n"
                    )
                    while piece := link.recv(1 << 16):
                        got.extend(piece)
                return
            except OSError:
                time.sleep(0.02)

    player = threading.Thread(target=play)
    player.start()

    def received() -> None:
        player.join(_COMES_S)
        data, last = bytes(got)[got.find(b"$") :], 0
        while data.startswith(b"$"):
            size = int.from_bytes(data[2:4], "big")
            last, data = last + (data[5] >> 7), data[4 + size :]
        assert last >= 10  # from the key frame on that follows when it comes late

    yield f"rtsp-server://127.0.0.1:{port}/ds-test", received


def is_table(path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(path).num_rows == OBJECTS


def is_arrow(path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    assert feather.read_table(path).num_rows == OBJECTS


OUTPUTS: dict[str, Any] = {
    "udp://": over_udp,
    "publish:udp://": lambda folder: over_udp(folder, "publish:"),
    "rtsp://": to_server,
    "publish:rtsp://": lambda folder: to_server(folder, "publish:"),
    "rtsp-server://": to_player,
    "webhook+http://": to_service,
    "messages:webhook+http://": lambda folder: to_service(folder, "messages:"),
    "redis://": to_redis,
    "messages:redis://": lambda folder: to_redis(folder, "messages:"),
    "mqtt://": to_mqtt,
    "messages:mqtt://": lambda folder: to_mqtt(folder, "messages:"),
    "amqp://": to_amqp,
    "messages:amqp://": lambda folder: to_amqp(folder, "messages:"),
    "kafka://": to_kafka,
    "messages:kafka://": lambda folder: to_kafka(folder, "messages:"),
    "out.mp4": lambda folder: to_file(folder, "o.mp4", is_video),
    "out.m3u8": lambda folder: to_file(folder, "o.m3u8", is_playlist),
    "out.jsonl": lambda folder: to_file(folder, "o.jsonl", has_lines),
    "out.json": lambda folder: to_file(folder, "o.json", has_frames),
    "out.parquet": lambda folder: to_file(folder, "o.parquet", is_table),
    "images:out": lambda folder: to_file(folder, "images:o", has_files),
    "kitti:out": lambda folder: to_file(folder, "kitti:o", has_boxes),
    "clip:out": lambda folder: to_file(folder, "clip:o", has_clips),
}

# files like those above, which the page's table leaves out
FILES: dict[str, Any] = {
    "events+file://": to_events,
    "out.mkv": lambda folder: to_file(folder, "o.mkv", is_video),
    "out.arrow": lambda folder: to_file(folder, "o.arrow", is_arrow),
    "dota:out": lambda folder: to_file(folder, "dota:o", has_boxes),
    "kitti-track:out": lambda folder: to_file(folder, "kitti-track:o", has_track_lines),
    "kitti-primary:out": lambda folder: to_file(folder, "kitti-primary:o", has_boxes),
    "kitti-objects:out": lambda folder: to_file(folder, "kitti-objects:o", has_boxes),
    "object-images:out": lambda folder: to_file(folder, "object-images:o", has_pictures),
}
