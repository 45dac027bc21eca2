"""Receivers: how messages of a broker come in, each by the broker's own client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from headrace._core.errors import MediaError
from headrace._core.exchange import ANSWER_S, Exchange
from headrace._core.lazy import import_extra
from headrace._core.urls import url_name
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.connections import kafka_settings, mqtt_client, redis_pool

_AT_ONCE = 16  # messages
_LOOK_S = 0.25  # how soon an end is seen


class MessageReceiver(Protocol):
    """Gives messages; used from one thread."""

    def receive(self) -> Sequence[bytes]:
        """Messages that came within a moment, oldest first; none after it.

        Raises:
            OSError: the connection is lost; the next call makes a new one.
        """

    def close(self) -> None:
        """End the connection."""


def receiver_for(url: str, options: dict[str, str]) -> MessageReceiver:
    """Make the receiver of a URL; its path names topics, with commas between them.

    Args:
        url: `mqtt://HOST:PORT/TOPIC,TOPIC`, or with the scheme of another broker.
        options: of an adaptor's config file.

    Raises:
        MediaError: a part of the URL is missing.
        MissingExtraError: the client's package is not installed.
    """
    parts, shown = urlsplit(url), url_name(url)
    if parts.scheme not in _CLIENTS:
        raise MediaError(
            f"{parts.scheme}: gives no messages", where=shown, expected=", ".join(_CLIENTS)
        )
    topics = [unquote(text) for text in parts.path.strip("/").split(",") if text]
    one = parts._replace(path="/x" if topics else "")
    address = BrokerAddress.from_url(one, shown, options=options)
    package, extra, kind = _CLIENTS[parts.scheme]
    import_extra(package, extra)
    return kind(replace(address, path=""), topics)


class MqttReceiver:
    """Subscribes with QoS 1."""

    def __init__(self, address: BrokerAddress, topics: Sequence[str]) -> None:
        self._address, self._topics = address, topics
        self._exchange = Exchange()
        self._client: Any = None
        self._messages: list[bytes] = []
        self._lost = ""
        self._answer_by = 0.0  # until the server has taken the connection

    def receive(self) -> Sequence[bytes]:
        """Serve the connection for a moment."""
        self._exchange.begin()
        if self._client is None:
            self._connect()
        if self._client.loop(_LOOK_S) or self._lost:
            cause, self._lost = self._lost or "the connection was lost", ""
            self.close()
            raise ConnectionError(cause)
        if self._answer_by and monotonic() > self._answer_by:
            self.close()
            raise TimeoutError("the server did not answer in time")
        came, self._messages = self._messages, []
        return came

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(OSError, ValueError):
                self._exchange.begin()
                client.disconnect()
                client.loop(0)
            self._exchange.hang_up()

    def _connect(self) -> None:
        self._exchange.begin()
        client, port = mqtt_client(self._address, self._exchange)

        def connected(_c: object, _d: object, _f: object, reason: Any, _p: object) -> None:
            if reason.is_failure:
                self._lost = f"the server refuses the connection: {reason}"
            elif self._answer_by:
                self._answer_by = 0.0
                client.subscribe([(topic, 1) for topic in self._topics])

        def lost(*_: object) -> None:
            self._lost = self._lost or "the connection was lost"

        client.on_connect, client.on_disconnect = connected, lost
        client.on_message = lambda _c, _d, message: self._messages.append(message.payload)
        client.connect(self._address.host, port)
        self._client, self._lost, self._answer_by = client, "", monotonic() + ANSWER_S


class KafkaReceiver:
    """Reads messages that come from now on. Options: `consumer-group-id`, and `proto-cfg`."""

    def __init__(self, address: BrokerAddress, topics: Sequence[str]) -> None:
        self._address, self._topics = address, topics
        self._consumer: Any = None

    def receive(self) -> Sequence[bytes]:
        """Poll for a moment."""
        kafka = import_extra("confluent_kafka", "kafka")
        try:
            if self._consumer is None:
                self._consumer = kafka.Consumer(
                    kafka_settings(
                        self._address,
                        group_id=self._address.options.get("consumer-group-id", "headrace"),
                        auto_offset_reset="latest",
                    )
                )
                self._consumer.subscribe(list(self._topics))
            messages = self._consumer.consume(_AT_ONCE, _LOOK_S)
        except (kafka.KafkaException, RuntimeError) as error:
            raise ConnectionError(str(error)) from error
        for message in messages:
            fault = message.error()
            if fault is not None and fault.code() not in (
                kafka.KafkaError._PARTITION_EOF, kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
            ):  # fmt: skip
                raise ConnectionError(fault.str())
        return [message.value() or b"" for message in messages if message.error() is None]

    def close(self) -> None:
        """Leave the group."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


class RedisReceiver:
    """Reads the entries that streams get from now on. Option: `payloadkey`, the field."""

    def __init__(self, address: BrokerAddress, topics: Sequence[str]) -> None:
        self._address, self._topics = address, topics
        self._exchange = Exchange()
        self._client: Any = None
        self._last: dict[str, Any] = {}

    def receive(self) -> Sequence[bytes]:
        """Read for a moment."""
        redis = import_extra("redis", "redis")
        self._exchange.begin()
        field = self._address.options.get("payloadkey", "metadata").encode()
        try:
            if self._client is None:
                pool = redis_pool(redis, self._address, self._exchange, protocol=2)
                self._client = redis.Redis(connection_pool=pool)
            for topic in self._topics:
                if topic not in self._last:
                    newest = self._client.xrevrange(topic, count=1)
                    self._last[topic] = newest[0][0] if newest else "0-0"
            answer = self._client.xread(self._last, count=_AT_ONCE, block=int(_LOOK_S * 1000))
        except redis.RedisError as error:
            raise ConnectionError(str(error)) from error
        came: list[bytes] = []
        pairs = answer.items() if isinstance(answer, dict) else answer or ()
        for topic, entries in pairs:
            rows = entries[0] if isinstance(answer, dict) else entries
            for number, fields in rows:
                self._last[topic.decode()] = number
                if field in fields:
                    came.append(fields[field])
        return came

    def close(self) -> None:
        """Close the connection; the next one goes on behind the last entry."""
        client, self._client = self._client, None
        if client is not None:
            client.connection_pool.disconnect()


class AmqpReceiver:
    """Binds a queue of its own to the topics. Option: `exchange`, `amq.topic` by default."""

    def __init__(self, address: BrokerAddress, topics: Sequence[str]) -> None:
        self._address, self._topics = address, topics
        self._connection: Any = None
        self._messages: list[bytes] = []

    def receive(self) -> Sequence[bytes]:
        """Serve the connection for a moment."""
        pika = import_extra("pika", "amqp")
        try:
            if self._connection is None:
                self._connect(pika)
            self._connection.process_data_events(time_limit=_LOOK_S)
        except pika.exceptions.AMQPError as error:
            self.close()
            raise ConnectionError(str(error) or repr(error)) from error
        came, self._messages = self._messages, []
        return came

    def _connect(self, pika: Any) -> None:
        address = self._address
        secure = address.scheme == "amqps"
        login = pika.PlainCredentials(address.user or "guest", address.password or "guest")
        tls = pika.SSLOptions(Exchange().tls_context(), address.host) if secure else None
        self._connection = pika.BlockingConnection(
            pika.ConnectionParameters(
                address.host, address.port or (5671 if secure else 5672), credentials=login,
                heartbeat=30, socket_timeout=ANSWER_S, stack_timeout=ANSWER_S,
                blocked_connection_timeout=ANSWER_S, ssl_options=tls,
            )
        )  # fmt: skip
        channel = self._connection.channel()
        queue = channel.queue_declare("", exclusive=True, auto_delete=True).method.queue
        for topic in self._topics:
            channel.queue_bind(queue, address.options.get("exchange", "amq.topic"), topic)
        channel.basic_consume(
            queue, lambda _c, _m, _p, body: self._messages.append(body), auto_ack=True
        )

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed:
            with suppress(Exception):  # pika raises whatever the loss was
                connection.close()


_CLIENTS: dict[str, tuple[str, str, Callable[[BrokerAddress, Sequence[str]], MessageReceiver]]] = {
    "mqtt": ("paho.mqtt.client", "mqtt", MqttReceiver),
    "mqtts": ("paho.mqtt.client", "mqtt", MqttReceiver),
    "kafka": ("confluent_kafka", "kafka", KafkaReceiver),
    "redis": ("redis", "redis", RedisReceiver),
    "rediss": ("redis", "redis", RedisReceiver),
    "amqp": ("pika", "amqp", AmqpReceiver),
    "amqps": ("pika", "amqp", AmqpReceiver),
}
