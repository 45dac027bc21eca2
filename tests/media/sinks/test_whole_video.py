"""A video cut anywhere keeps exactly the frames of its whole fragments."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.media import Frame, open_sink
from headrace.media.sinks.video import VideoSink
from headrace.media.sinks.whole_video import whole_matroska, whole_mp4
from headrace.meta import FrameMeta
from tests.profiles import examples

Whole = Callable[[io.BytesIO], tuple[int, int]]
FRAMES, GROUP = 24, 4  # frames, and frames of a fragment: a second at 3 fps and one more


def _unfinished(path: Path) -> bytes:
    """A video as a process that was killed leaves it."""
    sink = open_sink(str(path), fps=3, preset="ultrafast", threads=1)
    assert isinstance(sink, VideoSink)
    rng = np.random.default_rng(0)
    for i in range(FRAMES):
        frame = Frame.from_array(rng.integers(0, 255, (32, 32, 3), np.uint8), pts_ns=i * 333333333)
        sink.write(frame, FrameMeta("s", 0, i, 0, 32, 32))
    data = path.with_name(f"{path.name}.part").read_bytes()
    sink.close()
    return data


@pytest.fixture(scope="module", params=["x.mp4", "x.mov", "x.mkv"])
def video(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Whole, bytes]:
    data = _unfinished(tmp_path_factory.mktemp("video") / request.param)
    return (whole_matroska if request.param.endswith("mkv") else whole_mp4), data


def _decoded(data: bytes) -> int:
    with av.open(io.BytesIO(data)) as container:
        return sum(1 for _ in container.decode(video=0))


@settings(max_examples=examples(40), deadline=None)
@given(share=st.floats(0, 1))
def test_the_part_kept_plays_and_its_frames_are_counted(
    video: tuple[Whole, bytes], share: float
) -> None:
    whole, data = video
    cut = data[: round(share * len(data))]
    end, frames = whole(io.BytesIO(cut))
    assert 0 <= end <= len(cut)
    assert (end == 0) == (frames == 0)
    if frames:
        assert _decoded(cut[:end]) == frames


def test_nothing_whole_is_lost(video: tuple[Whole, bytes]) -> None:
    whole, data = video
    ends = sorted({whole(io.BytesIO(data[:n])) for n in range(0, len(data) + 1, 97)})
    frames = [count for _, count in ends]
    assert frames[0] == 0
    assert frames[-1] >= FRAMES - 2 * GROUP
    assert max(np.diff(frames)) <= GROUP


@given(data=st.binary(max_size=200))
def test_noise_is_no_video(data: bytes) -> None:
    for whole in (whole_mp4, whole_matroska):
        end, frames = whole(io.BytesIO(data))
        assert 0 <= end <= len(data)
        assert frames >= 0
