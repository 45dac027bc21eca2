"""Sources that come and go while the pipeline runs."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from typing import Any

import pytest

from tests.gstreamer.conftest import SCENE
from tests.memory import resident

SOURCE = "videotestsrc ! capsfilter caps=video/x-raw,format=I420,width=64,height=48"


def add(gst: Any, pipeline: Any, mux: Any, number: int) -> tuple[Any, Any]:
    source = gst.parse_bin_from_description(SOURCE, True)
    pipeline.add(source)
    sink = mux.request_pad_simple(f"sink_{number}")
    source.get_static_pad("src").link(sink)
    source.sync_state_with_parent()
    return source, sink


def remove(gst: Any, pipeline: Any, mux: Any, source: Any, sink: Any) -> None:
    """As the applications do: stop the source, flush its pad, release it."""
    source.set_state(gst.State.NULL)
    sink.send_event(gst.Event.new_flush_stop(False))
    mux.release_request_pad(sink)
    pipeline.remove(source)


TIMES = 200


@pytest.mark.slow
def test_others_go_on_and_nothing_leaks(gst: Any) -> None:
    pipeline = gst.parse_launch(
        "nvstreammux name=m batch-size=4 width=64 height=48 batched-push-timeout=5000 ! "
        "fakesink name=end"
    )
    mux, seen, lock = pipeline.get_by_name("m"), [], threading.Lock()

    def look(pad: Any, info: Any) -> int:
        from headrace.gstreamer import pyds

        batch = pyds.gst_buffer_get_nvds_batch_meta(hash(info.get_buffer()))
        with lock:
            seen.extend((f.data.source_id, f.data.frame_num) for f in walk(batch.frame_meta_list))
        return 1

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    kept = add(gst, pipeline, mux, 0)
    assert kept
    pipeline.set_state(gst.State.PLAYING)
    before = 0
    threads: list[int] = []  # of the process; GStreamer keeps idle ones of gone sources a while
    for turn in range(TIMES):
        number = 1 + turn % 3
        source, sink = add(gst, pipeline, mux, number)
        start = time.monotonic()
        with lock:
            mark = len(seen)
        while time.monotonic() - start < 10:
            with lock:
                if any(one == number for one, _ in seen[mark:]):
                    break
            time.sleep(0.002)
        else:
            pytest.fail(f"no frame of source {number} in turn {turn}")
        remove(gst, pipeline, mux, source, sink)
        threads.append(len(os.listdir("/proc/self/task")))
        if turn == TIMES // 4:
            before = resident()
    grown = resident() - before
    assert [pad.get_name() for pad in mux.sinkpads] == ["sink_0"]
    pipeline.set_state(gst.State.NULL)
    own = [frame for source, frame in seen if source == 0]
    assert own == list(range(len(own)))  # none of the first source's is lost or twice
    assert pipeline.get_bus().timed_pop_filtered(0, gst.MessageType.ERROR) is None
    assert grown < 20e6
    early, late = (sorted(threads[end - 50 : end])[25] for end in (TIMES // 2, TIMES))
    assert late <= early + 1


def walk(node: Any) -> Any:
    while node is not None:
        yield node
        node = node.next


def test_a_pad_that_is_added_has_caps(gst: Any) -> None:
    source, sink = gst.ElementFactory.make("nvurisrcbin"), gst.ElementFactory.make("fakesink")
    source.set_property("uri", (SCENE / "conveyor.mp4").as_uri())
    caps = []

    def added(_: Any, pad: Any) -> None:
        caps.append(pad.get_current_caps())
        pad.link(sink.get_static_pad("sink"))

    source.connect("pad-added", added)
    pipeline = gst.Pipeline()
    pipeline.add(source)
    pipeline.add(sink)
    pipeline.set_state(gst.State.PLAYING)
    pipeline.get_state(10 * gst.SECOND)
    pipeline.set_state(gst.State.NULL)
    assert [one.get_structure(0).get_name() for one in caps] == ["video/x-raw"]


@pytest.mark.parametrize(
    ("kind", "name"), [("nvstreamdemux", "src_02"), ("nvstreammux", "sink_02")]
)
def test_a_pad_has_the_name_that_was_asked_for(gst: Any, kind: str, name: str) -> None:
    element = gst.ElementFactory.make(kind)
    pad = element.request_pad_simple(name)
    assert element.get_static_pad(name) == pad
    assert element.request_pad_simple(name.replace("02", "2")) is None


def test_a_source_that_is_removed_is_gone(gst: Any) -> None:
    pipeline = gst.parse_launch(
        "nvstreammux name=m batch-size=1 width=64 height=48 ! fakesink name=end"
    )
    mux = pipeline.get_by_name("m")
    pipeline.set_state(gst.State.PLAYING)
    gone = []
    for _ in range(2):
        source = gst.ElementFactory.make("nvurisrcbin")
        source.set_property("uri", (SCENE / "conveyor.mp4").as_uri())
        source.set_property("file-loop", True)
        seen = threading.Event()
        sink = mux.request_pad_simple("sink_0")
        sink.add_probe(gst.PadProbeType.BUFFER, lambda *_, seen=seen: (seen.set(), 1)[1])
        source.connect("pad-added", lambda _, found, sink=sink: found.link(sink))
        pipeline.add(source)
        source.sync_state_with_parent()
        assert seen.wait(10)
        pipeline.get_state(10 * gst.SECOND)  # else its own change brings the source back to life
        source.set_state(gst.State.NULL)
        sink.send_event(gst.Event.new_flush_stop(False))
        mux.release_request_pad(sink)
        pipeline.remove(source)
        gone.append(weakref.ref(source))
    pipeline.set_state(gst.State.NULL)
    del source, sink
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_elements_that_gstreamer_made_go_with_their_pipeline(gst: Any) -> None:
    """Without a reference from Python: its bindings keep one of their own for such elements."""
    from headrace.gstreamer.elements.element import NvElement

    def alive() -> int:
        gc.collect()
        return sum(isinstance(one, NvElement) for one in gc.get_objects())

    before = alive()
    pipeline = gst.parse_launch(
        f"uridecodebin uri={(SCENE / 'conveyor.mp4').as_uri()} ! mux.sink_0 "
        "nvstreammux name=mux batch-size=1 width=64 height=48 ! nvosdbin ! fakesink sync=0"
    )
    pipeline.set_state(gst.State.PLAYING)
    assert pipeline.get_state(10 * gst.SECOND).state == gst.State.PLAYING
    assert alive() > before + 4
    pipeline.set_state(gst.State.NULL)
    del pipeline
    assert alive() == before
