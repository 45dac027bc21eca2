"""Broker sinks of deepstream-app configs against real brokers: count, order, fields."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.media.messages.servers import served
from tests.media.messages.test_protobuf import FRAME
from tests.pipeline.conftest import DETECTOR, Run
from tests.pipeline.receivers import amqp_queue

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
_COMES_S = 20.0
SENSOR = "[sensor0]\nenable=1\ntype=Camera\nid=gate\nlocation=45.2;-75.8;40.0\ndescription=Yard\n"


class Broker(NamedTuple):
    """A broker on loopback.

    Attributes:
        port: of it.
        read: takes as many messages as the argument; each is its key and its body.
    """

    port: int
    read: Callable[[int], list[tuple[str, bytes]]]


@contextmanager
def redis_broker(folder: Path) -> Iterator[Broker]:
    redis = pytest.importorskip("redis")
    with served("redis-server", "--port", "PORT", "--dir", str(folder), "--save", "") as port:

        def read(count: int) -> list[tuple[str, bytes]]:
            with redis.Redis("127.0.0.1", port) as reader:
                return [("", fields[b"text"]) for _, fields in reader.xrange("cars")]

        yield Broker(port, read)


@contextmanager
def mqtt_broker(folder: Path) -> Iterator[Broker]:
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

        def read(count: int) -> list[tuple[str, bytes]]:
            end = time.monotonic() + _COMES_S
            while len(came) < count and time.monotonic() < end:
                time.sleep(0.05)
            return [("", body) for body in came]

        try:
            yield Broker(port, read)
        finally:
            reader.disconnect()
            reader.loop_stop()


@contextmanager
def amqp_broker(folder: Path) -> Iterator[Broker]:
    with amqp_queue(folder) as (port, following):

        def read(count: int) -> list[tuple[str, bytes]]:
            return [("", body) for body in iter(following, None)]

        yield Broker(port, read)


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Broker]:
    kafka = pytest.importorskip("confluent_kafka")
    cluster = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = cluster.list_topics(timeout=_COMES_S).brokers.values()

    def read(count: int) -> list[tuple[str, bytes]]:
        reader = kafka.Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{broker.port}",
                "group.id": "t",
                "auto.offset.reset": "earliest",
            }
        )
        topic = reader.list_topics("cars", timeout=_COMES_S).topics["cars"]
        reader.assign([kafka.TopicPartition("cars", number, 0) for number in topic.partitions])
        end, got = time.monotonic() + _COMES_S, list[Any]()
        while len(got) < count and time.monotonic() < end:
            got += [m for m in reader.consume(count, 0.5) if not m.error()]
        reader.close()
        return [((m.key() or b"").decode(), m.value()) for m in got]

    yield Broker(broker.port, read)
    cluster.purge()


def full(metas: list[Any], bodies: list[bytes], scale: float) -> None:
    """Messages of the full schema: one for each object, in the order of the frames."""
    objects = [obj for meta in metas for obj in meta.objects]
    read = [json.loads(body) for body in bodies]
    assert len(read) == len(objects)
    assert len({message["messageid"] for message in read}) == len(read)
    for message, obj in zip(read, objects, strict=True):
        assert list(message) == [
            "messageid", "mdsversion", "@timestamp", "place", "sensor", "analyticsModule",
            "object", "event", "videoPath",
        ]  # fmt: skip
        assert message["mdsversion"] == "1.0"
        assert message["sensor"]["id"] == "gate"
        box = message["object"]["bbox"]
        corners = (obj.left, obj.top, obj.left + obj.width, obj.top + obj.height)
        assert list(box.values()) == pytest.approx([v * scale for v in corners], abs=1.01)
        assert message["object"][obj.label]["confidence"] == pytest.approx(obj.confidence, abs=1e-5)


def minimal(metas: list[Any], bodies: list[bytes], scale: float) -> None:
    """Messages of the minimal schema: one for each frame."""
    read = [json.loads(body) for body in bodies]
    assert [message["id"] for message in read] == [str(meta.frame) for meta in metas]
    for message, meta in zip(read, metas, strict=True):
        assert message["version"] == "4.0"
        assert message["sensorId"] == "gate"
        rows = [row.split("|") for row in message["objects"]]
        assert [row[5] for row in rows] == [obj.label for obj in meta.objects]


def protobuf(metas: list[Any], bodies: list[bytes], scale: float) -> None:
    """Messages in Protobuf: one for each frame."""
    read = [FRAME.FromString(body) for body in bodies]
    assert [message.id for message in read] == [str(meta.frame) for meta in metas]
    for message, meta in zip(read, metas, strict=True):
        assert message.sensorId == "gate"
        assert [o.type for o in message.objects] == [obj.label for obj in meta.objects]


CASES: list[tuple[Any, str, str, str, str, int, Any]] = [
    # broker, adaptor, connection, keys, broker's file, frames between messages, check
    (kafka_broker, "kafka", "127.0.0.1;{port};cars", "msg-conv-payload-type=0",
     'partition-key=sensor.id\nproto-cfg="message.timeout.ms=20000;acks=all"\n', 0, full),
    (kafka_broker, "kafka", "127.0.0.1;{port}", "msg-conv-payload-type=1\n"
     "msg-conv-msg2p-new-api=1\nmsg-conv-frame-interval=2\ntopic=cars", "partition-key=sensorId\n",
     2, minimal),
    (mqtt_broker, "mqtt", "127.0.0.1;{port}", "msg-conv-payload-type=1\nmsg-conv-msg2p-new-api=1\n"
     "msg-conv-frame-interval=1\ntopic=cars", "username=anybody\npassword=secret\n", 1, minimal),
    (redis_broker, "redis", "127.0.0.1;{port}", "msg-conv-payload-type=0\ntopic=cars",
     "streamsize=1000\npayloadkey=text\n", 0, full),
    (amqp_broker, "amqp", "127.0.0.1;{port};guest", "msg-conv-payload-type=2\n"
     "msg-conv-msg2p-new-api=1\nmsg-conv-frame-interval=1\ntopic=cars",
     "password=guest\nexchange=amq.topic\n", 1, protobuf),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[6].__name__}")
def test_a_broker_gets_what_the_config_says(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]
) -> None:
    make, adaptor, connection, keys, settings, every, check = case
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "sensors.txt").write_text(SENSOR)
    (tmp_path / "broker.txt").write_text(f"[message-broker]\n{settings}")
    with make(tmp_path) as broker:
        report, metas = run(
            DETECTOR + "[streammux]\nwidth=1280\nheight=768\n"
            f"[sink0]\nenable=1\ntype=6\nmsg-broker-proto-lib=libnvds_{adaptor}_proto.so\n"
            f"msg-broker-conn-str={connection.format(port=broker.port)}\n{keys}\n"
            f"msg-conv-config={tmp_path}/sensors.txt\nmsg-broker-config={tmp_path}/broker.txt\n"
        )
        (sent,) = report.messages
        got = broker.read(sent.sent)
    assert (sent.waiting, sent.lost, sent.refused) == (0, 0, 0)
    assert len(got) == sent.sent > 0
    if adaptor == "kafka":
        assert {key for key, _ in got} == {"gate"}
    check(metas[::every] if every else metas, [body for _, body in got], 0.5)
