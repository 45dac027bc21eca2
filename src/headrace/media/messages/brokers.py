"""Brokers: how a batch of messages reaches an MQTT server, a web service or another broker."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from headrace._core.lazy import import_extra
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.amqp import AmqpBroker
from headrace.media.messages.stream_brokers import FileBroker, KafkaBroker, RedisBroker

_TIMEOUT_S = 5.0
_LOOK_S = 0.1  # between two looks at the connection
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
    """Publishes with QoS 1 and waits for every PUBACK."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._client: Any = None
        self._lost = threading.Event()

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Publish to the topic; an OSError if one is not acknowledged in time.

        Also if the connection is lost amid them: a server that dies may have acknowledged messages
        that it has neither given on nor written to its disk, so all are sent again.
        """
        if self._client is None or self._lost.is_set():
            self.close()
            self._connect()
        try:
            sent = [
                self._client.publish(self._address.path, m, qos=1)
                for m in messages
                if len(m) <= _MQTT_MOST_BYTES
            ]
            end = monotonic() + _TIMEOUT_S
            for info in sent:
                while not (info.is_published() or self._lost.is_set()):
                    if monotonic() > end:
                        raise TimeoutError("the server did not acknowledge a message in time")
                    info.wait_for_publish(_LOOK_S)
        except (RuntimeError, ValueError) as error:  # the client's words for a lost connection
            raise ConnectionError(str(error)) from error
        if self._lost.is_set():
            raise ConnectionError("the connection was lost")
        return [m for m in messages if len(m) > _MQTT_MOST_BYTES]

    def close(self) -> None:
        """Disconnect and end the client's thread."""
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            client.loop_stop()

    def _connect(self) -> None:
        mqtt = import_extra("paho.mqtt.client", "mqtt")
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        address, answered, lost = self._address, threading.Event(), threading.Event()
        refusal: list[str] = []

        def on_connect(
            _client: object, _data: object, _flags: object, reason: Any, _props: Any
        ) -> None:
            if reason.is_failure:
                refusal.append(str(reason))
            answered.set()

        client.on_connect = on_connect
        client.on_disconnect = lambda *_: lost.set()
        client.connect_timeout = _TIMEOUT_S
        if address.user:
            client.username_pw_set(address.user, address.password)
        tls = address.scheme == "mqtts"
        if tls:
            client.tls_set_context(ssl.create_default_context())
        client.connect(address.host, address.port or (8883 if tls else 1883))
        client.loop_start()
        self._client, self._lost = client, lost
        if not answered.wait(_TIMEOUT_S):
            raise TimeoutError("the server did not answer in time")
        if refusal:
            raise ConnectionError(f"the server refuses the connection: {refusal[0]}")


class WebhookBroker:
    """Posts each message as `application/json`; a status of 2xx acknowledges it."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._connection: http.client.HTTPConnection | None = None

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Post the messages in order over one connection."""
        address, refused = self._address, []
        if self._connection is None:
            secure = address.scheme.endswith("https")
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            self._connection = kind(address.host, address.port, timeout=_TIMEOUT_S)
        headers = {"Content-Type": "application/json"}
        if address.password:
            headers["Authorization"] = f"Bearer {address.password}"
        try:
            for message in messages:
                self._connection.request("POST", address.path or "/", message, headers)
                answer = self._connection.getresponse()
                answer.read()
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


_PACKAGES: dict[str, tuple[str, str, Callable[[BrokerAddress], Broker]]] = {
    "mqtt": ("paho.mqtt.client", "mqtt", MqttBroker),
    "mqtts": ("paho.mqtt.client", "mqtt", MqttBroker),
    "kafka": ("confluent_kafka", "kafka", KafkaBroker),
    "redis": ("redis", "redis", RedisBroker),
    "rediss": ("redis", "redis", RedisBroker),
    "amqp": ("pika", "amqp", AmqpBroker),
    "amqps": ("pika", "amqp", AmqpBroker),
}
