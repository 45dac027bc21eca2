"""Python objects on buffers follow copies, encoders and decoders, and leave nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest


class Thing:
    """Anything."""


@pytest.fixture
def bridge(gst: Any) -> Any:
    from headrace.gstreamer.pyds.bridge import bridge as the_bridge

    return the_bridge()


def test_a_buffer_has_what_was_attached_until_it_goes(gst: Any, bridge: Any) -> None:
    buffer, thing = gst.Buffer.new_allocate(None, 64, None), Thing()
    assert bridge.get(hash(buffer)) is None
    bridge.attach(hash(buffer), thing)
    assert bridge.get(hash(buffer)) is thing
    assert len(bridge.table) == 1
    del buffer
    gc.collect()
    assert bridge.table == {}


@pytest.mark.parametrize(
    "elements",
    ["queue", "videoconvert ! video/x-raw,format=RGB", "videoscale ! video/x-raw,width=32",
     "jpegenc", "x264enc tune=zerolatency ! avdec_h264", "tee ! queue"],
)  # fmt: skip
def test_metadata_follow_the_image(gst: Any, bridge: Any, elements: str) -> None:
    pipeline = gst.parse_launch(
        "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! "
        f"identity name=start ! {elements} ! fakesink name=end"
    )
    things, seen = [Thing() for _ in range(3)], []
    numbers = iter(range(3))

    def attach(pad: Any, info: Any) -> int:
        bridge.attach(hash(info.get_buffer()), things[next(numbers)])
        return 1

    def look(pad: Any, info: Any) -> int:
        seen.append(bridge.get(hash(info.get_buffer())))
        return 1

    for name, side, probe in (("start", "sink", attach), ("end", "sink", look)):
        pad = pipeline.get_by_name(name).get_static_pad(side)
        pad.add_probe(gst.PadProbeType.BUFFER, probe)
    pipeline.set_state(gst.State.PLAYING)
    ends = gst.MessageType.EOS | gst.MessageType.ERROR
    assert pipeline.get_bus().timed_pop_filtered(10 * gst.SECOND, ends).type == gst.MessageType.EOS
    pipeline.set_state(gst.State.NULL)
    assert seen == things
    del pipeline
    gc.collect()
    assert bridge.table == {}


def test_threads_that_want_the_first_bridge_at_once_share_it(gst: Any) -> None:
    """A second registration of the metadata fails, and every buffer's would be lost."""
    code = """
import threading, time
import sys, headrace.gstreamer.pyds.bridge; bridge = sys.modules["headrace.gstreamer.pyds.bridge"]
class Slow(bridge.Bridge):
    def __init__(self):
        time.sleep(0.05)
        super().__init__()
bridge.Bridge, found = Slow, []
threads = [threading.Thread(target=lambda: found.append(bridge.bridge())) for _ in range(3)]
for one in threads: one.start()
for one in threads: one.join()
print(len({id(one) for one in found}), [one.api != 0 for one in found])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1 [True, True, True]\n", "")
