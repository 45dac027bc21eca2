"""Ten thousand events to each broker, its server killed for 20 s in the middle.

    python -m benchmarks messages

Servers are Debian's mosquitto, redis-server (append-only file) and rabbitmq-server; Kafka is
librdkafka's mock cluster, in a process of its own that stops for 20 s. A reader counts what
arrives. `RSS` is the growth of the sending process from 1,000 events on; `a second` how many of
3,000 events at once the server takes before.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.event import EventObject, MessageEvent
from headrace.media.messages.payload import payloads
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool
from tests.media.messages.servers import program, rabbitmq_environment
from tests.ports import free_port

EVENTS, AWAY_S, LIMIT_S = 10_000, 20.0, 150.0
AT_ONCE = 3000
RATE = 500.0  # events a second, so that the server is away while they come
Ids = list[tuple[str, bool]]


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Server:
    """A process that is killed and started again, and a thread that reads from it."""

    def __init__(self, scheme: str, folder: Path) -> None:
        self.scheme, self.folder, self.port = scheme, folder, free_port()
        self.got: Ids = []
        self.stop = threading.Event()
        self.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self) -> None:
        log = (self.folder / "server.log").open("ab")
        self.process = subprocess.Popen(
            self.command(), stdout=log, stderr=log, env=os.environ | self.environment(),
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.scheme}: the server does not start")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def away(self) -> None:
        self.kill()
        time.sleep(AWAY_S)
        self.start()

    def close(self) -> None:
        self.stop.set()
        self._reader.join(15)
        self.kill()

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def messages(self) -> Iterator[tuple[bytes, bool]]:
        """Messages of a connection, True with those that the server marks as delivered again.

        An exception where the connection breaks.
        """
        raise NotImplementedError

    def _read(self) -> None:
        while not self.stop.is_set():
            try:
                for message, again in self.messages():
                    found = json.loads(message)
                    self.got.append((found["id"], again or found.get("redelivered", False)))
            except Exception:  # of any client: the server is away
                time.sleep(0.1)


class Mosquitto(Server):
    def command(self) -> list[str]:
        config = self.folder / "m.conf"
        config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
            f"persistence true\npersistence_location {self.folder}/\nautosave_interval 1\n"
            "user root\n"
        )
        return ["mosquitto", "-c", str(config)]

    def _read(self) -> None:
        import paho.mqtt.client as mqtt

        def take(_client: Any, _data: Any, message: Any) -> None:
            found = json.loads(message.payload)
            again = message.dup or found.get("redelivered", False)
            self.got.append((found["id"], again))

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "reader", clean_session=False)
        client.on_connect = lambda *_: client.subscribe("events", 1)
        client.on_message = take
        client.reconnect_delay_set(1, 1)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        self.stop.wait()
        client.disconnect()
        client.loop_stop()


class Redis(Server):
    _last = b"0"

    def command(self) -> list[str]:
        return [
            "redis-server", "--port", str(self.port), "--dir", str(self.folder), "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
        ]  # fmt: skip

    def messages(self) -> Iterator[tuple[bytes, bool]]:
        import redis

        client = redis.Redis("127.0.0.1", self.port)
        while not self.stop.is_set():
            for _, rows in client.xread({"events": self._last}, 500, 200) or []:
                for self._last, fields in rows:
                    yield fields[b"metadata"], False


class RabbitMq(Server):
    def command(self) -> list[str]:
        return [program("rabbitmq-server") or "rabbitmq-server"]

    def environment(self) -> dict[str, str]:
        return rabbitmq_environment(self.folder, self.port)

    def messages(self) -> Iterator[tuple[bytes, bool]]:
        import pika

        address = pika.ConnectionParameters("127.0.0.1", self.port, heartbeat=0)
        channel = pika.BlockingConnection(address).channel()
        channel.queue_declare("events", durable=True)
        channel.queue_bind("events", "amq.topic", "events")
        for method, _, body in channel.consume("events", inactivity_timeout=0.2):
            if self.stop.is_set():
                return
            if method is not None:
                yield body, method.redelivered
                channel.basic_ack(method.delivery_tag)


_MOCK = """
import sys, time, confluent_kafka
producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
print(next(iter(producer.list_topics(timeout=9).brokers.values())).port, flush=True)
time.sleep(1e6)
"""


class KafkaMock(Server):
    """The mock cluster keeps messages in memory alone: it is stopped, not killed."""

    _next = 0

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MOCK], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def away(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(AWAY_S)
        os.kill(self.process.pid, signal.SIGCONT)

    def messages(self) -> Iterator[tuple[bytes, bool]]:
        import confluent_kafka as kafka

        reader = kafka.Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{self.port}", "group.id": "bench",
                "auto.offset.reset": "earliest", "log_level": 0,
            }
        )  # fmt: skip
        while not (found := reader.list_topics("events", timeout=5).topics["events"].partitions):
            time.sleep(0.2)
        reader.assign([kafka.TopicPartition("events", number, 0) for number in found])
        while not self.stop.is_set():
            for message in reader.consume(500, 0.2):
                if not message.error():
                    yield message.value(), False
        reader.close()


SERVERS: dict[str, tuple[str, str, type[Server]]] = {
    "MQTT": ("mqtt", "mosquitto", Mosquitto),
    "Redis streams": ("redis", "redis-server", Redis),
    "AMQP": ("amqp", "rabbitmq-server", RabbitMq),
    "Kafka": ("kafka", "", KafkaMock),
}


def event_of(number: int) -> MessageEvent:
    objects = tuple(EventObject(0, "car", 0.5, (10.0, 20.0, 30.0, 40.0), n) for n in range(3))
    return MessageEvent("frame", "video.mp4", 0, number, number * 40_000_000, objects)


def rate_of(sender: Sender) -> float:
    """Messages a second that the server acknowledges when all are there."""
    events = [event_of(EVENTS + number) for number in range(AT_ONCE)]
    many = [message for event in events for message in payloads(event)]
    sender.put(many[0])
    _wait(lambda: sender.sent == 1, time.monotonic() + 10)  # connected
    start = time.monotonic()
    for message in many[1:]:
        sender.put(message)
    _wait(lambda: sender.sent == len(many), start + LIMIT_S, 0.005)
    return (len(many) - 1) / (time.monotonic() - start)


def measure(
    scheme: str, kind: type[Server], folder: Path
) -> tuple[int, int, int, float, float, float]:
    """Events that arrived, copies, copies without a mark, seconds, growth of RSS in MiB, rate."""
    server = kind(scheme, folder)
    try:
        time.sleep(2.0)  # until the reader is there
        address = BrokerAddress(scheme, "127.0.0.1", server.port, "events")
        sender = Sender(Spool(folder / "spool"), broker_for(address))
        rate = rate_of(sender)
        start = time.monotonic()
        before, most = 0.0, 0.0
        pause: threading.Thread | None = None
        expected = set()
        for number in range(EVENTS):
            event = event_of(number)
            expected.add(event.id)
            for message in payloads(event):
                sender.put(message)
            if number == 1000:
                before = rss_mib()
            if number == EVENTS // 2:
                pause = threading.Thread(target=server.away)
                pause.start()
            if number % 100 == 0:
                most = max(most, rss_mib())
                time.sleep(max(0.0, start + number / RATE - time.monotonic()))
        assert pause is not None
        pause.join()
        end = start + LIMIT_S
        _wait(lambda: expected <= {one for one, _ in server.got}, end)
        seconds = time.monotonic() - start
        sender.close(30)
        most = max(most, rss_mib())
    finally:
        server.close()
    seen: set[str] = set()
    copies = unmarked = 0
    for one, marked in server.got:
        copies += one in seen
        unmarked += one in seen and not marked
        seen.add(one)
    return len(seen & expected), copies, unmarked, seconds, most - before, rate


def _wait(condition: Callable[[], bool], end: float, look_s: float = 0.2) -> None:
    while not condition() and time.monotonic() < end:
        time.sleep(look_s)


def report() -> None:
    table = Table(title="10,000 events, the server away for 20 s", title_justify="left")
    for heading in (
        "broker",
        "arrived",
        "copies",
        "of them unmarked",
        "seconds",
        "RSS, MiB",
        "a second",
    ):
        table.add_column(heading, justify="left" if heading == "broker" else "right")
    for name, (scheme, server, kind) in SERVERS.items():
        if server and not program(server):
            table.add_row(name, f"no {server}")
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            found = measure(scheme, kind, Path(folder))
        arrived, copies, unmarked, seconds, grown, rate = found
        table.add_row(
            name, str(arrived), str(copies), str(unmarked), f"{seconds:.0f}", f"{grown:.1f}",
            f"{rate:.0f}",
        )  # fmt: skip
    Console().print(table)
