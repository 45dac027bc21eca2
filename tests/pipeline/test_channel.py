"""The bounded queue between stages."""

from __future__ import annotations

import threading

import pytest

from headrace.pipeline.channel import Channel, ChannelClosedError


def test_order_is_kept_and_the_end_comes_after_the_last_item() -> None:
    channel: Channel[int] = Channel(2)
    writer = threading.Thread(target=lambda: ([channel.put(i) for i in range(100)], channel.end()))
    writer.start()
    assert [channel.get() for _ in range(100)] == list(range(100))
    writer.join(5)
    with pytest.raises(ChannelClosedError):
        channel.get()


def test_a_full_channel_holds_the_writer_back() -> None:
    channel: Channel[int] = Channel(1)
    channel.put(1)
    passed = threading.Event()
    writer = threading.Thread(target=lambda: (channel.put(2), passed.set()))
    writer.start()
    assert not passed.wait(0.05)
    assert channel.get() == 1
    assert passed.wait(5)
    writer.join(5)


def test_a_leaving_reader_frees_the_waiting_writer() -> None:
    channel: Channel[int] = Channel(1)
    channel.put(1)
    outcome: list[type[BaseException] | None] = []

    def write() -> None:
        try:
            channel.put(2)
            outcome.append(None)
        except ChannelClosedError:
            outcome.append(ChannelClosedError)

    writer = threading.Thread(target=write)
    writer.start()
    channel.abandon()
    writer.join(5)
    assert outcome == [ChannelClosedError]
    with pytest.raises(ChannelClosedError):
        channel.put(3)
