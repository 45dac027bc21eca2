"""Ends of RTSP streams that come although what reads them is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer.elements import held_ends
from tests.gstreamer.conftest import SCENE
from tests.gstreamer.elements.test_reconnect import camera
from tests.ports import free_port

FRAMES = 50


@pytest.mark.slow
def test_the_end_comes_behind_the_last_frame(
    gst: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_ends, "QUIET_S", 2.5)
    video, port = tmp_path / "short.mp4", free_port()
    pipeline = gst.parse_launch(
        f"filesrc location={SCENE}/conveyor.mp4 ! qtdemux ! h264parse ! "
        f"identity eos-after={FRAMES + 2} ! mp4mux ! filesink location={video}"
    )
    pipeline.set_state(gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(20 * gst.SECOND, gst.MessageType.EOS)
    pipeline.set_state(gst.State.NULL)
    pipeline = gst.parse_launch(
        f"rtspsrc location=rtsp://127.0.0.1:{port}/video ! rtph264depay ! nvv4l2decoder ! "
        "m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48 live-source=1 ! "
        "identity sleep-time=100000 ! fakesink name=end sync=0"
    )
    frames = []
    pad = pipeline.get_by_name("end").get_static_pad("sink")
    pad.add_probe(gst.PadProbeType.BUFFER, lambda *_: frames.append(1) or gst.PadProbeReturn.OK)
    with camera(port, video):
        pipeline.set_state(gst.State.PLAYING)
        kinds = gst.MessageType.EOS | gst.MessageType.ERROR | gst.MessageType.WARNING
        messages = [pipeline.get_bus().timed_pop_filtered(40 * gst.SECOND, kinds)]
        while messages[-1] is not None and messages[-1].type == gst.MessageType.WARNING:
            messages.append(pipeline.get_bus().timed_pop_filtered(20 * gst.SECOND, kinds))
        pipeline.set_state(gst.State.NULL)
    assert messages[-1] is not None, "no end"
    assert messages[-1].type == gst.MessageType.EOS
    assert len(frames) == FRAMES
    texts = [one.parse_warning()[0].message for one in messages[:-1]]
    assert sum("kept the end of its stream back" in text for text in texts) == 1
