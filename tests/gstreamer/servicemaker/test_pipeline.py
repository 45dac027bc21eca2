"""Pipelines by name: elements, links, operators, messages, errors."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.errors import ConfigError
from tests.gstreamer.servicemaker.conftest import CONFIG, SCENE

VIDEO = SCENE / "conveyor.mp4"
FRAMES = 12


@pytest.fixture
def maker(gst: Any) -> Any:
    """The module."""
    from headrace.gstreamer import servicemaker

    return servicemaker


def detecting(maker: Any, frames: int = FRAMES) -> Any:
    """The detector over the first frames of the demo scene, not started."""
    return (
        maker.Pipeline("detecting")
        .add("filesrc", "src", {"location": str(VIDEO)})
        .add("qtdemux", "demux")
        .add("h264parse", "parser")
        .add("nvv4l2decoder", "decoder")
        .add("identity", "first", {"eos-after": frames - 1})
        .add("nvstreammux", "mux", {"batch-size": 1, "width": 640, "height": 384})
        .add("nvinfer", "infer", {"config-file-path": str(CONFIG)})
        .add("nvosdbin", "osd")
        .add("fakesink", "sink", {"sync": False})
        .link("src", "demux", "parser", "decoder", "first")
        .link(("first", "mux"), ("", "sink_%u"))
        .link("mux", "infer", "osd", "sink")
    )


def test_the_boxes_are_those_of_a_run(maker: Any) -> None:
    found = []

    class Reader(maker.BatchMetadataOperator):  # type: ignore[misc]
        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                boxes = [(o.class_id, o.rect_params.left, o.confidence) for o in frame.object_items]
                found.append((frame.frame_number, boxes))

    messages: list[Any] = []
    pipeline = detecting(maker).attach("infer", maker.Probe("reader", Reader()))
    pipeline.start(messages.append).wait()
    expected = [
        (meta.frame, [(o.class_id, o.left, o.confidence) for o in meta.objects])
        for _, meta in headrace.open_pipeline(CONFIG, sources=VIDEO, limit=FRAMES)
    ]
    assert found[:10] == expected[:10], "at its end the decoder gives some frames and not others"
    assert len(found) == FRAMES
    assert sum(len(boxes) for _, boxes in found) > FRAMES
    states = [m for m in messages if isinstance(m, maker.StateTransitionMessage)]
    assert any(m.origin == "sink" and m.new_state == maker.PipelineState.PLAYING for m in states)
    assert isinstance(messages[-1], maker.EOSMessage)
    assert not pipeline.is_running


def test_an_exception_of_an_operator_ends_the_run(maker: Any) -> None:
    class Broken(maker.BatchMetadataOperator):  # type: ignore[misc]
        def handle_metadata(self, batch_meta: Any) -> None:
            raise ZeroDivisionError("of the application")

    with pytest.raises(ZeroDivisionError, match="of the application"):
        detecting(maker).attach("infer", maker.Probe("broken", Broken())).start().wait()


def test_buffers_can_be_dropped_and_a_run_stopped(maker: Any) -> None:
    seen: list[int] = []

    class Every(maker.BufferOperator):  # type: ignore[misc]
        def handle_buffer(self, buffer: Any) -> bool:
            seen.append(buffer.batch_size)
            if len(seen) == 5:
                pipeline.stop()
            return len(seen) % 2 == 0

    class Count(maker.BatchMetadataOperator):  # type: ignore[misc]
        frames = 0

        def handle_metadata(self, batch_meta: Any) -> None:
            self.frames += batch_meta.n_frames

    count = Count()
    pipeline = detecting(maker, 250).attach("mux", maker.Probe("every", Every()))
    pipeline.attach("sink", maker.Probe("count", count), tips="sink").start().wait()
    assert set(seen) == {1}
    assert 5 <= len(seen) < 100
    assert count.frames <= len(seen) // 2


@pytest.mark.parametrize("width", [32, 33])
def test_images_go_in_and_out_unchanged(maker: Any, width: int) -> None:
    rng = np.random.default_rng(width)
    images = [rng.integers(0, 256, (20, width, 3), np.uint8) for _ in range(4)]

    class Provider(maker.BufferProvider):  # type: ignore[misc]
        def generate(self, size: int) -> Any:
            if not left:
                return maker.Buffer()
            return maker.as_tensor(left.pop(0), "HWC").wrap(maker.ColorFormat.RGB)

    class Retriever(maker.BufferRetriever):  # type: ignore[misc]
        def consume(self, buffer: Any) -> int:
            got.append(buffer.extract(0).clone().values)
            return 1

    got: list[Any] = []
    left = list(images)
    caps = f"video/x-raw(memory:NVMM), format=RGB, width={width}, height=20, framerate=30/1"
    pipeline = maker.Pipeline("through").add("appsrc", "src", {"caps": caps, "do-timestamp": True})
    pipeline.add("appsink", "sink", {"sync": False}).link("src", "sink")
    pipeline.attach("src", maker.Feeder("feeder", Provider()), tips="need-data/enough-data")
    pipeline.attach("sink", maker.Receiver("receiver", Retriever()), tips="new-sample")
    pipeline.start().wait()
    np.testing.assert_array_equal(np.stack(got), np.stack(images))


def test_exceptions_of_providers_and_retrievers_end_the_run(maker: Any) -> None:
    class Provider(maker.BufferProvider):  # type: ignore[misc]
        def generate(self, size: int) -> Any:
            return maker.as_tensor(np.zeros((4, 4), np.uint8)).wrap(maker.ColorFormat.RGB)

    caps = "video/x-raw, format=RGB, width=4, height=4, framerate=30/1"
    pipeline = maker.Pipeline("broken").add("appsrc", "src", {"caps": caps})
    pipeline.add("fakesink", "sink").link("src", "sink")
    pipeline.attach("src", maker.Feeder("feeder", Provider()))
    with pytest.raises(headrace.HeadraceError, match=r"\(4, 4\) uint8 is no image in RGB"):
        pipeline.start().wait()


def test_properties_are_checked(maker: Any) -> None:
    pipeline = maker.Pipeline("properties").add("x264enc", "encoder", {"tune": "zerolatency"})
    node = pipeline["encoder"]
    node.set({"bitrate": "700", "byte-stream": 1}).set("key-int-max", True)
    assert [node.get(name) for name in ("bitrate", "byte-stream", "key-int-max")] == [700, True, 1]
    with pytest.raises(ConfigError, match=r"encoder: x264enc has no property 'bitrat'\n.*bitrate"):
        node.set("bitrat", 1)
    for name, value, allowed in (
        ("bitrate", "many", "uint from 1 to"),
        ("bitrate", -1, "uint from 1 to"),
        ("tune", "fast", "GstX264EncTune"),
        ("pass", "sixth", "one of cbr, quant"),
    ):
        with pytest.raises(ConfigError, match=f"encoder: {name} is set to {value!r}\n.*{allowed}"):
            node.set(name, value)
    with pytest.raises(ConfigError, match="no property 'nothing'"):
        node.get("nothing")
    pipeline.add("capsfilter", "caps", {"caps": "video/x-raw, width=7"})
    assert "width=(int)7" in pipeline["caps"].get("caps").to_string()
    with pytest.raises(ConfigError, match="caps is set to"):
        pipeline["caps"].set("caps", "video/x-raw, width")


def test_what_is_missing_is_named(maker: Any) -> None:
    pipeline = maker.Pipeline("missing").add("fakesrc", "src").add("x264enc", "encoder")
    pipeline.add("fakesink", "sink").link("src", "sink")
    with pytest.raises(ConfigError, match="no element 'nvnothing'"):
        pipeline.add("nvnothing", "x")
    with pytest.raises(ConfigError, match="two elements called 'src'"):
        pipeline.add("fakesrc", "src")
    with pytest.raises(ConfigError, match=r"no element called 'sinc'\n.*src, encoder, sink"):
        pipeline.link("src", "sinc")
    with pytest.raises(ConfigError, match=r"src: there is no free output\n  expected one of src"):
        pipeline.link("src", "encoder")
    with pytest.raises(ConfigError, match=r"no custom object 'nothing'\n.*measure_fps_probe"):
        pipeline.attach("src", "nothing")
    with pytest.raises(ConfigError, match="no property 'secs'\n  expected interval"):
        pipeline.attach("src", "measure_fps_probe", "fps", properties={"secs": 1})
    pipeline.add("h264parse", "parser").add("videotestsrc", "test")
    with pytest.raises(ConfigError, match="output of test cannot be linked to parser"):
        pipeline.link("test", "parser")
    with pytest.raises(headrace.HeadraceError, match="was not started"):
        pipeline.wait()


def test_an_error_of_an_element_is_raised(maker: Any, tmp_path: Path) -> None:
    pipeline = maker.Pipeline("no video").add("filesrc", "src", {"location": str(tmp_path / "no")})
    pipeline.add("fakesink", "sink").link("src", "sink")
    with pytest.raises(headrace.HeadraceError, match="src: Resource not found"):
        pipeline.start().wait()


def test_a_pipeline_goes_with_its_last_reference(maker: Any) -> None:
    class Holder(maker.BatchMetadataOperator):  # type: ignore[misc]
        def __init__(self, held: Any) -> None:
            self.held = held

        def handle_metadata(self, batch_meta: Any) -> None:
            assert self.held.is_running

    pipeline = detecting(maker)
    pipeline.attach("infer", maker.Probe("holder", Holder(pipeline)))
    parts = [weakref.ref(pipeline[name].element) for name in ("decoder", "mux", "infer", "osd")]
    pipeline.start().wait()
    del pipeline
    end = monotonic() + 10  # a thread of GStreamer may be on its way out
    while any(part() is not None for part in parts) and monotonic() < end:
        gc.collect()
        sleep(0.02)
    assert [part() for part in parts] == [None] * 4


def test_applications_import_it(gst: Any) -> None:
    code = (
        "import pyservicemaker.flow, pyservicemaker as p\n"
        "from pyservicemaker import osd, signal, utils, postprocessing\n"
        "from pyservicemaker._pydeepstream.signal import SourceManager\n"
        "assert p.flow.RenderMode is p.RenderMode and p.osd is osd\n"
        "assert issubclass(SourceManager, signal.Emitter)\n"
        "print(p.CommonFactory.create('smart_recording_action', 'x'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "None\n", done.stderr
    assert "Pipeline.start_recording does" in done.stderr
