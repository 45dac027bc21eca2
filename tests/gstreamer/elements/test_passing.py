"""Elements of other machines pass images on; those that nothing stands for are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.gstreamer import pyds
from tests.gstreamer.conftest import Run, video

MUX = "m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192"


@pytest.mark.parametrize("sink", ["nveglglessink sync=0", "nvoverlaysink sync=0 overlay-x=8"])
def test_images_and_metadata_pass_to_a_display(
    play: Run, sink: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def look(buffer: Any) -> int:
        return int(pyds.gst_buffer_get_nvds_batch_meta(hash(buffer)).num_frames_in_batch)

    ran = play(f"{video(3)} ! {MUX} ! nvegltransform ! {sink} name=s", s=look)
    assert ran.errors == []
    assert set(ran.seen["s"]) == {1}
    assert ("overlay-x=8 has no effect yet" in capfd.readouterr().err) == ("overlay" in sink)


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ("nvof preset-level=1 grid-size=0", "nvof: optical flow is not computed here"),
        ("nvofvisual", "optical flow is not computed here"),
    ],
)
def test_an_element_that_is_not_here_says_so_when_it_starts(
    gst: Any, capfd: pytest.CaptureFixture[str], element: str, reason: str
) -> None:
    pipeline = gst.parse_launch(f"videotestsrc ! {MUX} ! {element} name=x ! fakesink")
    assert pipeline.set_state(gst.State.PLAYING) == gst.StateChangeReturn.FAILURE
    message = pipeline.get_bus().timed_pop_filtered(gst.SECOND, gst.MessageType.ERROR)
    pipeline.set_state(gst.State.NULL)
    assert message is not None
    assert reason in message.parse_error()[0].message
    assert f"error: x: {message.parse_error()[0].message}"[:40] in capfd.readouterr().err


def test_a_decoder_passes_the_properties_of_its_base_class_on(gst: Any) -> None:
    """Applications set them as soon as decodebin shows them a decoder."""
    values = {"qos": False, "max-errors": 7, "min-force-key-unit-interval": 5}
    pipeline = gst.parse_launch(f"{video().replace('decoder ', 'decoder name=d ')} ! fakesink")
    outer = pipeline.get_by_name("d")
    outer.set_property("qos", 0)
    outer.set_property("max-errors", 7)
    pipeline.set_state(gst.State.PAUSED)
    pipeline.get_state(5 * gst.SECOND)
    outer.set_property("min-force-key-unit-interval", 5)
    inner = next(part for part in outer.children if part.get_name().startswith("avdec"))
    got = {name: inner.get_property(name) for name in values}
    pipeline.set_state(gst.State.NULL)
    assert got == values
