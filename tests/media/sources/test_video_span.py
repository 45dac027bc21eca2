"""Videos cut into spans: the union of the spans is the video, frame by frame."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import av
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import MediaError
from headrace.media import Frame, open_source
from headrace.media.sources.video_span import SpanDoubtError, VideoSpanSource
from headrace.media.sources.video_structure import (
    VideoCut,
    VideoStructure,
    video_seconds,
    video_structure,
)
from tests.media.sources.videos import B_FRAMES, KINDS, X264, write_video
from tests.profiles import examples, thinned

Row = tuple[int, int, str]

# Whether a video of this kind is cut, and if not, whether packets or frames show why.
WHOLE = {"open_gop.mp4", "open_gop.mkv", "open_gop.ts", "intra_refresh.mp4", "mpeg4_b.mp4",
         "mpeg2.mpg", "mpeg2.ts", "hevc.mp4", "one_key.mp4"}  # fmt: skip
DOUBTFUL = {"b_frames.avi"}


def rows(frames: Iterable[Frame]) -> list[Row]:
    return [
        (f.frame, f.pts_ns, hashlib.md5(b"".join(p.tobytes() for p in f.planes)).hexdigest())
        for f in frames
    ]


def union(
    path: Path,
    structure: VideoStructure,
    least: int,
    multiple: int = 1,
    threads: int | None = None,
) -> list[Row]:
    found: list[Row] = []
    for span in structure.spans(least, multiple):
        with VideoSpanSource(path, path.name, span, threads=threads) as source:
            found += rows(source)
            assert source.decoder == "cpu"
    return found


@pytest.mark.parametrize("name", thinned(KINDS, 3))
def test_spans_of_every_structure_are_the_video(name: str, tmp_path: Path) -> None:
    path = write_video(tmp_path / name, **KINDS[name])
    structure = video_structure(path, name)
    with open_source(str(path)) as source:
        whole = rows(source)
    assert len(whole) == 60
    if name in DOUBTFUL:
        with pytest.raises(SpanDoubtError):
            union(path, structure, 10)
        return
    assert structure.doubt == ""
    assert (len(structure.spans(10)) == 1) == (name in WHOLE)
    assert union(path, structure, 10) == whole


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(
    frames=st.integers(1, 40),
    gop=st.integers(1, 15),
    b_frames=st.integers(0, 3),
    steps=st.lists(st.integers(6, 90), min_size=40, max_size=40),
    least=st.integers(1, 20),
    multiple=st.integers(1, 4),
    suffix=st.sampled_from([".mp4", ".mkv", ".ts", ".mov"]),
)
def test_union_of_spans_is_the_video(
    tmp_path_factory: pytest.TempPathFactory,
    frames: int,
    gop: int,
    b_frames: int,
    steps: list[int],
    least: int,
    multiple: int,
    suffix: str,
) -> None:
    times = [sum(steps[:i]) for i in range(frames)]
    options = {"preset": "veryfast", "x264-params": f"bframes={b_frames}:scenecut=0"}
    path = tmp_path_factory.mktemp("video") / f"video{suffix}"
    write_video(path, frames, options=options, gop=gop, times=times)
    structure = video_structure(path, "video")
    with open_source(str(path)) as source:
        whole = rows(source)
    spans = structure.spans(least, multiple)
    assert [s.start.frame % multiple for s in spans] == [0] * len(spans)
    assert all(s.frames >= least for s in spans[:-1])
    if spans:
        assert sum(s.frames for s in spans) == structure.frames
        assert union(path, structure, least, multiple) == whole


def test_a_video_without_an_index_is_read_from_its_start(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mkv", options=B_FRAMES)
    data = path.read_bytes()
    cues = data.rfind(b"\x1c\x53\xbb\x6b")  # Cues; renamed to Void of the same size
    assert cues > 0
    void = tmp_path / "void.mkv"
    void.write_bytes(data[:cues])
    structure = video_structure(void, "void")
    with open_source(str(void)) as source:
        whole = rows(source)
    assert len(structure.spans(10)) == 5
    assert union(void, structure, 10) == whole


def test_a_damaged_video_is_doubtful_or_the_same(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "video.ts", options=X264)
    data = bytearray(whole.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 400):
        data[at] ^= 0x55
    damaged = tmp_path / "damaged.ts"
    damaged.write_bytes(data)
    structure = video_structure(damaged, "damaged")
    try:
        found = union(damaged, structure, 10, threads=1)
    except SpanDoubtError:
        return
    with open_source(str(damaged), threads=1) as source:
        assert not structure.spans(10) or found == rows(source)


def test_a_video_cut_short_is_not_split(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "video.mp4", options=X264)
    with (
        av.open(str(whole), options={}) as video,
        av.open(str(tmp_path / "front.mp4"), "w", options={"movflags": "faststart"}) as out,
    ):
        stream = out.add_stream_from_template(video.streams.video[0])
        for packet in video.demux(video=0):
            if packet.size:
                packet.stream = stream
                out.mux(packet)
    data = (tmp_path / "front.mp4").read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(data[: len(data) - 1500])
    structure = video_structure(cut, "cut")
    assert structure.doubt
    assert structure.spans(1) == []


def test_frames_that_are_missing_from_a_span_are_noticed(tmp_path: Path) -> None:
    path = write_video(tmp_path / "video.mp4", options=X264)
    structure = video_structure(path, "video")
    wrong = VideoStructure(70, structure.cuts).spans(10)[-1]
    assert wrong.frames == 22
    with pytest.raises(SpanDoubtError, match="12 frames came of the 22"):
        rows(VideoSpanSource(path, "video", wrong))


def test_structure_names_the_doubt(tmp_path: Path) -> None:
    video = write_video(tmp_path / "video.avi", codec="ffv1")
    assert "ffv1" in video_structure(video, "video").doubt
    assert video_structure(video, "video").spans(1) == []
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    with pytest.raises(MediaError, match="not a video"):
        video_structure(text, "text")
    assert video_seconds(text) == 0.0
    assert video_seconds(video) == pytest.approx(60 / 25, abs=0.1)


def test_spans_keep_their_least_length() -> None:
    video = VideoStructure(100, tuple(VideoCut(at, at) for at in range(0, 100, 5)))
    starts = [span.start.frame for span in video.spans(18)]
    assert starts == [0, 20, 40, 60, 80]
    assert [s.start.frame for s in video.spans(18, 8)] == [0, 40, 80]
    assert [s.frames for s in video.spans(1000)] == [100]


@pytest.mark.data
@pytest.mark.slow
def test_spans_of_real_videos_are_the_videos(data_dir: Path) -> None:
    cut = 0
    for path in sorted((data_dir / "videos").iterdir()):
        structure = video_structure(path, path.name)
        with open_source(str(path)) as source:
            whole = rows(source)
        spans = structure.spans(30)
        cut += len(spans) > 1
        assert not spans or union(path, structure, 30) == whole
    assert cut
