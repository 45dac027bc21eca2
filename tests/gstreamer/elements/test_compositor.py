"""nvcompositor: the images of its pads on one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.surface import CapsReader

WHITE = "videotestsrc num-buffers=3 pattern=white ! video/x-raw,width=64,height=48"


def bright(pad: Any, buffer: Any) -> list[list[bool]]:
    """Whether each quarter of a 128 x 96 image is white."""
    image = CapsReader(pad.get_current_caps()).surface(buffer).rgba()
    assert image.shape == (96, 128, 4)
    return [[bool(np.mean(image[y, x, :3]) > 128) for x in (32, 96)] for y in (24, 72)]


def run(pipeline: Any) -> list[list[list[bool]]]:
    """Run a pipeline with a sink named `end`; returns what it saw."""
    seen: list[list[list[bool]]] = []

    def look(pad: Any, info: Any) -> Any:
        seen.append(bright(pad, info.get_buffer()))
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, look)
    pipeline.set_state(Gst.State.PLAYING)
    kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR
    message = pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, kinds)
    pipeline.set_state(Gst.State.NULL)
    assert message is not None
    assert message.type == Gst.MessageType.EOS, message.parse_error()
    return seen


def test_images_lie_where_a_line_of_gst_launch_puts_them(gst: Any) -> None:
    pipeline = gst.parse_launch(
        "nvcompositor name=c sink_0::xpos=0 sink_0::ypos=48 sink_1::xpos=64 sink_1::ypos=0 "
        "sink_1::width=64 sink_1::height=48 ! video/x-raw(memory:NVMM),width=128,height=96 ! "
        f"fakesink name=end  {WHITE} ! c.sink_0  {WHITE} ! nvvideoconvert ! "
        "video/x-raw(memory:NVMM),format=NV12 ! c.sink_1"
    )
    seen = run(pipeline)
    assert len(seen) >= 2
    assert seen[0] == [[False, True], [True, False]]


def test_images_lie_where_an_application_puts_its_pads(
    gst: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline = gst.parse_launch(
        "nvcompositor name=c ! video/x-raw(memory:NVMM),width=128,height=96 ! fakesink name=end"
    )
    compositor = pipeline.get_by_name("c")
    source = gst.parse_bin_from_description(f"{WHITE} ! identity", True)
    pipeline.add(source)
    sink = compositor.request_pad_simple("sink_%u")
    assert sink.get_name() == "sink_0"
    for name, value in {"xpos": 64, "ypos": 48, "width": 64, "height": 48}.items():
        sink.set_property(name, value)
        assert sink.get_property(name) == value
    sink.set_property("interpolation-method", 5)
    assert "interpolation-method=5 has no effect yet" in capfd.readouterr().err
    source.get_static_pad("src").link(sink)
    other = compositor.request_pad_simple("sink_%u")
    assert other.get_name() == "sink_1"
    compositor.release_request_pad(other)
    assert run(pipeline)[0] == [[False, False], [False, True]]
