"""MPEG-4 in a container, which GStreamer 1.22's own encoder cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gstreamer.conftest import Run

LINE = "videotestsrc num-buffers=5 ! video/x-raw,width=64,height=48,framerate=25/1 ! "


@pytest.mark.parametrize("loaded", [False, True])
def test_images_have_their_times(gst: Any, play: Run, tmp_path: Path, loaded: bool) -> None:
    """Once its plugin is loaded, GStreamer's own encoder would have its name back."""
    av = pytest.importorskip("av")
    if gst.ElementFactory.find("avenc_mpeg4") is None:
        pytest.skip("GStreamer has no avenc_mpeg4")
    if loaded:
        gst.Plugin.load_by_name("libav")
    path = tmp_path / "out.mp4"
    ran = play(
        f"{LINE} avenc_mpeg4 bitrate=400000 gop-size=2 ! mpeg4videoparse ! qtmux ! "
        f"filesink location={path}"
    )
    assert ran.errors == []
    with av.open(str(path)) as video:
        packets = [one for one in video.demux(video=0) if one.size]
        times = [float(one.pts * one.time_base) for one in packets]
        keys = [one.is_keyframe for one in packets]
    assert times == pytest.approx([0, 0.04, 0.08, 0.12, 0.16])
    assert keys == [True, False, True, False, True]
