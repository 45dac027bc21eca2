"""GStreamer for the tests, where it is installed, and short pipelines."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer.elements.register import SWITCH
from headrace.gstreamer.pyds.loading import provide_bindings

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"


@pytest.fixture(scope="session")
def gst() -> Any:
    """The module `Gst`, with our elements registered."""
    if os.environ.get(SWITCH) == "0":
        pytest.skip(f"{SWITCH}=0 switches the elements off")
    if not provide_bindings():
        pytest.skip("GStreamer's bindings are not installed")
    from headrace.errors import MissingExtraError
    from headrace.gstreamer.pyds.loading import gstreamer

    try:
        module = gstreamer()
    except MissingExtraError as error:
        pytest.skip(str(error))
    for name in ("avdec_h264", "qtdemux", "videotestsrc"):
        if module.ElementFactory.find(name) is None:
            pytest.skip(f"GStreamer has no {name}")
    from headrace.gstreamer.elements.register import register

    register()
    return module


@dataclass
class Ran:
    """What a pipeline left: messages, and what each probe returned for each buffer."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    infos: list[str] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    seen: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))


Run = Callable[..., Ran]


def looking(name: str, probe: Callable[[Any], Any], ran: Ran) -> Callable[[Any, Any], int]:
    """A probe for GStreamer that keeps the results, and errors, of one for a test."""

    def look(pad: Any, info: Any) -> int:
        try:
            ran.seen[name].append(probe(info.get_buffer()))
        except Exception as error:  # of a callback: pytest would not see it
            ran.errors.append(repr(error))
        return 1  # OK

    return look


@pytest.fixture
def play(gst: Any) -> Iterator[Run]:
    """`play(description, NAME=probe, …)` runs a pipeline to its end.

    A probe gets each buffer at the sink pad of the element of its name.
    """

    def run(description: str, wait_s: int = 30, **probes: Callable[[Any], Any]) -> Ran:
        pipeline = gst.parse_launch(description)
        ran = Ran()
        for name, probe in probes.items():
            pad = pipeline.get_by_name(name).get_static_pad("sink")
            pad.add_probe(gst.PadProbeType.BUFFER, looking(name, probe, ran))
        bus = pipeline.get_bus()
        pipeline.set_state(gst.State.PLAYING)
        while True:
            message = bus.timed_pop(wait_s * gst.SECOND)
            assert message is not None, "the pipeline does not end"
            if message.type == gst.MessageType.EOS:
                break
            if message.type == gst.MessageType.ERROR:
                error, detail = message.parse_error()
                ran.errors.append(f"{error.message}\n{detail}")
                break
            if message.type == gst.MessageType.WARNING:
                ran.warnings.append(message.parse_warning()[0].message)
            if message.type == gst.MessageType.INFO:
                ran.infos.append(message.parse_info()[0].message)
            structure = message.get_structure()
            if structure is not None and structure.get_name() == "stream-eos":
                ran.ended.append(structure.get_value("stream-id"))
        pipeline.set_state(gst.State.NULL)
        return ran

    gc.freeze()  # what is alive here is no part of the pipeline: the collection below skips it
    yield run
    from headrace.gstreamer.pyds.bridge import bridge

    gc.collect()
    assert bridge().table == {}, "metadata outlived its buffers"


def video(frames: int | None = None) -> str:
    """The head of a pipeline: the demo scene decoded, all of it or about as many frames."""
    some = "" if frames is None else f"! identity eos-after={frames - 1} "
    return f"filesrc location={SCENE}/conveyor.mp4 ! qtdemux ! h264parse ! nvv4l2decoder {some}"


DETECTOR = """[property]
gie-unique-id=1
batch-size=1
onnx-file={scene}/detector.onnx
labelfile-path={scene}/labels.txt
num-detected-classes=6
infer-dims=3;192;320
net-scale-factor=0.00392156862745098
maintain-aspect-ratio=1
scaling-filter=1
custom-lib-path={scene}/conveyor_parser.py
parse-bbox-func-name=parse_conveyor
cluster-mode=2
[class-attrs-all]
pre-cluster-threshold=0.3
nms-iou-threshold=0.5
topk=50
"""


@pytest.fixture(scope="session")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config of the demo scene's detector; its engine is saved in a folder of the session."""
    folder = tmp_path_factory.mktemp("detector")
    for name in ("detector.onnx", "labels.txt", "conveyor_parser.py"):
        (folder / name).write_bytes((SCENE / name).read_bytes())
    path = folder / "pgie.txt"
    path.write_text(DETECTOR.format(scene=folder))
    return path
