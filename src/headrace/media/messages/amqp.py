"""AMQP 0-9-1, as RabbitMQ speaks it: many messages on their way, each of them confirmed."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from headrace._core.lazy import import_extra
from headrace.media.messages.address import BrokerAddress

_TIMEOUT_S = 5.0
_GOODBYE_S = 1.0  # for the server's answer to the end of a connection


class AmqpBroker:
    """Publishes persistent messages one behind the other, and waits for all their confirmations.

    A message that no queue takes counts as unsent. Option: `exchange` (`amq.topic` by default);
    the topic is the routing key.
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._connection: Any = None
        self._channel: Any = None
        self._heard = 0  # answers of the server
        self._sent = 0  # messages on this channel: the server counts them, too
        self._unconfirmed: set[int] = set()
        self._failed = ""

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Publish; an OSError if one is not confirmed in time."""
        pika = import_extra("pika", "amqp")
        exchange = self._address.options.get("exchange", "amq.topic")
        properties = pika.BasicProperties(content_type="application/json", delivery_mode=2)
        try:
            if self._channel is None:
                self._connect(pika)
            for message in messages:
                self._sent += 1
                self._unconfirmed.add(self._sent)
                self._channel.basic_publish(
                    exchange, self._address.path, message, properties, mandatory=True
                )
            self._wait(lambda: not self._unconfirmed)
        except pika.exceptions.AMQPError as error:
            raise ConnectionError(self._failed or str(error) or repr(error)) from error
        return ()

    def close(self) -> None:
        """Close the connection, and forget messages that are not confirmed."""
        connection = self._connection
        if connection is None:
            return
        loop, end = connection.ioloop, monotonic() + _GOODBYE_S
        try:
            if not (connection.is_closed or connection.is_closing):
                connection.close()
            loop.call_later(_GOODBYE_S, loop.stop)
            while not connection.is_closed and monotonic() < end:
                loop.start()
        finally:
            loop.close()
            self._connection = self._channel = None
            self._sent, self._failed = 0, ""
            self._unconfirmed.clear()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Read the server's frames until `done`; raise OSError if it fails or falls silent."""
        loop = self._connection.ioloop
        while not done():
            heard = self._heard
            timer = loop.call_later(_TIMEOUT_S, loop.stop)
            loop.start()  # callbacks stop it where there may be nothing to wait for any more
            loop.remove_timeout(timer)
            if self._failed:
                raise ConnectionError(self._failed)
            if self._heard == heard:
                raise TimeoutError("the server did not answer in time")

    def _connect(self, pika: Any) -> None:
        address = self._address
        secure = address.scheme == "amqps"
        login = pika.PlainCredentials(address.user or "guest", address.password or "guest")
        tls = pika.SSLOptions(ssl.create_default_context(), address.host) if secure else None
        parameters = pika.ConnectionParameters(
            address.host, address.port or (5671 if secure else 5672), credentials=login,
            heartbeat=0, socket_timeout=_TIMEOUT_S, stack_timeout=_TIMEOUT_S,
            blocked_connection_timeout=_TIMEOUT_S, ssl_options=tls,
        )  # fmt: skip
        ready = list[Any]()

        def opened(handle: object) -> None:
            ready.append(handle)
            self._heard += 1
            connection.ioloop.stop()

        def lost(_: object, error: object) -> None:
            self._failed = self._failed or str(error) or repr(error)
            connection.ioloop.stop()

        self._connection = connection = pika.SelectConnection(
            parameters, on_open_callback=opened, on_open_error_callback=lost, on_close_callback=lost
        )
        self._wait(lambda: len(ready) == 1)
        channel = connection.channel(on_open_callback=opened)
        self._wait(lambda: len(ready) == 2)
        channel.add_on_close_callback(lost)
        channel.add_on_return_callback(self._returned)
        channel.confirm_delivery(self._answered, opened)
        self._wait(lambda: len(ready) == 3)
        self._channel = channel

    def _returned(self, _channel: object, method: Any, _properties: Any, _body: Any) -> None:
        self._failed = f"no queue takes messages of {method.routing_key} at {method.exchange}"

    def _answered(self, frame: Any) -> None:
        """Note which messages the server has taken, or does not take."""
        method = frame.method
        self._heard += 1
        if method.NAME == "Basic.Nack":
            self._failed = self._failed or "the server does not take a message"
        if method.multiple:
            self._unconfirmed = {tag for tag in self._unconfirmed if tag > method.delivery_tag}
        else:
            self._unconfirmed.discard(method.delivery_tag)
        if self._failed or not self._unconfirmed:
            self._connection.ioloop.stop()
