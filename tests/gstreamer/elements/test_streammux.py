"""Jumps of a pipeline or of one source: the batches begin anew, and nothing stale comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer import pyds
from tests.gstreamer.conftest import SCENE, Run
from tests.media.sources.videos import remuxed, turned

FILE = SCENE / "conveyor.mp4"
FRAMES = 40
SOURCE = f"uridecodebin uri=file://{FILE}"


class Played:
    """A pipeline that counts what comes to its end.

    Attributes:
        seen: source, number and time in ns of each frame.
    """

    def __init__(self, gst: Any, text: str) -> None:
        self._gst, self.pipeline = gst, gst.parse_launch(text)
        self.seen: list[tuple[int, int, int]] = []
        pad = self.pipeline.get_by_name("s").get_static_pad("sink")
        pad.add_probe(gst.PadProbeType.BUFFER, self._look)
        self.pipeline.set_state(gst.State.PLAYING)

    def _look(self, pad: Any, info: Any) -> int:
        node = pyds.gst_buffer_get_nvds_batch_meta(hash(info.get_buffer())).frame_meta_list
        while node is not None:
            self.seen.append((node.data.source_id, node.data.frame_num, node.data.buf_pts))
            node = node.next
        return 1

    def wait(self) -> None:
        """Wait for the end of the stream."""
        kinds = self._gst.MessageType.EOS | self._gst.MessageType.ERROR
        message = self.pipeline.get_bus().timed_pop_filtered(30 * self._gst.SECOND, kinds)
        assert message is not None, f"no end after {len(self.seen)} frames"
        assert message.type == self._gst.MessageType.EOS, message.parse_error()

    def seek(self, seconds: float = 0, element: Any = None) -> None:
        """Jump."""
        flags = self._gst.SeekFlags.FLUSH | self._gst.SeekFlags.ACCURATE
        time_ns = int(seconds * self._gst.SECOND)
        assert (element or self.pipeline).seek_simple(self._gst.Format.TIME, flags, time_ns)


@pytest.fixture
def played(gst: Any) -> Iterator[Callable[[str], Played]]:
    """`played(description)` plays a pipeline; the sink is called s."""
    pipelines: list[Played] = []

    def play(text: str) -> Played:
        pipelines.append(Played(gst, text))
        return pipelines[-1]

    yield play
    for one in pipelines:
        one.pipeline.set_state(gst.State.NULL)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A source of the first FRAMES frames of the scene."""
    path = tmp_path_factory.mktemp("streammux") / "short.mp4"
    return f"uridecodebin uri=file://{remuxed(FILE, path, packets=FRAMES)}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "behind",
    [
        "! nvtracker ! nvmultistreamtiler ! nvdsosd ",
        pytest.param("", marks=pytest.mark.slow),
        pytest.param("! queue ! nvvideoconvert ", marks=pytest.mark.slow),
    ],
)
def test_a_jump_to_the_start_behind_the_end_plays_all_again(
    played: Callable[[str], Played], short: str, behind: str
) -> None:
    mux = "mux.sink_0 nvstreammux name=mux batch-size=1 width=320 height=192"
    run = played(f"{short} ! {mux} {behind}! fakesink name=s")
    for turn in (1, 2, 3):
        run.wait()
        assert len(run.seen) == turn * FRAMES
        run.seek()


@pytest.mark.slow
def test_two_sources_jump_together(played: Callable[[str], Played], short: str) -> None:
    mux = "nvstreammux name=mux batch-size=2 width=320 height=192 batched-push-timeout=40000"
    run = played(f"{short} ! mux.sink_0 {short} ! mux.sink_1 {mux} ! fakesink name=s")
    run.wait()
    run.seek()
    run.wait()
    for source in (0, 1):
        times = [time for number, _, time in run.seen if number == source]
        assert times[:FRAMES] == times[FRAMES:]


def test_a_jump_amid_a_video_leaves_nothing_stale(played: Callable[[str], Played]) -> None:
    mux = "mux.sink_0 nvstreammux name=mux batch-size=1 width=320 height=192"
    run = played(f"{SOURCE} ! {mux} ! fakesink name=s sync=1")
    run.pipeline.get_state(5 * 10**9)
    run.seek(7)
    before = len(run.seen)
    run.pipeline.get_by_name("s").set_property("sync", False)
    run.wait()
    behind = [time for *_, time in run.seen[before:]]
    assert behind
    assert min(behind) >= 7 * 10**9
    assert behind == sorted(behind)


def test_one_source_may_jump_behind_the_end(played: Callable[[str], Played], short: str) -> None:
    mux = "mux.sink_0 nvstreammux name=mux batch-size=1 width=320 height=192"
    run = played(f"{short} name=u ! {mux} ! fakesink name=s")
    run.wait()
    run.seek(element=run.pipeline.get_by_name("u"))
    run.wait()
    assert len(run.seen) == 2 * FRAMES


@pytest.mark.slow
def test_a_jump_while_it_plays_is_taken_at_once_many_times(
    played: Callable[[str], Played],
) -> None:
    mux = "mux.sink_0 nvstreammux name=mux batch-size=1 width=320 height=192"
    run = played(f"{SOURCE} ! {mux} ! fakesink name=s")
    for second in (3, 1, 6, 0, 8, 2):
        run.pipeline.get_state(5 * 10**9)
        run.seek(second)
    run.wait()
    last = [time for *_, time in run.seen][-1]
    assert last > 9 * 10**9


def test_elements_behind_hear_of_sources_that_come_end_and_go(gst: Any) -> None:
    """In order with the frames: C applications make and take away branches by these events."""
    seen: list[str] = []
    pipeline = gst.parse_launch(
        "videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48 ! m.sink_0 "
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48 ! m.sink_4 "
        "nvstreammux name=m batch-size=2 width=64 height=48 drop-pipeline-eos=1 ! fakesink name=s"
    )

    def look(pad: Any, info: Any) -> int:
        if info.type & gst.PadProbeType.BUFFER:
            node = pyds.gst_buffer_get_nvds_batch_meta(hash(info.get_buffer())).frame_meta_list
            while node is not None:
                seen.append(f"frame {node.data.source_id}")
                node = node.next
        elif (structure := info.get_event().get_structure()) and "nv-" in structure.get_name():
            number = structure.get_uint("source-id")[1]
            assert structure.get_name().endswith(f"-{number}")
            seen.append(f"{structure.get_name().removeprefix('nv-').rpartition('-')[0]} {number}")
        return 1

    sink = pipeline.get_by_name("s").get_static_pad("sink")
    sink.add_probe(gst.PadProbeType.BUFFER | gst.PadProbeType.EVENT_DOWNSTREAM, look)
    pipeline.set_state(gst.State.PLAYING)

    def wait(text: str) -> None:
        for _ in range(200):
            if text in seen:
                return
            pipeline.get_bus().timed_pop_filtered(gst.SECOND // 10, gst.MessageType.ERROR)
        raise AssertionError((text, seen))

    wait("stream-eos 0")
    wait("stream-eos 4")
    mux = pipeline.get_by_name("m")
    pad = mux.get_static_pad("sink_4")
    pad.get_peer().unlink(pad)
    mux.release_request_pad(pad)
    wait("pad-deleted 4")
    pipeline.set_state(gst.State.NULL)
    for number, frames in ((0, 3), (4, 2)):
        own = [text.rpartition(" ")[0] for text in seen if text.endswith(f" {number}")]
        expected = ["pad-added", *["frame"] * frames, "stream-eos"]
        assert own[: len(expected)] == expected


def test_a_video_that_players_turn_is_named(play: Run, tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(FILE.read_bytes())
    ran = play(
        f"uridecodebin uri=file://{turned(path)} ! identity eos-after=3 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 width=640 height=384 ! fakesink"
    )
    assert ran.errors == []
    (warning,) = (text for text in ran.warnings if "to turn this video" in text)
    assert "rotate-" in warning


def test_the_heap_is_trimmed_while_batches_come(
    played: Callable[[str], Played], short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr("headrace._core.heap._EVERY_S", 0.0)
    monkeypatch.setattr("headrace._core.heap.trim_heap", lambda: trimmed.append(1))
    played(f"{short} ! nvstreammux batch-size=1 width=320 height=180 ! fakesink name=s").wait()
    assert len(trimmed) >= FRAMES
