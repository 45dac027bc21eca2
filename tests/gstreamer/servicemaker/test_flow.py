"""Flows, and the YAML files of pipelines and sources."""

from __future__ import annotations

import socket
from itertools import islice
from pathlib import Path
from typing import Any

import av
import pytest

import headrace
from headrace.errors import ConfigError, HeadraceError
from tests.gstreamer.servicemaker.conftest import CONFIG, SCENE
from tests.ports import free_port

VIDEO = SCENE / "conveyor.mp4"


@pytest.fixture
def maker(gst: Any) -> Any:
    """The module."""
    from headrace.gstreamer import servicemaker

    return servicemaker


def stopping(maker: Any, pipeline: Any, frames: int) -> Any:
    """A probe that counts frames of each source and stops the pipeline."""

    class Stop(maker.BatchMetadataOperator):  # type: ignore[misc]
        def __init__(self) -> None:
            self.seen: list[int] = []
            self.objects = 0

        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                self.seen.append(frame.source_id)
                self.objects += len(list(frame.object_items))
            if len(self.seen) >= frames:
                pipeline.stop()

    return maker.Probe("stop", Stop())


@pytest.mark.slow
def test_a_forked_flow_gives_its_images_to_each_branch(maker: Any, tmp_path: Path) -> None:
    class Retriever(maker.BufferRetriever):  # type: ignore[misc]
        def consume(self, buffer: Any) -> int:
            shapes.append((buffer.batch_size, buffer.extract(0).shape))
            return 1

    pipeline = maker.Pipeline("forked")
    probe, shapes = stopping(maker, pipeline, 20), []
    flow = maker.Flow(pipeline).batch_capture([str(VIDEO), VIDEO.as_uri()], width=640, height=360)
    flow = flow.infer(CONFIG, batch_size=2).track().attach(probe).fork()
    flow.retrieve(Retriever())
    flow.encode(tmp_path / "out.mkv", width=320, height=180)
    flow.render(maker.RenderMode.DISCARD, sync=False)
    flow()
    assert sorted(set(probe.operator.seen)) == [0, 1]
    assert probe.operator.objects > 20
    assert (2, (360, 640, 3)) in shapes
    assert pipeline["infer-nvinfer-0"].get("batch-size") == 2
    with av.open(str(tmp_path / "out.mkv")) as video:
        stream = video.streams.video[0]
        assert (stream.width, stream.height) == (320, 180)


def test_images_of_an_application_are_batched(maker: Any) -> None:
    np = pytest.importorskip("numpy")

    class Provider(maker.BufferProvider):  # type: ignore[misc]
        width, height, device, left = 64, 48, "gpu", 5

        def generate(self, size: int) -> Any:
            self.left -= 1
            if self.left < 0:
                return maker.Buffer()
            image = np.full((48, 64, 3), 50 * self.left, np.uint8)
            return maker.as_tensor(image, "HWC").wrap(maker.ColorFormat.RGB)

    class Retriever(maker.BufferRetriever):  # type: ignore[misc]
        def consume(self, buffer: Any) -> int:
            values.append(int(buffer.extract(0).values.mean().round()))
            return 1

    values: list[int] = []
    flow = maker.Flow(maker.Pipeline("injected")).inject([Provider()])
    flow.batch(width=64, height=48)
    flow.retrieve(Retriever())
    flow()
    assert values == pytest.approx([200, 150, 100, 50, 0], abs=2)


def test_flows_name_their_mistakes(maker: Any, tmp_path: Path) -> None:
    flow = maker.Flow(maker.Pipeline("wrong"))
    with pytest.raises(ConfigError, match="infer has no stream to work on"):
        flow.infer(CONFIG)
    with pytest.raises(ConfigError, match=r"Pipeline\.start_recording"):
        flow.batch_capture([str(VIDEO)], record_config=maker.RecordConfig("cloud"))
    config = maker.SmartRecordConfig("libnvds_kafka_proto.so", "a;1", "b", "c", "d")
    with pytest.raises(ConfigError, match=r"Pipeline\.start_recording"):
        flow.batch_capture([str(VIDEO)], record_config=config)
    flow = flow.batch_capture([str(VIDEO)])
    with pytest.raises(ConfigError, match=r"no property 'batch-sise'\n.*batch-size"):
        flow.infer(CONFIG, batch_sise=2)
    with pytest.raises(ConfigError, match=r"cannot be written to 'out\.avi'\n.*\.mp4"):
        flow.encode(tmp_path / "out.avi")


PIPELINE = """deepstream:
  nodes:
  - {{type: nvurisrcbin, name: source, properties: {{uri: "{uri}"}}}}
  - type: nvstreammux
    name: mux
    properties: {{batch-size: 1, width: 640, height: 360}}
  - {{type: nvinfer, name: infer, properties: {{config-file-path: "{config}"}}}}
  - {{type: nvosdbin, name: osd}}
  - {{type: fakesink, name: sink, properties: {{sync: false}}}}
  - type: kitti_dump_probe.kitti_dump_probe
    name: kitti
    properties: {{kitti-dir: "{kitti}"}}
  - {{type: sample_video_probe.sample_video_probe, name: count, properties: {{font-size: 9}}}}
  edges:
    source: mux
    mux: infer
    infer.src: [osd, kitti, count]
    osd: sink
"""


def test_a_file_describes_a_pipeline(maker: Any, tmp_path: Path) -> None:
    path, kitti = tmp_path / "pipeline.yaml", tmp_path / "kitti"
    path.write_text(PIPELINE.format(uri=VIDEO.as_uri(), config=CONFIG, kitti=kitti))
    pipeline = maker.Pipeline("described", path)
    texts: list[str] = []

    class Texts(maker.BatchMetadataOperator):  # type: ignore[misc]
        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                for display in frame.display_items:
                    texts.append(maker.osd.Text.of(display.meta.text_params[0]).display_text)

    pipeline.attach("infer", maker.Probe("texts", Texts()))
    probe = stopping(maker, pipeline, 6)
    pipeline.attach("infer", probe).start().wait()
    files = sorted(kitti.iterdir())
    assert files[0].name == "000_000000.txt"
    lines = files[0].read_text().splitlines()
    assert len(lines) > 3
    assert all(len(line.split()) == 16 and " -1 " not in line for line in lines)
    assert texts[0].startswith("Person=")
    assert len(texts) == len(probe.operator.seen)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nvosdbin", "nvosdbinn", r"8: GStreamer has no element 'nvosdbinn'"),
        ("batch-size: 1", "batch-sise: 1", r"4: nvstreammux has no property 'batch-sise'"),
        ("osd: sink", "osd: sinc", r"there is no element called 'sinc'"),
        ("font-size", "size", r"17: there is no property 'size'"),
        ("deepstream:", "pipeline:", r"1: there is no deepstream: section"),
        ("name: mux", "nam: mux", r"4: a node has no name"),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_line(
    maker: Any, tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "pipeline.yaml"
    text = PIPELINE.format(uri=VIDEO.as_uri(), config=CONFIG, kitti=tmp_path).replace(old, new)
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        maker.Pipeline("wrong", path)


def test_lists_of_sources(maker: Any, tmp_path: Path) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(
        "source-list:\n"
        f'- {{uri: "{VIDEO.as_uri()}", sensor-id: S1, sensor-name: gate}}\n'
        f'- {{uri: "{VIDEO.as_uri()}", sensor-id: S2, sensor-name: door}}\n'
        "source-config:\n  source-bin: nvmultiurisrcbin\n"
        "  properties: {width: 640, height: 360, file-loop: false}\n"
    )
    config = maker.SourceConfig()
    config.load(path)
    assert [(one.sensor_id, one.sensor_name) for one in config.sensor_list] == [
        ("S1", "gate"), ("S2", "door"),
    ]  # fmt: skip
    assert config.source_properties == {"width": 640, "height": 360, "file-loop": False}
    pipeline = maker.Pipeline("listed")
    probe = stopping(maker, pipeline, 4)
    messages: list[Any] = []
    flow = maker.Flow(pipeline).batch_capture(path).attach(probe)
    flow.render(maker.RenderMode.DISCARD, sync=False)(messages.append)
    added = [m for m in messages if isinstance(m, maker.DynamicSourceMessage)]
    assert [(m.source_id, m.source_added, m.sensor_name) for m in added] == [
        (0, True, "gate"), (1, True, "door"),
    ]  # fmt: skip
    assert set(probe.operator.seen) == {0, 1}
    path.write_text("source-list: []\n")
    with pytest.raises(ConfigError, match="no source is listed"):
        config.load(path)


@pytest.mark.slow
def test_a_stream_is_served(maker: Any) -> None:
    gi = pytest.importorskip("gi")
    try:
        gi.require_version("GstRtspServer", "1.0")
    except ValueError:
        pytest.skip("GStreamer's RTSP server is not installed")
    port = free_port()
    pipeline = maker.Pipeline("served")
    flow = maker.Flow(pipeline).batch_capture([str(VIDEO)], width=320, height=192, file_loop=True)
    flow.render(maker.RenderMode.STREAM, rtsp_port=port, rtsp_mount_point="/cars")
    pipeline.start()
    try:
        with av.open(
            f"rtsp://127.0.0.1:{port}/cars", options={"rtsp_transport": "tcp"}, timeout=10
        ) as video:
            images = islice(video.decode(video=0), 3)
            sizes = [(one.width, one.height) for one in images]
    finally:
        pipeline.stop()
    assert sizes == [(320, 192)] * 3
    again = maker.Flow(maker.Pipeline("twice")).batch_capture([str(VIDEO)])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        again.render(maker.RenderMode.STREAM, rtsp_port=taken.getsockname()[1])
        with pytest.raises(headrace.HeadraceError, match="no RTSP server can listen at 127"):
            again()


@pytest.mark.slow
def test_a_flow_records_its_sources(maker: Any, tmp_path: Path) -> None:
    sources = tmp_path / "sources.yaml"
    sources.write_text(f"source-list:\n- uri: {VIDEO.as_uri()}\n  sensor-id: belt\n")
    pipeline = maker.Pipeline("recorded")
    done: list[Any] = []

    class Recorder(maker.BatchMetadataOperator):  # type: ignore[misc, name-defined]
        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                if frame.frame_number == 50:
                    self.session = pipeline.start_recording("belt", 1, 60, done.append)
                elif frame.frame_number == 200:
                    pipeline.stop_recording_by_session_id(self.session)

    config = maker.RecordConfig(rec_dir_path=str(tmp_path), rec_container=1)
    flow = maker.Flow(pipeline).batch_capture(str(sources), record_config=config)
    flow = flow.attach(maker.Probe("recorder", Recorder()))
    flow.render(maker.RenderMode.DISCARD, enable_osd=False, sync=False)()
    (info,) = done
    assert (info.session_id, info.container, info.file_directory) == (0, "mkv", str(tmp_path))
    assert info.duration > 4000
    assert (tmp_path / info.file_name).stat().st_size > 10_000
    with pytest.raises(HeadraceError, match="no source of recordings is called 'other'"):
        pipeline.start_recording("other", 0, 1)
    with pytest.raises(HeadraceError, match="no recording session 7"):
        pipeline.stop_recording_by_session_id(7)
