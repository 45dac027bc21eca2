"""AMQP 0-9-1, as RabbitMQ speaks it: many messages on their way, each of them confirmed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from headrace._core.exchange import ANSWER_S, Exchange
from headrace._core.lazy import import_extra
from headrace.media.messages.address import BrokerAddress

_LOOK_S = 0.1  # between two looks at whether anybody still waits
_GOODBYE_S = 1.0  # for the server's answer to the end of a connection


class AmqpBroker:
    """Publishes persistent messages one behind the other, and waits for all their confirmations.

    A message that no queue takes counts as unsent. Option: `exchange` (`amq.topic` by default);
    the topic is the routing key.
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._exchange = Exchange()
        self._connection: Any = None
        self._channel: Any = None
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
                self._exchange.begin()
                self._connect(pika)
            # a message that no queue takes comes back whole
            self._exchange.begin(sum(map(len, messages)), returned=True)
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
        self._exchange.begin()
        try:
            if not (connection.is_closed or connection.is_closing):
                connection.close()
            while not connection.is_closed and monotonic() < end:
                loop.call_later(_LOOK_S, loop.stop)
                loop.start()
        finally:
            self._connection = self._channel = None
            self._sent, self._failed = 0, ""
            self._unconfirmed.clear()
            self._exchange.hang_up()
            loop.close()

    def stop(self) -> None:
        """Let `publish` come back."""
        self._exchange.stop()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Read the server's frames until `done`; raise OSError if it fails or the time is over."""
        loop = self._connection.ioloop
        while not done():
            timer = loop.call_later(self._exchange.left_s(_LOOK_S), loop.stop)
            loop.start()  # callbacks stop it where there may be nothing to wait for any more
            loop.remove_timeout(timer)
            if self._failed:
                raise ConnectionError(self._failed)

    def _connect(self, pika: Any) -> None:
        address = self._address
        secure = address.scheme == "amqps"
        login = pika.PlainCredentials(address.user or "guest", address.password or "guest")
        tls = pika.SSLOptions(self._exchange.tls_context(), address.host) if secure else None
        parameters = pika.ConnectionParameters(
            address.host, address.port or (5671 if secure else 5672), credentials=login,
            heartbeat=0, socket_timeout=ANSWER_S, stack_timeout=ANSWER_S,
            blocked_connection_timeout=ANSWER_S, ssl_options=tls,
        )  # fmt: skip
        ready = list[Any]()

        def opened(handle: object) -> None:
            ready.append(handle)
            connection.ioloop.stop()

        def lost(_: object, error: object) -> None:
            self._failed = self._failed or str(error) or repr(error)
            connection.ioloop.stop()

        exchange, adapter = self._exchange, pika.adapters.utils.selector_ioloop_adapter

        class Services(adapter.SelectorIOServicesAdapter):  # type: ignore[misc, name-defined]
            def create_streaming_connection(
                self, protocol_factory: Any, sock: socket.socket, *others: Any, **more: Any
            ) -> Any:
                link = exchange.bounded(sock)
                return super().create_streaming_connection(protocol_factory, link, *others, **more)

        loop = pika.adapters.select_connection.IOLoop()
        self._connection = connection = pika.SelectConnection(
            parameters, on_open_callback=opened, on_open_error_callback=lost,
            on_close_callback=lost, custom_ioloop=Services(loop),
        )  # fmt: skip
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
        if method.NAME == "Basic.Nack":
            self._failed = self._failed or "the server does not take a message"
        if method.multiple:
            self._unconfirmed = {tag for tag in self._unconfirmed if tag > method.delivery_tag}
        else:
            self._unconfirmed.discard(method.delivery_tag)
        if self._failed or not self._unconfirmed:
            self._connection.ioloop.stop()
