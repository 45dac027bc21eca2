"""Messages that come in, from librdkafka's mock cluster and small servers of MQTT and Redis."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headrace.errors import MediaError
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.receivers import MessageReceiver, receiver_for
from headrace.media.messages.stream_brokers import KafkaBroker
from tests.media.messages.rogue import rogue
from tests.ports import free_port

MESSAGES = [b'{"n":%d}' % n for n in range(5)]


def collected(
    receiver: MessageReceiver, most: int, send: Callable[[], object] = lambda: None
) -> list[bytes]:
    got: list[bytes] = []
    end = time.monotonic() + 20
    try:
        while len(got) < most and time.monotonic() < end:
            got += receiver.receive()
            send()
    finally:
        receiver.close()
    return got


def test_kafka_gives_what_its_topics_get() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    options = {"proto-cfg": "test.mock.num.brokers=1"}
    broker = KafkaBroker(BrokerAddress("kafka", "unused", None, "orders", options=options))
    producer = broker._connected(kafka)
    try:
        broker.publish([b"old"])
        where = next(iter(producer.list_topics(timeout=5).brokers.values()))
        options = {"consumer-group-id": "gate", "proto-cfg": '"auto.offset.reset=earliest"'}
        url = f"kafka://{where.host}:{where.port}/orders,others"
        sent = iter(MESSAGES)

        def send() -> None:
            for message in sent:
                broker.publish([message])

        got = collected(receiver_for(url, options), 6, send)
    finally:
        broker.close()
    assert sorted(got) == sorted([b"old", *MESSAGES])


@contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that answers one connection after the other; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = server.accept()
                    with link, contextlib.suppress(OSError):
                        answer(link)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def mqtt_server(topics: list[bytes]) -> Callable[[socket.socket], None]:
    def answer(link: socket.socket) -> None:
        link.recv(1024)  # CONNECT
        link.sendall(b"\x20\x02\x00\x00")
        packet = link.recv(1024)  # SUBSCRIBE: header, length, id, and each topic with its QoS
        rest, count = packet[4:], 0
        while rest:
            length = int.from_bytes(rest[:2], "big")
            topics.append(rest[2 : 2 + length])
            rest, count = rest[3 + length :], count + 1
        link.sendall(b"\x90" + bytes([2 + count]) + packet[2:4] + b"\x01" * count)
        for message in MESSAGES:
            body = b"\x00\x01t" + message
            link.sendall(b"\x30" + bytes([len(body)]) + body)
        link.recv(1024)

    return answer


def test_mqtt_gives_what_its_topics_get() -> None:
    pytest.importorskip("paho.mqtt.client")
    topics: list[bytes] = []
    with served(mqtt_server(topics)) as port:
        assert (
            collected(receiver_for(f"mqtt://127.0.0.1:{port}/one%2Ftwo,t%2C3", {}), 5) == MESSAGES
        )
    assert topics == [b"one/two", b"t,3"]


def redis_server(link: socket.socket) -> None:
    """Answers XREVRANGE with one old entry, and each XREAD behind it with the new ones, once."""
    given = False
    while data := link.recv(4096):
        words = data.upper()
        if b"XREVRANGE" in words:
            link.sendall(b"*1\r\n*2\r\n$3\r\n7-0\r\n*2\r\n$8\r\nmetadata\r\n$3\r\nold\r\n")
        elif b"XREAD" in words:
            if given or b"7-0" not in words:
                link.sendall(b"*-1\r\n")
                continue
            given = True
            rows = b"".join(
                b"*2\r\n$3\r\n8-%d\r\n*2\r\n$8\r\nmetadata\r\n$%d\r\n%s\r\n" % (n, len(m), m)
                for n, m in enumerate(MESSAGES)
            )
            link.sendall(b"*1\r\n*2\r\n$4\r\ncars\r\n*5\r\n" + rows)
        else:
            link.sendall(b"+OK\r\n" * max(1, data.count(b"*")))


def test_redis_gives_the_entries_behind_the_newest() -> None:
    pytest.importorskip("redis")
    with served(redis_server) as port:
        assert collected(receiver_for(f"redis://127.0.0.1:{port}/cars", {}), 5) == MESSAGES


@pytest.mark.parametrize("scheme", ["mqtt", "redis", "amqp"])
def test_a_server_that_is_away_is_an_oserror(scheme: str) -> None:
    receiver = receiver_for(f"{scheme}://127.0.0.1:{free_port()}/t", {})
    for _ in range(2):
        with pytest.raises(OSError):
            receiver.receive()
    receiver.close()


@pytest.mark.parametrize("scheme", ["mqtt", "redis"])
@pytest.mark.parametrize("way", ["endless", "junk", "silent", "closed"])
def test_a_server_that_behaves_badly_is_an_error_soon(scheme: str, way: str) -> None:
    with rogue(scheme, way) as port:
        receiver = receiver_for(f"{scheme}://127.0.0.1:{port}/t", {})
        raised = False
        for _ in range(40):
            try:
                receiver.receive()
            except Exception:  # a client's library raises anything
                raised = True
                break
        assert raised
        receiver.close()


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("events+file:///a.jsonl", "gives no messages"),
        ("mqtt://host", "the topic is missing"),
        ("kafka:///t", "the host is missing"),
    ],
)
def test_urls_that_lead_nowhere(url: str, wanted: str) -> None:
    with pytest.raises(MediaError, match=wanted):
        receiver_for(url, {})
