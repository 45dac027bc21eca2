"""Every n-th frame of a source, and sources that start over."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import av
import numpy as np
import pytest

from headrace.media import ArraySource, Source, open_source
from headrace.media.sources.base import SteppedSource
from tests.media.sources.videos import B_FRAMES, KINDS, write_video
from tests.profiles import thinned

IMAGE = np.zeros((4, 6, 3), np.uint8)


def five() -> ArraySource:
    return ArraySource([IMAGE] * 5, fps=10)


def test_one_of_two_frames_at_half_the_rate() -> None:
    source = SteppedSource(five(), step=2)
    assert (source.fps, source.frames) == (5, 3)
    found = [(f.frame, f.pts_ns) for f in source]
    assert found == [(0, 0), (1, 200_000_000), (2, 400_000_000)]


def test_times_go_on_from_round_to_round() -> None:
    source = SteppedSource(five(), reopen=five, step=2)
    assert source.frames is None
    times = [f.pts_ns for f in islice(source, 7)]
    source.close()
    assert times == [200_000_000 * i for i in range(7)]


def frames_of(source: Source, count: int) -> list[tuple[object, ...]]:
    taken = islice(source, count)
    return [(f.pts_ns, *(np.ascontiguousarray(p).tobytes() for p in f.planes)) for f in taken]


@pytest.mark.parametrize("name", thinned(KINDS, 3))
def test_a_video_that_begins_again_is_the_video(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, frames=20, **KINDS[name])
    with open_source(str(path)) as whole:
        video = frames_of(whole, 1000)
        assert (whole.rewind(), len(video)) == (True, 20)
        assert frames_of(whole, 1000) == video
        assert (whole.given, whole.skipped) == (20, 0)


def test_rounds_of_a_video_have_one_decoder_and_one_name(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=5, options=B_FRAMES)
    source = open_source(str(path))
    source.name = "door"
    with SteppedSource(source, reopen=list) as looped:
        got = list(islice(looped, 12))
    assert {f.source for f in got} == {"door"}
    assert [f.pts_ns for f in got] == [40_000_000 * i for i in range(12)]


def test_one_that_cannot_go_back_is_opened_again_under_its_name() -> None:
    source = five()
    source.name = "door"
    with SteppedSource(source, reopen=five) as looped:
        assert {f.source for f in islice(looped, 12)} == {"door"}


def test_what_was_not_read_or_is_closed_does_not_begin_again(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=5)
    with open_source(str(path)) as source:
        assert not source.rewind()
        list(source)
    assert not source.rewind()


def test_a_pace_holds_frames_back_and_a_close_ends_the_wait() -> None:
    waits: list[float] = []
    source = SteppedSource(five(), pace_s=0.5)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) > 3

    source._closing.wait = wait  # type: ignore[method-assign,assignment]
    assert [f.frame for f in source] == [0, 1, 2]
    assert waits[0] == 0
    assert all(0.4 < seconds <= 0.5 * n for n, seconds in enumerate(waits) if n)


@pytest.mark.parametrize("name", thinned(KINDS, 3))
def test_key_frames_alone(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, frames=40, **KINDS[name])
    with av.open(str(path)) as container:
        base = container.streams.video[0].time_base
        keys = [p.pts * base for p in container.demux(video=0) if p.size and p.is_keyframe]
    with open_source(str(path), key_frames_only=True) as source:
        times = [frame.pts_ns for frame in source]
        assert source.notices == []
    whole = keys[:1] if name == "intra_refresh.mp4" else keys  # the others need images before
    assert times == [round(float(key) * 1e9) for key in whole]


def test_low_delay_gives_an_image_for_each_packet(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=10)
    with open_source(str(path), low_delay=True) as quick, open_source(str(path)) as plain:
        assert quick._stream.codec_context.thread_type.name == "SLICE"
        assert frames_of(quick, 100) == frames_of(plain, 100)
