"""nvvideoencfilesinkbin, behind the bins that stand for one element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.media import open_source
from tests.gstreamer.conftest import Run, video


@pytest.mark.parametrize(
    ("values", "name"), [("bitrate=500000 enc-type=1", "a.mp4"), ("codec=2 container=mkv", "b.mkv")]
)
def test_images_come_into_a_file(play: Run, tmp_path: Path, values: str, name: str) -> None:
    ran = play(
        f"{video(6)} ! m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192 ! "
        "nvtrackerbin name=t ! nvtilerbin name=end width=160 height=96 ! nvvideoconvert ! "
        f"nvvideoencfilesinkbin {values} output-file={tmp_path / name}"
    )
    assert ran.errors == []
    frames = list(open_source(tmp_path / name))
    assert len(frames) == 6
    assert (frames[0].width, frames[0].height) == (160, 96)


def test_a_file_must_be_named(gst: Any, capfd: pytest.CaptureFixture[str]) -> None:
    pipeline = gst.parse_launch("videotestsrc ! nvvideoconvert ! nvvideoencfilesinkbin")
    assert pipeline.set_state(gst.State.PLAYING) == gst.StateChangeReturn.FAILURE
    pipeline.set_state(gst.State.NULL)
    assert "output-file is not set" in capfd.readouterr().err
