"""Messages arrive: crashes, restarts and a broker that is away lose none."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import open_sink
from headrace.errors import MediaError
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.converter import read_converter_config
from headrace.media.messages.event import EventFilter, EventObject, MessageEvent
from headrace.media.messages.payload import payloads
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool
from headrace.meta import Detections, FrameMeta, Space
from headrace.meta.analytics import FrameAnalytics, ObjectAnalytics
from tests.ports import free_port
from tests.profiles import examples


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.sampled_from(["put", "put", "peek", "ack", "crash", "torn"]), max_size=60))
def test_any_order_of_crash_restart_and_ack_loses_nothing(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), 0
        got: list[int] = []
        pending: list[int] = []
        spool = Spool(folder, segment_bytes=40)
        for step in steps:
            if step == "put":
                spool.append(b"%d" % made)
                made += 1
            elif step == "peek":
                pending = [int(m) for m, _ in spool.peek(3)]
            elif step == "ack":
                got += pending
                spool.ack()
                pending = []
            else:
                spool.close()
                pending = []
                if step == "torn":  # the first bytes of a record that was never finished
                    newest = max(folder.glob("*.seg"), default=None)
                    if newest:
                        with newest.open("ab") as file:
                            file.write(b"\x40\0\0")
                    (folder / "cursor").write_bytes(b"torn")
                spool = Spool(folder, segment_bytes=40)
        while batch := spool.peek(5):
            got += [int(m) for m, _ in batch]
            spool.ack()
        spool.close()
        assert set(got) == set(range(made))


def test_the_limit_takes_the_oldest_and_counts_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit_bytes=200, segment_bytes=50)
    for i in range(50):
        spool.append(b"%02d" % i)
    left = [int(m) for m, _ in spool.peek(100)]
    assert left == list(range(50 - len(left), 50))
    assert spool.lost == 50 - len(left)
    with pytest.raises(MediaError, match="another run"):
        Spool(tmp_path)
    spool.close()


def test_refused_messages_do_not_fill_the_disk(tmp_path: Path) -> None:
    spool = Spool(tmp_path, refused_bytes=100)
    for i in range(0, 100, 5):
        spool.set_aside([b"%09d" % n for n in range(i, i + 5)])
    spool.set_aside([b"last"])
    spool.close()
    left = [(tmp_path / name).read_text().split() for name in ("refused.1.jsonl", "refused.jsonl")]
    assert left == [[f"{n:09d}" for n in range(90, 100)], ["last"]]
    assert spool.dropped_refused_bytes == 900


class _Flaky:
    """Takes messages, but fails as often as asked after it took the first of a batch."""

    def __init__(self, failures: int) -> None:
        self.left, self.got = failures, list[bytes]()

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        self.got += messages[:1] if self.left else messages
        if self.left:
            self.left -= 1
            raise ConnectionError("away")
        return ()

    def close(self) -> None:
        pass

    def stop(self) -> None:
        pass


def test_a_broker_that_comes_back_gets_everything_duplicates_marked(tmp_path: Path) -> None:
    broker = _Flaky(2)
    sender = Sender(Spool(tmp_path), broker)
    for i in range(200):
        sender.put(b'{"n":%d}' % i)
    assert sender.close(5) == 0
    rows = [json.loads(m) for m in broker.got]
    assert {r["n"] for r in rows} == set(range(200))
    assert [r["n"] for r in rows if "redelivered" not in r] == sorted(
        {r["n"] for r in rows if "redelivered" not in r}
    )
    assert sender.failures == 2


def test_a_broker_that_stays_away_leaves_all_to_the_next_run(tmp_path: Path) -> None:
    sender = Sender(Spool(tmp_path), _Flaky(10**9))
    sender.put(b'{"n":1}')
    assert sender.close(0.05) > 0
    broker = _Flaky(0)
    assert Sender(Spool(tmp_path), broker).close(5) == 0
    assert json.loads(broker.got[0]) == {"redelivered": True, "n": 1}


def _event() -> MessageEvent:
    obj = EventObject(0, "car", 0.5, (1.0, 2.0, 3.0, 4.0), 7)
    named = replace(obj, attributes=(("color", "red"), ("type", "sedan")))
    return MessageEvent("first", "a.mp4", 0, 3, 99, (obj, named))


def test_payloads_of_the_three_schemas(tmp_path: Path) -> None:
    file = tmp_path / "msgconv.txt"
    file.write_text("[sensor0]\nenable=1\nid=CAM_1\nlocation=45.2;-75.4;48\n[place0]\nname=HWY\n")
    config = read_converter_config(file)
    (own,) = map(json.loads, payloads(_event()))
    assert (own["event"], own["objects"][1]["object_id"]) == ("first", 7)
    (small,) = map(json.loads, payloads(_event(), "minimal", config))
    assert small["sensorId"] == "CAM_1"
    assert small["objects"] == ["7|1|2|4|6|car", "7|1|2|4|6|car|#|red|sedan|0.5"]
    event = _event()
    full = [json.loads(m) for m in payloads(event, "deepstream", config)]
    assert len({m["messageid"] for m in full}) == 2
    assert full == [json.loads(m) for m in payloads(event, "deepstream", config)]
    assert full[0]["sensor"]["location"] == {"lat": 45.2, "lon": -75.4, "alt": 48.0}
    assert full[0]["object"]["bbox"]== {
        "topleftx": 1, "toplefty": 2, "bottomrightx": 4, "bottomrighty": 6
    }  # fmt: skip
    assert full[1]["object"]["car"] == {"confidence": 0.5, "color": "red", "type": "sedan"}
    assert full[0]["place"]["name"] == "HWY"
    assert full[0]["place"]["place-sub-field"]["coordinate"] == {"x": 0.0, "y": 0.0, "z": 0.0}
    assert (full[0]["analyticsModule"], full[0]["event"]["type"]) == (None, "")


@pytest.mark.parametrize("schema", ["headrace", "deepstream", "minimal"])
def test_counts_of_the_frame_are_in_every_schema(schema: str) -> None:
    counts = FrameAnalytics(inside={"yard": 2}, crossed_total={"gate": 5}).to_dict()
    for message in payloads(replace(_event(), analytics=counts), schema):
        assert json.loads(message)["analytics"] == counts
    assert "analytics" not in json.loads(payloads(_event(), schema)[0])


class _Hook(BaseHTTPRequestHandler):
    got: ClassVar[list[bytes]] = []
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _meta(frame: int) -> FrameMeta:
    return FrameMeta(source="cam", source_id=0, frame=frame, pts_ns=frame, width=64, height=48)


def test_frames_without_objects_make_no_event() -> None:
    assert EventFilter("frame").event(_meta(0)) is None


def test_crossings_make_events(tmp_path: Path) -> None:
    chosen = EventFilter("crossing", ["car"])
    for frame, crossed in enumerate(((), ("gate",), ("gate", "exit"), ())):
        meta = _meta(frame)
        found = Detections([[1, 2, 3, 4], [5, 6, 7, 8]], [0.5, 0.75], [0, 1], space=Space.FRAME)
        meta.objects.append(found, 1, labels=["car", "dog"])
        meta.analytics = FrameAnalytics()
        for i in range(2):
            meta.objects.analytics[i] = ObjectAnalytics(regions=("yard",), crossed=crossed)
        event = chosen.event(meta)
        if not crossed:
            assert event is None
            continue
        assert event is not None
        (message,) = map(json.loads, payloads(event, "headrace"))
        assert message["event"] == "crossing"
        (car,) = message["objects"]
        assert (car["label"], car["crossed"], car["regions"]) == ("car", list(crossed), ["yard"])
    assert chosen.counted


def test_a_webhook_gets_each_message_once(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = urlsplit(f"webhook+http://127.0.0.1:{server.server_port}/in")
    _Hook.got.clear()
    sender = Sender(Spool(tmp_path), broker_for(BrokerAddress.from_url(url, "hook")))
    for i in range(50):
        sender.put(b'{"n":%d}' % i)
    assert sender.close(10) == 0
    server.shutdown()
    server.server_close()
    assert [json.loads(m)["n"] for m in _Hook.got] == list(range(50))


def test_what_a_service_refuses_for_good_is_set_aside(tmp_path: Path) -> None:
    class Picky(_Hook):
        bodies: ClassVar[list[bytes]] = []

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(422 if b"2" in body else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            self.bodies.append(body)

    server = HTTPServer(("127.0.0.1", 0), Picky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        broker = broker_for(BrokerAddress("webhook+http", "127.0.0.1", server.server_port, "/"))
        spool = Spool(tmp_path)
        sender = Sender(spool, broker, mark=False)
        for n in range(4):
            sender.put(b'{"n":%d}' % n)
        assert sender.close() == 0
    finally:
        server.shutdown()
        server.server_close()
    assert Picky.bodies == [b'{"n":%d}' % n for n in range(4)]
    assert (sender.sent, sender.refused, sender.failures) == (3, 1, 0)
    assert (tmp_path / "refused.jsonl").read_bytes() == b'{"n":2}\n'


def test_outputs_with_a_password_or_a_wrong_option_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="password") as caught:
        open_sink("mqtt://me:hunter2@host/t")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(MediaError, match="every=0"):
        open_sink("webhook+http://host/t?every=0")
    with pytest.raises(MediaError, match="topic is missing"):
        open_sink("mqtt://host")


def _mqtt_packets(link: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Type and content of each packet that a client sends, to the end of the connection."""
    stream = link.makefile("rb")
    while first := stream.read(1):
        length = shift = 0
        while True:
            (byte,) = stream.read(1)
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield first[0] >> 4, stream.read(length)


def test_a_server_that_dies_amid_a_batch_gets_all_of_it_again() -> None:
    """It may have lost what it acknowledged: mosquitto does, now and then, when it is killed."""
    connections: list[list[bytes]] = []

    def serve(listener: socket.socket) -> None:
        for acknowledged in (1, 3):
            link, _ = listener.accept()
            connections.append([])
            for kind, content in _mqtt_packets(link):
                if kind == 1:
                    link.sendall(b"\x20\x02\x00\x00")  # connected
                if kind == 3:
                    topic = 2 + int.from_bytes(content[:2], "big")
                    connections[-1].append(content[topic + 2 :])
                    if len(connections[-1]) <= acknowledged:
                        link.sendall(b"\x40\x02" + content[topic : topic + 2])
                    if acknowledged == 1 and len(connections[-1]) == 3:
                        break
            link.shutdown(socket.SHUT_RDWR)
            link.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        port = listener.getsockname()[1]
        broker = broker_for(BrokerAddress("mqtt", "127.0.0.1", port, "events"))
        messages = [b"one", b"two", b"three"]
        with pytest.raises(ConnectionError, match="was lost"):
            broker.publish(messages)
        broker.close()
        assert broker.publish(messages) == []
        broker.close()
        server.join(5)
    assert connections == [messages, messages]


@pytest.mark.skipif(not shutil.which("mosquitto"), reason="needs the server mosquitto")
@pytest.mark.slow
def test_mosquitto_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    mqtt = pytest.importorskip("paho.mqtt.client")
    port = free_port()
    config = tmp_path / "mosquitto.conf"
    config.write_text(  # what is subscribed to outlives the server, and messages wait for it
        f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\npersistence true\n"
        f"persistence_location {tmp_path}/\nautosave_interval 1\nautosave_on_changes true\n"
    )

    def serve() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["mosquitto", "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.02)
        return process

    got: set[int] = set()
    ready = threading.Event()
    reader = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "reader", clean_session=False)
    reader.on_connect = lambda *_: reader.subscribe("t", 1)
    reader.on_subscribe = lambda *_: ready.set()
    reader.on_message = lambda _c, _d, m: got.add(json.loads(m.payload)["n"])
    reader.reconnect_delay_set(1, 1)
    server = serve()
    try:
        reader.connect("127.0.0.1", port)
        reader.loop_start()
        assert ready.wait(5)
        url = urlsplit(f"mqtt://127.0.0.1:{port}/t")
        sender = Sender(Spool(tmp_path / "spool"), broker_for(BrokerAddress.from_url(url, "mqtt")))
        for i in range(100):
            sender.put(b'{"n":%d}' % i)
        _until(lambda: len(got) == 100)
        server.kill()
        server.wait()
        for i in range(100, 300):
            sender.put(b'{"n":%d}' % i)
        _until(lambda: sender.failures > 0, 8)
        server = serve()
        assert sender.close(10) == 0
        _until(lambda: len(got) == 300)
    finally:
        reader.disconnect()
        reader.loop_stop()
        server.kill()
        server.wait()
    assert got == set(range(300))


def _until(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
