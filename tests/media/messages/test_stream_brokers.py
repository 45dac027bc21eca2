"""Brokers that keep messages, against real servers and librdkafka's mock cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from headrace import open_sink
from headrace.config.pipeline_keys import MESSAGE_SCHEMES
from headrace.config.pipeline_spec import SinkSpec
from headrace.config.pipeline_yaml import sink_text
from headrace.errors import ConfigError, MediaError
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.stream_brokers import FileBroker, KafkaBroker
from headrace.media.sinks.opening import split_spec
from headrace.meta import Detections, FrameMeta, Space
from tests.media.messages.servers import served
from tests.ports import free_port

MESSAGES = [b'{"n":%d,"sensor":{"id":"cam%d"}}' % (n, n % 2) for n in range(20)]


def test_a_file_gets_a_line_for_each(tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.jsonl"
    broker = FileBroker(BrokerAddress("events+file", "", None, str(path)))
    for part in (MESSAGES[:5], MESSAGES[5:]):
        assert broker.publish(part) == ()
    assert path.read_bytes().splitlines() == MESSAGES


def test_kafka_gets_all_with_the_partition_key_and_gives_back_what_is_too_large() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    # a producer with a mock cluster is the server; it lives as long as the producer
    options = {
        "partition-key": "sensor.id",
        "proto-cfg": "test.mock.num.brokers=1;message.max.bytes=2000",
    }
    broker = KafkaBroker(BrokerAddress("kafka", "unused", None, "cars", options=options))
    producer = broker._connected(kafka)
    large = b'{"n":"%s"}' % (b"9" * 3000)
    try:
        assert list(broker.publish([*MESSAGES, large])) == [large]
        metadata = producer.list_topics(timeout=5)
        where = ",".join(f"{b.host}:{b.port}" for b in metadata.brokers.values())
        reader = kafka.Consumer(
            {"bootstrap.servers": where, "group.id": "t", "auto.offset.reset": "earliest"}
        )
        partitions = metadata.topics["cars"].partitions
        reader.assign([kafka.TopicPartition("cars", p, 0) for p in partitions])
        got: list[Any] = []
        end = time.monotonic() + 10
        while len(got) < len(MESSAGES) and time.monotonic() < end:
            got += [m for m in reader.consume(50, 0.5) if not m.error()]
        reader.close()
    finally:
        broker.close()
    assert sorted(m.value() for m in got) == sorted(MESSAGES)
    assert all(json.loads(m.value())["sensor"]["id"].encode() == m.key() for m in got)


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    with served("redis-server", "--port", "PORT", "--dir", str(tmp_path), "--save", "") as port:
        yield port


def test_a_redis_stream_gets_all_in_order(redis_port: int) -> None:
    redis = pytest.importorskip("redis")
    address = BrokerAddress("redis", "127.0.0.1", redis_port, "cars")
    broker = broker_for(address)
    assert broker.publish(MESSAGES) == ()
    broker.close()
    reader = redis.Redis("127.0.0.1", redis_port)
    assert [fields[b"metadata"] for _, fields in reader.xrange("cars")] == MESSAGES
    reader.close()


@pytest.mark.parametrize(("scheme", "module"), [("redis", "redis"), ("amqp", "pika")])
def test_a_server_that_is_away_is_an_oserror(scheme: str, module: str) -> None:
    pytest.importorskip(module)
    port = free_port()
    broker = broker_for(BrokerAddress(scheme, "127.0.0.1", port, "t"))
    with pytest.raises(OSError, match=r"\w"):
        broker.publish(MESSAGES[:1])
    broker.close()


@pytest.mark.parametrize(
    ("scheme", "text", "topic", "options", "found"),
    [
        ("kafka", "h;9092;cars", "", {}, ("h", 9092, "cars", None)),
        ("kafka", "h;9092;cars", "people", {}, ("h", 9092, "people", None)),
        ("amqp", "h;5672;me", "cars", {"password": "p"}, ("h", 5672, "cars", "me")),
        ("redis", "", "", {"hostname": "h", "port": "6379", "topic": "t"}, ("h", 6379, "t", None)),
        ("mqtt", "h", "t", {"username": "u"}, ("h", None, "t", "u")),
    ],
)
def test_connection_strings_of_the_original(
    scheme: str, text: str, topic: str, options: dict[str, str], found: tuple[Any, ...]
) -> None:
    made = BrokerAddress.from_connection(scheme, text, topic, options, "x")
    assert (made.host, made.port, made.path, made.user) == found
    assert "'p'" not in repr(made)


@pytest.mark.parametrize(
    ("scheme", "text", "topic", "error"),
    [
        ("kafka", "h;9092", "", "topic is missing"),
        ("kafka", ";9092;t", "", "host is missing"),
        ("redis", "h;99999", "t", "port is not"),
        ("mqtt", "h;1", "a/#", "wildcard"),
    ],
)
def test_connection_strings_that_lead_nowhere(
    scheme: str, text: str, topic: str, error: str
) -> None:
    with pytest.raises(MediaError, match=error):
        BrokerAddress.from_connection(scheme, text, topic, {}, "x")


@pytest.mark.parametrize("scheme", MESSAGE_SCHEMES)
def test_every_scheme_is_taken_from_outputs_and_pipeline_files(scheme: str) -> None:
    url = f"{scheme}://host/t/u.jsonl"
    address = BrokerAddress.from_url(urlsplit(url), url)
    assert address.scheme == scheme
    assert address.path.strip("/").endswith("t/u.jsonl")
    assert split_spec(url)[0] == sink_text(url, Path("p.yml"))["kind"] == "messages"


def test_events_of_a_run_fill_a_file(tmp_path: Path) -> None:
    spec, spool = tmp_path / "out.jsonl", tmp_path / "spool"
    sink = open_sink(f"messages:events+file://{spec}?every=frame&spool={spool}")
    meta = FrameMeta(source="cam", source_id=0, frame=0, pts_ns=0, width=64, height=48)
    found = Detections([[1, 2, 3, 4]], [0.5], [0], space=Space.FRAME)
    meta.objects.append(found, 1, labels=["car"])
    sink._write(cast("Any", None), meta)
    sink.close()
    (line,) = spec.read_text().splitlines()
    assert json.loads(line)["objects"][0]["label"] == "car"


def test_a_url_stays_as_it_is_and_a_password_is_refused_everywhere() -> None:
    url = "mqtt://host/a%20b?classes=x,y"
    spec = SinkSpec(kind="messages", uri=url)
    assert (spec.text, spec.path) == (url, None)
    for text in ("mqtt://me:pw@host/t", "messages:mqtt://me:pw@host/t"):
        with pytest.raises(MediaError, match="password") as caught:
            split_spec(text)
        assert "pw" not in str(caught.value)
    with pytest.raises(MediaError, match="messages needs a URL"):
        split_spec("messages:cars.mp4")
    with pytest.raises(MediaError, match="is no URL"):
        split_spec("mqtt://[x/t")
    with pytest.raises(ConfigError, match="password") as refused:
        SinkSpec(kind="messages", uri="mqtt://me:hunter2@host/t")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigError, match="uri is none of"):
        SinkSpec(uri="rtsp://host/t")
