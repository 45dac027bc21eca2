"""Brokers: how a batch of messages reaches an MQTT server, a web service or another broker."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from headrace._core.exchange import ANSWER_S, Exchange
from headrace._core.lazy import import_extra
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.amqp import AmqpBroker
from headrace.media.messages.connections import mqtt_client
from headrace.media.messages.stream_brokers import FileBroker, KafkaBroker, RedisBroker

_LOOK_S = 0.1  # between two looks at the connection
_IDLE_S = 45.0  # less than the 60 s after which a server may miss a client
_PART_BYTES = 16 << 10
# Bad request, too large, unsupported type, unprocessable: the same message is refused again. What a
# user may mend meanwhile (a wrong address or token, too many requests) is tried again instead.
_REFUSES_CONTENT = frozenset((400, 413, 415, 422))
_MQTT_MOST_BYTES = 268_435_455 - 65_537  # of a packet, less the longest topic


class Broker(Protocol):
    """Takes messages; used from one thread."""

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Return once the other side has answered all of them.

        Returns:
            Those that it refuses for what is in them: no later attempt would do.

        Raises:
            OSError: it has not; some may have arrived.
        """

    def close(self) -> None:
        """End the connection; `publish` makes a new one."""

    def stop(self) -> None:
        """Let `publish` come back at once and for good; called from another thread."""


def broker_for(address: BrokerAddress) -> Broker:
    """The client of an address; nothing is connected yet.

    Raises:
        MissingExtraError: its package is not installed.
    """
    protocol = address.scheme.partition("+")[0]
    if protocol in _PACKAGES:
        package, extra, kind = _PACKAGES[protocol]
        import_extra(package, extra)
        return kind(address)
    return FileBroker(address) if protocol == "events" else WebhookBroker(address)


class MqttBroker:
    """Publishes with QoS 1 and waits for every PUBACK.

    The connection is served while messages are on their way, by the thread that sends them. One
    that was idle is made anew: the server may have ended it.
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._exchange = Exchange()
        self._client: Any = None
        self._lost = False
        self._used = 0.0

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Publish to the topic; an OSError if one is not acknowledged in time.

        Also if the connection is lost amid them: a server that dies may have acknowledged messages
        that it has neither given on nor written to its disk, so all are sent again.
        """
        if self._client is None or self._lost or monotonic() - self._used > _IDLE_S:
            self.close()
            self._connect()
        self._exchange.begin(sum(map(len, messages)))
        try:
            sent = [
                self._client.publish(self._address.path, m, qos=1)
                for m in messages
                if len(m) <= _MQTT_MOST_BYTES
            ]
            while not all(info.is_published() for info in sent):
                self._serve("the connection was lost")
        except (RuntimeError, ValueError) as error:  # the client's words for a lost connection
            raise ConnectionError(str(error)) from error
        self._used = monotonic()
        return [m for m in messages if len(m) > _MQTT_MOST_BYTES]

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            self._exchange.begin()
            client.disconnect()
            client.loop(0)
            link = client.socket()
            if link is not None:
                link.close()

    def stop(self) -> None:
        """Let `publish` come back."""
        self._exchange.stop()

    def _serve(self, lost: str) -> None:
        """Let the client read and write.

        Raises:
            OSError: the connection is gone, or the time is over.
        """
        code = self._client.loop(self._exchange.left_s(_LOOK_S))
        if self._lost or code:
            self._lost = True
            raise ConnectionError(lost)

    def _connect(self) -> None:
        client, port = mqtt_client(self._address, self._exchange)
        answers: list[Any] = []
        client.on_connect = lambda _c, _d, _flags, reason, _props: answers.append(reason)
        client.on_disconnect = lambda *_: setattr(self, "_lost", True)
        self._exchange.begin()
        client.connect(self._address.host, port)
        self._client, self._lost = client, False
        while not answers:
            self._serve("the server ends the connection")
        if answers[0].is_failure:
            raise ConnectionError(f"the server refuses the connection: {answers[0]}")


class WebhookBroker:
    """Posts each message as `application/json`; a status of 2xx acknowledges it.

    The rest of an answer is read and means nothing; one without end is none.
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._exchange = Exchange()
        self._connection: http.client.HTTPConnection | None = None

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Post the messages in order over one connection."""
        address, refused = self._address, []
        headers = {"Content-Type": "application/json"}
        if address.password:
            headers["Authorization"] = f"Bearer {address.password}"
        try:
            for message in messages:
                self._exchange.begin(len(message))
                connection = self._connected()
                connection.request("POST", address.path or "/", message, headers)
                answer = connection.getresponse()
                while answer.read(_PART_BYTES):
                    pass
                if answer.status in _REFUSES_CONTENT:
                    refused.append(message)
                elif not 200 <= answer.status < 300:
                    raise ConnectionError(f"the service answers with status {answer.status}")
        except http.client.HTTPException as error:
            raise ConnectionError(f"the service answers no HTTP: {type(error).__name__}") from error
        return refused

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        """Let `publish` come back."""
        self._exchange.stop()

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            address, exchange = self._address, self._exchange
            if address.scheme.endswith("https"):
                self._connection = http.client.HTTPSConnection(
                    address.host, address.port, timeout=ANSWER_S, context=exchange.tls_context()
                )
            else:
                self._connection = _BoundedConnection(exchange, address)
        return self._connection


class _BoundedConnection(http.client.HTTPConnection):
    """A connection without TLS, with bounded answers."""

    def __init__(self, exchange: Exchange, address: BrokerAddress) -> None:
        super().__init__(address.host, address.port, timeout=ANSWER_S)
        self._exchange = exchange

    def connect(self) -> None:
        """Connect."""
        super().connect()
        self.sock = self._exchange.bounded(self.sock)


_PACKAGES: dict[str, tuple[str, str, Callable[[BrokerAddress], Broker]]] = {
    "mqtt": ("paho.mqtt.client", "mqtt", MqttBroker),
    "mqtts": ("paho.mqtt.client", "mqtt", MqttBroker),
    "kafka": ("confluent_kafka", "kafka", KafkaBroker),
    "redis": ("redis", "redis", RedisBroker),
    "rediss": ("redis", "redis", RedisBroker),
    "amqp": ("pika", "amqp", AmqpBroker),
    "amqps": ("pika", "amqp", AmqpBroker),
}
