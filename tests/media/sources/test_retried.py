"""Sources that are opened again after whatever ended them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace._core.errors import MediaError
from headrace.media import ReconnectPolicy, open_source
from headrace.media.frame import Frame
from headrace.media.sources.base import FailedSource, Source
from headrace.media.sources.packet_ring import PacketRing
from headrace.media.sources.reconnect import GaveUpError
from headrace.media.sources.retried import RetriedSource
from tests.media.conftest import gray_frame
from tests.media.sources.videos import X264, write_video

AT_ONCE = ReconnectPolicy(0.0, 0.0)


class Failing(Source):
    """Gives some frames, then fails or ends."""

    def __init__(self, count: int, error: Exception | None) -> None:
        super().__init__("camera")
        self.live, self._count, self._error = True, count, error

    def _read(self) -> Iterator[Frame]:
        for number in range(self._count):
            yield gray_frame(number)
        if self._error is not None:
            raise self._error


def test_numbers_and_times_go_on_after_any_error() -> None:
    lives = iter(
        [Failing(2, RuntimeError("decoder")), Failing(0, MediaError("x")), Failing(3, None)]
    )
    source = RetriedSource(Failing(4, MediaError("broke")), lambda: next(lives), AT_ONCE)
    frames = list(source)
    assert [frame.frame for frame in frames] == list(range(9))
    times = [frame.pts_ns for frame in frames]
    assert times == sorted(times)
    assert source.reconnects == 2
    assert [n.code for n in source.notices] == ["connection-lost"] * 2


def test_losses_have_the_name_that_the_source_was_given() -> None:
    source = RetriedSource(Failing(1, MediaError("x")), lambda: Failing(1, None), AT_ONCE)
    source.rename("door")
    list(source)
    assert [n.where for n in source.notices] == ["door"]


def test_what_breaks_because_it_was_closed_is_an_end() -> None:
    class Closed(Source):
        def _read(self) -> Iterator[Frame]:
            yield gray_frame(0)
            self.close()
            raise ZeroDivisionError("integer division or modulo by zero")

    source = Closed("camera")
    assert len(list(source)) == 1


def test_one_that_could_not_be_opened_is_tried_again() -> None:
    source = RetriedSource(
        FailedSource(MediaError("nobody is there"), "camera"), lambda: Failing(2, None), AT_ONCE
    )
    assert len(list(source)) == 2
    assert [n.code for n in source.notices] == ["connection-lost"]


def test_attempts_are_counted_since_the_last_frame() -> None:
    def refuse() -> Source:
        nonlocal tries
        tries += 1
        raise MediaError("nobody is there")

    tries = 0
    policy = ReconnectPolicy(0.0, 0.0, attempts=3)
    source = RetriedSource(Failing(1, MediaError("broke")), refuse, policy)
    with pytest.raises(MediaError, match="nobody is there; it was tried again 3 times"):
        list(source)
    assert tries == 3


def test_a_stream_that_gave_up_by_its_own_policy_is_not_tried_again() -> None:
    source = RetriedSource(Failing(1, GaveUpError("away")), lambda: Failing(1, None), AT_ONCE)
    with pytest.raises(GaveUpError):
        list(source)


def test_closing_ends_the_wait() -> None:
    source = RetriedSource(
        Failing(1, MediaError("broke")), lambda: Failing(1, None), ReconnectPolicy(60.0, 60.0)
    )
    frames = iter(source)
    next(frames)
    source.close()
    assert list(frames) == []


def test_one_that_is_opened_while_it_is_closed_is_not_read() -> None:
    opened = Failing(2, None)

    def reopen() -> Source:
        source.close()
        return opened

    source = RetriedSource(Failing(0, MediaError("x")), reopen, AT_ONCE)
    assert list(source) == []
    assert opened._closing.is_set()


def test_packets_are_kept_on_when_a_source_is_opened_again(tmp_path: Path) -> None:
    """Clips of a camera go on behind its return, with the times of its frames."""
    video = write_video(tmp_path / "a.mp4", 12, options=X264)
    opened = iter([open_source(str(video)), Failing(0, MediaError("x")), open_source(str(video))])
    first = FailedSource(MediaError("nobody is there"), "camera")
    source = RetriedSource(first, lambda: Broken(next(opened)), AT_ONCE)
    ring = source.keep_packets(10.0)
    assert ring is not None
    last = [frame.pts_ns for _, frame in zip(range(24), source, strict=False)][-1]
    assert ring.connection == 2
    start = ring.start_of(last)
    assert start is not None
    kept = ring.since(start, last)
    assert kept[-1].time_ns + ring.offset_ns == last
    source.close()


class Broken(Source):
    """The frames of another source, then an error."""

    def __init__(self, source: Source) -> None:
        super().__init__("camera")
        self._source = source

    def go_on_keeping(self, ring: PacketRing, shift_ns: int) -> None:
        self._source.go_on_keeping(ring, shift_ns)

    def _read(self) -> Iterator[Frame]:
        yield from self._source
        raise MediaError("the camera is lost")
