"""Connections to brokers, as both the sending and the receiving side make them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from headrace._core.exchange import ANSWER_S, Exchange
from headrace._core.lazy import import_extra

if TYPE_CHECKING:
    from headrace.media.messages.address import BrokerAddress


def mqtt_client(address: BrokerAddress, exchange: Exchange) -> tuple[Any, int]:
    """A client that is not connected yet, and the port to connect to."""
    mqtt = import_extra("paho.mqtt.client", "mqtt")

    class Client(mqtt.Client):  # type: ignore[misc, name-defined]
        def _create_socket_connection(self) -> socket.socket:
            return exchange.bounded(super()._create_socket_connection())

    client = Client(mqtt.CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
    client.connect_timeout = ANSWER_S
    if address.user:
        client.username_pw_set(address.user, address.password)
    tls = address.scheme == "mqtts"
    if tls:
        client.tls_set_context(exchange.tls_context())
    return client, address.port or (8883 if tls else 1883)


def redis_pool(redis: Any, address: BrokerAddress, exchange: Exchange, **more: object) -> Any:
    """The pool of one connection, which is bounded."""

    class Plain(redis.Connection):  # type: ignore[misc]
        def _connect(self) -> socket.socket:
            return exchange.bounded(super()._connect())

    class Tls(redis.SSLConnection):  # type: ignore[misc]
        def _wrap_socket_with_ssl(self, link: socket.socket) -> socket.socket:
            return exchange.tls_context().wrap_socket(link, server_hostname=address.host)

    return redis.ConnectionPool(
        connection_class=Tls if address.scheme == "rediss" else Plain, host=address.host,
        port=address.port or 6379, username=address.user, password=address.password,
        socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, max_connections=1,
        retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0), **more,  # the caller tries again
    )  # fmt: skip


def kafka_settings(address: BrokerAddress, **own: object) -> dict[str, Any]:
    """Settings of librdkafka: the address, `own`, the login, and last those of `proto-cfg`."""
    settings: dict[str, Any] = {
        "bootstrap.servers": f"{address.host}:{address.port or 9092}",
        "socket.timeout.ms": int(ANSWER_S * 1000),
        "log_level": 0,
    }
    settings |= {name.replace("_", "."): value for name, value in own.items()}
    if address.user:
        settings |= {
            "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
            "sasl.username": address.user, "sasl.password": address.password or "",
        }  # fmt: skip
    for pair in address.options.get("proto-cfg", "").strip('"').split(";"):
        name, equals, value = pair.partition("=")
        if equals:
            settings[name.strip()] = value.strip()
    return settings
