"""Wall-clock time of frames, as files tell it."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from headrace import open_source

NEW_YEAR_NS = 1_767_225_600 * 10**9  # 2026-01-01 00:00 UTC


def clip(path: Path, recorded: str | None) -> Path:
    with av.open(str(path), "w") as container:
        if recorded is not None:
            container.metadata["creation_time"] = recorded
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(3):
            image = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))
            container.mux(stream.encode(image))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
@pytest.mark.parametrize(
    ("recorded", "began"),
    [
        ("2026-01-01T00:00:00.000000Z", NEW_YEAR_NS),
        ("1970-01-01T00:00:00Z", None),
        (None, None),
    ],
)
def test_a_video_tells_when_it_was_recorded(
    tmp_path: Path, suffix: str, recorded: str | None, began: int | None
) -> None:
    with open_source(str(clip(tmp_path / f"a.{suffix}", recorded))) as source:
        frames = list(source)
    expected = [None if began is None else began + n * 100_000_000 for n in range(3)]
    assert [frame.wall_ns for frame in frames] == expected
    assert {frame.fps for frame in frames} == {10.0}


@pytest.mark.parametrize(
    ("zone", "wall_ns"),
    [("+01:00", NEW_YEAR_NS + 250_000_000), (None, None), ("somewhere", None)],
)
def test_a_photo_needs_its_zone(tmp_path: Path, zone: str | None, wall_ns: int | None) -> None:
    exif = Image.Exif()
    tags = exif.get_ifd(0x8769)
    tags[0x9003], tags[0x9291] = "2026:01:01 01:00:00", "25"
    if zone is not None:
        tags[0x9011] = zone
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    with open_source(str(tmp_path / "a.jpg")) as source:
        (frame,) = source
    assert (frame.wall_ns, frame.fps) == (wall_ns, None)
