"""Smart recording: files of a source's packets from before and after a start."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import av
import pytest

from headrace.gstreamer.pyds.struct import capsule_of
from tests.gstreamer.conftest import SCENE

SOURCE = f"nvurisrcbin name=u uri=file://{SCENE}/conveyor.mp4"
MUX = "m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192"


class _Told(ctypes.Structure):
    _fields_ = (
        ("ctx", ctypes.c_void_p), ("session", ctypes.c_uint32), ("name", ctypes.c_char_p),
        ("folder", ctypes.c_char_p), ("duration_ms", ctypes.c_uint64), ("container", ctypes.c_int),
        ("width", ctypes.c_uint), ("height", ctypes.c_uint), ("has_video", ctypes.c_int),
        ("channels", ctypes.c_uint), ("rate", ctypes.c_uint), ("has_audio", ctypes.c_int),
    )  # fmt: skip


class Recorded:
    """A pipeline of the demo scene whose source is told to record.

    Attributes:
        told: what `sr-done` handed over.
    """

    def __init__(
        self, gst: Any, text: str, actions: dict[int, tuple[Any, ...]], *, is_endless: bool = False
    ) -> None:
        pipeline = gst.parse_launch(f"{text} ! {MUX} ! fakesink name=s")
        source = pipeline.get_by_name("u")
        self.told: list[tuple[Any, ...]] = []
        source.connect("sr-done", self._done)
        frames: list[None] = []

        def look(pad: Any, info: Any) -> int:
            frames.append(None)
            if len(frames) in actions:
                source.emit(*actions[len(frames)])
            return 1

        pipeline.get_by_name("s").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
        pipeline.set_state(gst.State.PLAYING)
        kinds = gst.MessageType.EOS | gst.MessageType.ERROR | gst.MessageType.WARNING
        message = None
        while message is None and not (is_endless and self.told):
            message = pipeline.get_bus().timed_pop_filtered(gst.SECOND // 10, kinds)
        self.warning = ""
        if message is not None and message.type == gst.MessageType.WARNING:
            self.warning = message.parse_warning()[0].message
        pipeline.set_state(gst.State.NULL)
        source.disconnect_by_func(self._done)

    def _done(self, source: Any, info: Any, user_data: Any) -> None:
        told = _Told.from_address(hash(info))
        path = Path(told.folder.decode()) / told.name.decode()
        self.told.append((told.session, path, told.duration_ms, told.container, told.width))


def _length_s(path: Path) -> float:
    with av.open(str(path)) as container:
        times = [frame.time for frame in container.decode(video=0)]
    assert times == sorted(times)
    return times[-1] - times[0]


@pytest.mark.slow
@pytest.mark.parametrize(("container", "suffix"), [(0, ".mp4"), (1, ".mkv")])
@pytest.mark.sampled
def test_a_recording_has_what_came_before_and_after(
    gst: Any, tmp_path: Path, container: int, suffix: str
) -> None:
    number = ctypes.c_uint32(99)
    settings = f"smart-record=2 smart-rec-dir-path={tmp_path} smart-rec-container={container}"
    start = ("start-sr", capsule_of(ctypes.addressof(number)), 2, 3, None)
    ran = Recorded(gst, f"{SOURCE} {settings} smart-rec-file-prefix=belt", {100: start})
    ((session, path, duration_ms, kind, width),) = ran.told
    assert (number.value, session, kind, width) == (0, 0, container, 640)
    assert path.suffix == suffix
    assert path.name.startswith("belt_00000_")
    # From the clip's one key frame on; the decoder is some frames behind the packets.
    assert 6.8 <= _length_s(path) <= 9
    assert duration_ms / 1000 == pytest.approx(_length_s(path), abs=0.4)


@pytest.mark.slow
def test_recordings_run_beside_each_other_and_are_stopped(gst: Any, tmp_path: Path) -> None:
    start = ("start-sr", None, 0, 0, None)
    actions = {50: start, 75: start, 125: ("stop-sr", 0)}
    ran = Recorded(gst, f"{SOURCE} smart-record=1 smart-rec-dir-path={tmp_path}", actions)
    first, second = sorted(ran.told)
    assert (first[0], second[0]) == (0, 1)
    assert _length_s(first[1]) < _length_s(second[1])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_start_that_cannot_be_names_the_cause(gst: Any, tmp_path: Path) -> None:
    start = ("start-sr", None, 1, 1, None)
    off = Recorded(gst, SOURCE, {10: start})
    assert "set smart-record to 2" in off.warning
    absent = Recorded(gst, f"{SOURCE} smart-record=2 smart-rec-dir-path={tmp_path}/no", {10: start})
    assert "there is no such folder" in absent.warning
    unknown = Recorded(
        gst, f"{SOURCE} smart-record=2 smart-rec-dir-path={tmp_path}", {10: ("stop-sr", 5)}
    )
    assert "there is no recording 5" in unknown.warning


@pytest.mark.slow
def test_a_loop_of_the_video_goes_on_in_the_file(gst: Any, tmp_path: Path) -> None:
    settings = f"smart-record=2 smart-rec-dir-path={tmp_path} file-loop=1"
    start = {50: ("start-sr", None, 1, 12, None)}
    ran = Recorded(gst, f"{SOURCE} {settings}", start, is_endless=True)
    ((_, path, duration_ms, _, _),) = ran.told
    assert 13.8 <= _length_s(path) <= 17  # from the clip's one key frame on
    assert duration_ms / 1000 == pytest.approx(_length_s(path), abs=0.3)
