"""Bad input: no hang, no crash, and a message that names the element and the cause."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.gstreamer.conftest import Run

MUX = "nvstreammux name=m batch-size=1 width=64 height=48"
PLAIN = "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48"
NVMM = f"{PLAIN} ! nvvideoconvert ! video/x-raw(memory:NVMM)"


SOURCE = "videotestsrc ! video/x-raw,format=I420,width=64,height=48"


def source(number: int = 0) -> str:
    return f"{PLAIN} ! m.sink_{number} "


@pytest.mark.parametrize(
    ("line", "words"),
    [
        # The sources have ended when the first batch is refused: nobody else would say so.
        (f"{source()} {MUX} ! video/x-raw(memory:NVMM),width=99 ! fakesink",
         ("behind m do not take its images", "width=(int)99", "m gives video/x-raw")),
        (f"{source()} {MUX}", ("m has nothing linked behind it",)),
        (f"{source()} {MUX} ! nvinfer config-file-path={{config}} ! "
         "video/x-raw(memory:NVMM),width=99 ! fakesink", ("behind m do not take", "width=(int)99")),
        (f"{NVMM} ! nvmultistreamtiler ! fakesink", ("nvmultistreamtiler", "put nvstreammux")),
        (f"{NVMM} ! nvtracker ! fakesink", ("nvtracker", "put nvstreammux in front")),
        (f"{NVMM} ! nvsegvisual ! fakesink", ("nvsegvisual", "put nvstreammux in front")),
        (f"{NVMM} ! nvstreamdemux name=d d.src_0 ! fakesink", ("d: ", "nvstreamdemux", "put nvs")),
        (f"{source()} {MUX} ! nvdsanalytics name=a ! fakesink",
         ("config-file is not set", "a: ", "the file of the rules")),
        (f"{source()} {MUX} ! nvinferserver name=s ! fakesink", ("nvinferserver has no config",)),
        (f"{source()} {MUX} ! nvmultistreamtiler rows=99 columns=99 width=90 height=90 ! fakesink",
         ("99 x 99 tiles do not fit into 90x90",)),
        (f"{source()} nvstreammux name=m width=2000000000 height=2000000000 ! fakesink",
         ("cannot be made one of 2000000000x2000000000",)),
        (f"{source()} {MUX} ! nvvideoconvert src-crop=1:2 ! video/x-raw ! fakesink",
         ("src-crop=1:2 is no area", "left:top:width:height")),
        (f"{source()} {MUX} ! nvvideoconvert src-crop=90:0:8:8 ! video/x-raw ! fakesink",
         ("90:0:8:8 lies outside an image of 64x48",)),
        ("nvmultiurisrcbin name=many ! fakesink", ("uri-list is empty", "many: ")),
        (f"{source()} {MUX} ! nvrtspoutsinkbin rtsp-port=99999", ("127.0.0.1:99999", "1..65535")),
    ],
)  # fmt: skip
def test_the_element_and_the_cause_are_named(
    play: Run, detector: Path, line: str, words: tuple[str, ...]
) -> None:
    errors = play(line.format(config=detector)).errors
    for word in words:
        assert word in errors[0]


@pytest.mark.parametrize("stage", ["", "nvinfer name=first config-file-path={config} !"])
def test_an_application_that_refuses_the_last_buffers_ends_the_run(
    gst: Any, detector: Path, stage: str
) -> None:
    pipeline = gst.parse_launch(
        f"{source()} {MUX} ! {stage.format(config=detector)} appsink name=end emit-signals=1"
    )
    mux, ended = pipeline.get_by_name("m"), threading.Event()

    def look(pad: Any, info: Any) -> int:
        if info.get_event().type == gst.EventType.EOS:
            ended.set()
        return 1

    def refuse(sink: Any) -> Any:
        ended.wait(20)
        sink.emit("pull-sample")
        return gst.FlowReturn.ERROR

    mux.get_static_pad("sink_0").add_probe(gst.PadProbeType.EVENT_DOWNSTREAM, look)
    pipeline.get_by_name("end").connect("new-sample", refuse)
    pipeline.set_state(gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(30 * gst.SECOND, gst.MessageType.ERROR)
    pipeline.set_state(gst.State.NULL)
    assert message is not None, "the pipeline hangs"
    name = "first" if stage else "m"
    assert message.parse_error()[0].message == f"the elements behind {name} failed (error)"


@pytest.mark.slow
def test_states_to_and_fro(gst: Any, detector: Path) -> None:
    """Through all states, with frames under way, and from one to the next without a wait."""
    videos = " ".join(f"{SOURCE} ! m.sink_{n} " for n in range(2))
    pipeline = gst.parse_launch(
        f"{videos} nvstreammux name=m batch-size=2 width=64 height=48 batched-push-timeout=5000 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ! nvmultistreamtiler width=64 height=48 !"
        " nvosdbin ! fakesink name=end"
    )
    states = (gst.State.PAUSED, gst.State.PLAYING, gst.State.READY, gst.State.PLAYING)
    threads = threading.active_count()
    for turn in range(13):
        for number, state in enumerate(states):
            assert pipeline.set_state(state) != gst.StateChangeReturn.FAILURE
            if (turn + number) % 3 == 0:
                assert pipeline.get_state(30 * gst.SECOND)[1] == state
        if turn == 4:
            pipeline.set_state(gst.State.NULL)
    pipeline.set_state(gst.State.NULL)
    assert pipeline.get_bus().pop_filtered(gst.MessageType.ERROR) is None
    assert threading.active_count() == threads


@pytest.mark.slow
def test_an_exception_in_a_probe_leaves_the_run_going(
    gst: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """
from headrace.gstreamer import pyds  # brings the elements
from gi.repository import Gst
import headrace.gstreamer.elements.register as r
r.register()
p = Gst.parse_launch({line!r})
def broken(pad, info):
    raise ZeroDivisionError("of the application")
p.get_by_name("end").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, broken)
p.set_state(Gst.State.PLAYING)
ends = Gst.MessageType.EOS | Gst.MessageType.ERROR
print(p.get_bus().timed_pop_filtered(30 * Gst.SECOND, ends).type.first_value_nick, flush=True)
{end}
"""
    line = f"{source()} {MUX} ! fakesink name=end"
    for end in ("p.set_state(Gst.State.NULL)", ""):  # the second leaves while the pipeline plays
        done = subprocess.run(
            [sys.executable, "-c", script.format(line=line, end=end)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "eos\n"), done.stderr
        assert "ZeroDivisionError: of the application" in done.stderr


def test_frames_without_an_output_are_told(play: Run) -> None:
    ran = play(f"{source(0)} {source(1)} {MUX} ! nvstreamdemux name=d d.src_1 ! fakesink")
    assert ran.errors == []
    assert ran.warnings == ["nothing is linked to src_0: its frames are dropped"]


def test_a_tracker_library_of_another_maker_is_told(play: Run, detector: Path) -> None:
    infer = f"{source()} {MUX} ! nvinfer config-file-path={detector} ! nvtracker "
    said = play(f"{infer} ll-lib-file=./libByteTracker.so ! fakesink")
    assert any("ll-lib-file=./libByteTracker.so is not there" in text for text in said.warnings)
    own = play(f"{infer} ll-lib-file=/opt/libnvds_nvmultiobjecttracker.so ! fakesink")
    assert not any("ll-lib-file" in text for text in own.warnings)


def test_a_failed_change_of_state_names_its_cause_on_stderr(
    gst: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    absent = tmp_path / "absent.txt"
    pipeline = gst.parse_launch(
        "videotestsrc ! m.sink_0 nvstreammux name=m batch-size=1 ! "
        f"nvinfer name=model config-file-path={absent} ! fakesink"
    )
    assert pipeline.set_state(gst.State.PLAYING) == gst.StateChangeReturn.FAILURE
    pipeline.set_state(gst.State.NULL)
    assert f"error: model: {absent}: there is no such config file." in capfd.readouterr().err
