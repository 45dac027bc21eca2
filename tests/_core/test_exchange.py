"""A server that behaves badly costs its exchange: no message, no memory, no thread."""

from __future__ import annotations

import json
import threading
import tracemalloc
from itertools import product
from pathlib import Path

import pytest

from headrace._core import exchange
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool
from tests.media.messages.rogue import WAYS, rogue
from tests.pipeline.test_pipeline_dynamic import wait_until
from tests.profiles import thinned

PACKAGES = {
    "webhook+http": "http", "redis": "redis", "mqtt": "paho.mqtt.client", "amqp": "pika",
    "kafka": "confluent_kafka",
}  # fmt: skip


@pytest.mark.parametrize(("scheme", "way"), thinned(product(PACKAGES, WAYS), 4))
def test_no_message_and_no_memory_goes_to_a_bad_server(
    scheme: str,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip(PACKAGES[scheme])
    monkeypatch.setattr(exchange, "ANSWER_S", 0.15)
    tracemalloc.start()
    with rogue(scheme, way) as port:
        broker = broker_for(BrokerAddress(scheme, "127.0.0.1", port, "/t"))
        sender = Sender(Spool(tmp_path), broker)
        for n in range(100):
            sender.put(b'{"n":%d}' % n)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        wait_until(lambda: sender.failures > 0, 30)
        assert sender.close(0.4) == 100
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sender._thread.join(10)
    assert not sender._thread.is_alive()
    assert sender.last_error
    assert peak - before < 8 << 20
    assert capfd.readouterr().err == ""
    spool, kept = Spool(tmp_path), list[int]()
    while batch := spool.peek():
        kept += [json.loads(message)["n"] for message, _ in batch]
        spool.ack()
    spool.close()
    assert kept == list(range(100))


def test_an_answer_with_a_long_text_is_no_acknowledgement(tmp_path: Path) -> None:
    with rogue("webhook+http", "endless") as port:
        broker = broker_for(BrokerAddress("webhook+http", "127.0.0.1", port, "/t"))
        with pytest.raises(ConnectionError, match="more than 64 kB"):
            broker.publish([b"{}"])
        broker.close()


def test_who_waits_comes_back_when_the_end_comes() -> None:
    with rogue("webhook+http", "silent") as port:
        broker = broker_for(BrokerAddress("webhook+http", "127.0.0.1", port, "/t"))
        threading.Timer(0.2, broker.stop).start()
        with pytest.raises(OSError, match=r"\w"):
            broker.publish([b"{}"])
        broker.close()
