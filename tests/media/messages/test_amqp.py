"""AMQP against a server of a few lines: what is on its way, and what a lost connection costs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import Broker, broker_for

pika = pytest.importorskip("pika")
spec, frames = pika.spec, pika.frame
MESSAGES = [b'{"n":%d}' % n for n in range(64)]


class Link:
    """A client's connection as the server sees it: through its opening, then message by message."""

    def __init__(self, link: socket.socket) -> None:
        self._link, self._data = link, b""
        self.got: list[bytes] = []
        link.settimeout(5)
        assert link.recv(8) == b"AMQP\0\0\x09\x01"
        known = {"capabilities": {"publisher_confirms": True, "basic.nack": True}}
        for channel, says, answer in (
            (0, spec.Connection.Start(server_properties=known), spec.Connection.StartOk),
            (0, spec.Connection.Tune(1, 131072, 0), spec.Connection.TuneOk),
            (0, None, spec.Connection.Open),
            (0, spec.Connection.OpenOk(), spec.Channel.Open),
            (1, spec.Channel.OpenOk(), spec.Confirm.Select),
            (1, spec.Confirm.SelectOk(), None),
        ):
            if says is not None:
                self.say(channel, says)
            if answer is not None:
                assert isinstance(self._next().method, answer)

    def say(self, channel: int, method: Any) -> None:
        self._link.sendall(frames.Method(channel, method).marshal())

    def take(self, number: int) -> None:
        """Read so many messages."""
        while len(self.got) < number:
            frame = self._next()
            if isinstance(frame, frames.Body):
                self.got.append(frame.fragment)

    def part(self) -> None:
        """Answer the client's goodbye."""
        assert isinstance(self._next().method, spec.Channel.Close)
        self.say(1, spec.Channel.CloseOk())
        assert isinstance(self._next().method, spec.Connection.Close)
        self.say(0, spec.Connection.CloseOk())

    def _next(self) -> Any:
        while True:
            used, frame = frames.decode_frame(self._data)
            if frame is not None:
                self._data = self._data[used:]
                return frame
            more = self._link.recv(65536)
            assert more, "the client closed the connection"
            self._data += more


@contextmanager
def serving(*answers: Callable[[Link], None]) -> Iterator[Broker]:
    """A broker whose server answers one connection after the other."""
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            for answer in answers:
                link, _ = listener.accept()
                with link:
                    answer(Link(link))
        except BaseException as error:
            failures.append(error)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        broker = broker_for(BrokerAddress("amqp", "127.0.0.1", listener.getsockname()[1], "cars"))
        yield broker
        broker.close()
        thread.join(5)
    assert failures == []


def test_messages_are_on_their_way_before_the_first_is_confirmed() -> None:
    def late(link: Link) -> None:
        for number, tags in ((64, (64,)), (70, (66, 65))):
            link.take(number)
            for tag in tags:
                link.say(1, spec.Basic.Ack(tag, multiple=tag == 64))
        link.say(1, spec.Basic.Ack(70, multiple=True))
        assert link.got == MESSAGES + MESSAGES[:6]
        link.part()

    with serving(late) as broker:
        assert broker.publish(MESSAGES) == ()
        assert broker.publish(MESSAGES[:6]) == ()


def test_a_server_that_dies_amid_a_batch_gets_all_of_it_again() -> None:
    links: list[Link] = []

    def dies(link: Link) -> None:
        link.take(30)
        link.say(1, spec.Basic.Ack(20, multiple=True))
        links.append(link)

    def lives(link: Link) -> None:
        link.take(64)
        link.say(1, spec.Basic.Ack(64, multiple=True))
        links.append(link)
        link.part()

    with serving(dies, lives) as broker:
        with pytest.raises(OSError, match=r"\w"):
            broker.publish(MESSAGES)
        broker.close()
        assert broker.publish(MESSAGES) == ()
        broker.close()
    assert links[1].got == MESSAGES


@pytest.mark.parametrize("refuses", [False, True])
def test_what_no_queue_takes_is_unsent(refuses: bool) -> None:
    def bad(link: Link) -> None:
        link.take(2)
        if refuses:
            link.say(1, spec.Basic.Nack(2, multiple=True))
        else:
            link.say(1, spec.Basic.Return(312, "NO_ROUTE", "amq.topic", "cars"))
            header = frames.Header(1, len(MESSAGES[0]), spec.BasicProperties())
            link._link.sendall(header.marshal() + frames.Body(1, MESSAGES[0]).marshal())
            link.say(1, spec.Basic.Ack(2, multiple=True))
        link.part()

    text = "does not take a message" if refuses else "no queue takes messages of cars at amq.topic"
    with serving(bad) as broker, pytest.raises(OSError, match=text):
        broker.publish(MESSAGES[:2])


def test_a_server_that_falls_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._core import exchange

    monkeypatch.setattr(exchange, "ANSWER_S", 0.2)

    def silent(link: Link) -> None:
        link.take(2)
        link.say(1, spec.Basic.Ack(1))
        link.part()

    with serving(silent) as broker, pytest.raises(TimeoutError, match="did not answer in time"):
        broker.publish(MESSAGES[:2])
