"""Sources by address, images of JPEG, frames left out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from headrace.gstreamer.elements.register import FRAME_BUFFER
from tests.gstreamer.conftest import Run


@pytest.fixture(scope="module")
def short(gst: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a video of ten small frames."""
    path = tmp_path_factory.mktemp("short") / "short.mp4"
    pipeline = gst.parse_launch(
        "videotestsrc num-buffers=10 ! video/x-raw,format=I420,width=64,height=48,framerate=25/1 "
        f"! x264enc key-int-max=5 ! h264parse ! mp4mux ! filesink location={path}"
    )
    pipeline.set_state(gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(10 * gst.SECOND, gst.MessageType.EOS)
    pipeline.set_state(gst.State.NULL)
    return path.as_uri()


def frames(buffer: Any) -> list[tuple[int, int, int]]:
    from headrace.gstreamer import pyds

    node = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer)).frame_meta_list
    found = []
    while node is not None:
        found.append((node.data.source_id, node.data.frame_num, node.data.buf_pts))
        node = node.next
    return found


def test_an_address_is_decoded(play: Run, short: str) -> None:
    ran = play(
        f"nvurisrcbin uri={short} drop-frame-interval=3 ! m.sink_0 nvstreammux name=m "
        "batch-size=1 width=64 height=48 ! fakesink name=end",
        end=frames,
    )
    assert ran.errors == []
    first = ran.seen["end"][0][0][2]
    step = 3 * 40_000_000
    assert ran.seen["end"] == [[(0, n, first + n * step)] for n in range(4)]


def test_images_without_a_decoder_are_labelled(play: Run, tmp_path: Path) -> None:
    path = tmp_path / "raw.avi"
    for line, probes in (
        (f"videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=64,height=48 ! avimux ! "
         f"filesink location={path}", {}),
        (f"nvurisrcbin uri={path.as_uri()} ! fakesink name=end", {"end": lambda buffer: 1}),
    ):  # fmt: skip
        ran = play(line, **probes)
        assert ran.errors == []
    assert ran.seen["end"] == [1, 1]


def test_a_video_starts_again(gst: Any, short: str) -> None:
    pipeline = gst.parse_launch(
        f"nvurisrcbin uri={short} file-loop=1 ! m.sink_0 nvstreammux name=m batch-size=1 "
        "width=64 height=48 ! fakesink name=end"
    )
    enough, times = Event(), []

    def look(sink: Any, info: Any) -> int:
        times.extend(found[2] for found in frames(info.get_buffer()))
        if len(times) == 35:
            enough.set()
        return 1  # OK

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    assert enough.wait(20)
    pipeline.set_state(gst.State.NULL)
    assert pipeline.get_bus().timed_pop_filtered(0, gst.MessageType.ERROR) is None
    assert {b - a for a, b in pairwise(times)} == {40_000_000}  # no gap where it starts again


def test_several_addresses_are_batched(play: Run, short: str) -> None:
    ran = play(
        f"nvmultiurisrcbin uri-list={short},{short} width=32 height=24 "
        "batched-push-timeout=2000000 ! fakesink name=end",
        end=frames,
    )
    assert ran.errors == []
    assert sum(len(found) for found in ran.seen["end"]) == 20
    assert {source for found in ran.seen["end"] for source, _, _ in found} == {0, 1}
    assert sorted(ran.ended) == [0, 1]


def test_jpeg_goes_both_ways(play: Run) -> None:
    ran = play(
        "videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=64,height=48 ! "
        "nvvidconv ! video/x-raw(memory:NVMM),format=NV12 ! nvjpegenc quality=90 ! nvjpegdec ! "
        "m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48 ! fakesink name=end",
        end=frames,
    )
    assert ran.errors == []
    assert len(ran.seen["end"]) == 2


def test_an_address_that_is_not_there(play: Run, tmp_path: Path) -> None:
    ran = play(f"nvurisrcbin uri={(tmp_path / 'no.mp4').as_uri()} ! fakesink name=end")
    assert len(ran.errors) == 1


def test_a_display_that_crashes_without_a_frame_buffer_is_not_tried(gst: Any) -> None:
    sink = gst.ElementFactory.find("dfbvideosink")
    if sink is None or FRAME_BUFFER.exists():
        pytest.skip("needs dfbvideosink, and no frame buffer")
    assert sink.get_rank() == gst.Rank.NONE
