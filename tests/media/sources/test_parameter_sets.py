"""Reference images of H.264 and HEVC videos, from their headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.media import open_source
from headrace.media.sources.decoded import DecodedSource
from headrace.media.sources.parameter_sets import reference_images
from tests.media.sources.videos import write_video


def references_of(path: Path) -> int:
    with open_source(str(path)) as video:
        assert isinstance(video, DecodedSource)
        return video.reference_images


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts"])
@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("ref=1:bframes=0", 1),
        ("ref=3:bframes=0", 3),
        ("ref=16:bframes=0", 16),
        ("ref=5:bframes=3:b-pyramid=none:cqm=jvt", 5),  # scaling matrices stand before the number
        ("ref=2:bframes=0:8x8dct=0:cabac=0:weightp=0", 2),
    ],
)
def test_it_is_what_the_encoder_was_asked_for(
    tmp_path: Path, suffix: str, parameters: str, wanted: int
) -> None:
    path = write_video(
        tmp_path / f"a.{suffix}", frames=20, options={"x264-params": parameters}, size=(64, 48)
    )
    assert references_of(path) == wanted


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "hevc"])
@pytest.mark.parametrize(("references", "between"), [(1, 0), (4, 2), (7, 4)])
def test_hevc_keeps_what_its_headers_say(
    tmp_path: Path, suffix: str, references: int, between: int
) -> None:
    words = f"ref={references}:bframes={between}:b-pyramid=0:log-level=none"
    options = {"preset": "ultrafast", "x265-params": words}
    path = write_video(tmp_path / f"a.{suffix}", 20, codec="libx265", options=options)
    wanted = max(references, 2 + bool(between))  # as x265 has it
    assert references_of(path) == wanted


def test_what_says_nothing_has_none(tmp_path: Path) -> None:
    assert references_of(write_video(tmp_path / "a.mp4", 5, codec="mpeg4")) == 0


@given(st.sampled_from(["h264", "hevc"]), st.binary(max_size=60))
def test_no_damage_raises(codec: str, data: bytes) -> None:
    mp4 = {
        "h264": b"\1\x64\0\x1f\xff\xe1\0\x1a\x67\x64\0\x1f",
        "hevc": b"\1" + 27 * b"\0" + b"\x40",
    }
    start = {"h264": b"\0\0\0\1\x67", "hevc": b"\0\0\0\1\x40\1"}
    for head in (b"", mp4[codec], start[codec]):
        found = reference_images(codec, head + data)
        assert found is None or found >= 0
