"""Elements in pipelines: the boxes of a run, images, batches, errors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from headrace.media import open_source
from tests.gstreamer.conftest import SCENE, Run, video

SIZE = "width=640 height=384"


def tree(buffer: Any) -> Any:
    from headrace.gstreamer import pyds

    return pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))


def walk(first: Any) -> list[Any]:
    found = []
    while first is not None:
        found.append(first.data)
        first = first.next
    return found


def objects_of(buffer: Any) -> list[tuple[int, str, float, tuple[float, ...]]]:
    """Source, label, confidence and box of each object, as an application reads them."""
    found = []
    for frame in walk(tree(buffer).frame_meta_list):
        for obj in walk(frame.obj_meta_list):
            r = obj.rect_params
            box = (r.left, r.top, r.width, r.height)
            found.append((frame.frame_num, obj.obj_label, obj.confidence, box))
    return found


def test_the_boxes_are_those_of_a_run(play: Run, detector: Path) -> None:
    ran = play(
        video(50) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer config-file-path={detector} ! nvvideoconvert ! nvdsosd name=end ! fakesink",
        end=objects_of,
    )
    assert ran.errors == []
    assert len(ran.seen["end"]) > 45
    with (
        Inferencer.from_config(detector) as inferencer,
        open_source(str(SCENE / "conveyor.mp4")) as source,
    ):
        for number, (frame, found) in enumerate(zip(source, ran.seen["end"][:45], strict=False)):
            (meta,) = inferencer.process([frame])
            assert [f[0] for f in found] == [number] * len(meta.objects)
            assert [f[1] for f in found] == [o.label for o in meta.objects]
            np.testing.assert_allclose([f[2] for f in found], meta.objects.confidences, atol=1e-6)
            np.testing.assert_allclose([f[3] for f in found], meta.objects.rects, atol=1e-3)
    assert sum(map(len, ran.seen["end"])) > 200


def test_tracks_and_codes(play: Run, detector: Path, tmp_path: Path) -> None:
    for name in ("classifier.onnx", "labels_characters.txt", "conveyor_parser.py"):
        (tmp_path / name).write_bytes((SCENE / name).read_bytes())
    reader = tmp_path / "config_infer_secondary_characters.txt"
    reader.write_bytes((SCENE / reader.name).read_bytes())

    def named(buffer: Any) -> list[tuple[int, str, list[str]]]:
        from headrace.gstreamer import pyds

        return [
            (
                obj.object_id,
                pyds.get_string(obj.text_params.display_text),
                [
                    i.result_label
                    for c in walk(obj.classifier_meta_list)
                    for i in walk(c.label_info_list)
                ],
            )
            for frame in walk(tree(buffer).frame_meta_list)
            for obj in walk(frame.obj_meta_list)
        ]

    ran = play(
        video(12) + f"! m.sink_0 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer config-file-path={detector} ! nvtracker ! nvinfer config-file-path={reader} ! "
        "fakesink name=end",
        end=named,
    )
    assert ran.errors == []
    last = ran.seen["end"][-1]
    assert len({number for number, _, _ in last}) == len(last) > 3
    # a track keeps its number
    assert {n for n, _, _ in ran.seen["end"][-2]} & {n for n, _, _ in last}
    read = [(text, found) for _, text, found in last if found]
    assert read
    for text, found in read:
        assert set(found) <= set(text.split()[-1])


def test_batches_of_sources_of_other_sizes(play: Run) -> None:
    over: list[int] = []  # sources that stages forget

    def frames(buffer: Any) -> list[tuple[int, ...]]:
        batch = tree(buffer)
        over.extend(batch.ended)
        return [
            (f.source_id, f.frame_num, f.batch_id, f.source_frame_width,
             *batch.surfaces[f.batch_id].rgba().shape)
            for f in walk(batch.frame_meta_list)
        ]  # fmt: skip

    ran = play(
        "nvstreammux name=m batch-size=2 width=64 height=48 batched-push-timeout=2000000 ! "
        "fakesink name=end "
        "videotestsrc num-buffers=5 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=160,height=90 ! m.sink_3",
        end=frames,
    )
    assert ran.errors == []
    both = [batch for batch in ran.seen["end"] if len(batch) == 2]
    assert [f[:5] + f[5:] for f in both[0]] == [(0, 0, 0, 64, 48, 64, 4), (3, 0, 1, 160, 48, 64, 4)]
    every = [frame for batch in ran.seen["end"] for frame in batch]
    assert sorted(f[1] for f in every if f[0] == 0) == [0, 1, 2, 3, 4]
    assert sorted(f[1] for f in every if f[0] == 3) == [0, 1, 2]
    assert sorted(ran.ended) == [0, 3]
    assert [number for number in over if number] == [3]


def test_what_is_written_into_an_image_is_shown(play: Run) -> None:
    """The array of the application, and figures of the display, behind the converter."""
    from headrace.gstreamer import pyds
    from headrace.gstreamer.elements.surface import MappedBuffer

    def paint(buffer: Any) -> None:
        pyds.get_nvds_buf_surface(hash(buffer), 0)[:] = (0, 0, 255, 255)
        batch = tree(buffer)
        (frame,) = walk(batch.frame_meta_list)
        display = pyds.nvds_acquire_display_meta_from_pool(batch)
        display.num_rects = display.num_circles = 1
        rect = display.rect_params[0]
        rect.left, rect.top, rect.width, rect.height, rect.border_width = 10, 10, 20, 16, 2
        rect.border_color.set(1, 0, 0, 1)
        circle = display.circle_params[0]
        circle.xc, circle.yc, circle.radius, circle.has_bg_color = 50, 30, 8, 1
        circle.bg_color.set(0, 1, 0, 1)
        circle.circle_color.set(0, 1, 0, 1)
        pyds.nvds_add_display_meta_to_frame(frame, display)

    ran = play(
        "videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 ! nvvideoconvert ! nvdsosd name=osd ! nvvideoconvert ! "
        "video/x-raw,format=RGBA ! fakesink name=end",
        osd=paint,
        end=lambda buffer: MappedBuffer(buffer).data.reshape(48, 64, 4).copy(),
    )
    assert ran.errors == []
    assert len(ran.seen["end"]) == 2
    image = ran.seen["end"][1]
    assert image[40, 5].tolist() == [0, 0, 255, 255]
    assert image[10, 12].tolist() == image[25, 29].tolist() == [255, 0, 0, 255]
    assert image[15, 20].tolist() == [0, 0, 255, 255]
    assert image[30, 50].tolist() == [0, 255, 0, 255]


def test_a_converter_keeps_the_size_and_changes_what_is_asked_for(play: Run) -> None:
    from headrace.gstreamer.elements.surface import MappedBuffer

    ran = play(
        "videotestsrc num-buffers=1 pattern=blue ! video/x-raw,format=NV12,width=64,height=48 ! "
        "m.sink_0 nvstreammux name=m batch-size=1 ! nvvideoconvert ! "
        "video/x-raw,format=RGBA,width=32 ! fakesink name=end",
        end=lambda buffer: MappedBuffer(buffer).data.reshape(48, 32, 4)[20, 20].tolist(),
    )
    assert ran.errors == []
    np.testing.assert_allclose(ran.seen["end"], [(0, 0, 255, 255)], atol=3)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "videotestsrc num-buffers=3 ! video/x-raw,format=RGBA,width=64,height=48 ! "
            "nvvideoconvert ! video/x-raw(memory:NVMM),format=RGBA ! "
            "nvinfer config-file-path={config} ! fakesink",
            "put nvstreammux in front of it",
        ),
        (
            "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
            "nvstreammux name=m batch-size=1 ! nvinfer ! fakesink",
            "nvinfer has no config-file-path",
        ),
        (
            "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
            "nvstreammux name=m batch-size=1 ! nvinfer config-file-path=/no/such.txt ! fakesink",
            "/no/such.txt",
        ),
    ],
)
def test_errors_are_messages_on_the_bus(play: Run, detector: Path, line: str, text: str) -> None:
    (error,) = play(line.format(config=detector)).errors[:1]
    assert text in error


def test_the_batch_size_is_that_of_the_file_until_it_is_set(gst: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("[property]\nbatch-size=7\nonnx-file=x.onnx\nnum-detected-classes=1\n")
    nvinfer = gst.ElementFactory.make("nvinfer")
    nvinfer.set_property("config-file-path", str(path))
    assert nvinfer.get_property("batch-size") == 7
    nvinfer.set_property("batch-size", 3)
    assert nvinfer.get_property("batch-size") == 3


def test_tiles_carry_their_metadata(play: Run, detector: Path) -> None:
    def placed(buffer: Any) -> tuple[Any, list[tuple[float, ...]]]:
        batch = tree(buffer)
        (frame,) = walk(batch.frame_meta_list)
        boxes = [o.rect_params for o in walk(frame.obj_meta_list)]
        shape = batch.surfaces[0].rgba().shape
        return shape, [(b.left, b.top, b.width, b.height) for b in boxes]

    head = (
        video(3) + f"! m.sink_1 nvstreammux name=m batch-size=1 {SIZE} ! "
        f"nvinfer config-file-path={detector} ! "
    )
    plain = play(head + "fakesink name=end", end=objects_of)
    tiled = play(
        head + "nvmultistreamtiler rows=1 columns=2 width=320 height=96 ! fakesink name=end",
        end=placed,
    )
    assert tiled.errors == plain.errors == []
    for (shape, boxes), found in zip(tiled.seen["end"], plain.seen["end"], strict=True):
        assert shape == (96, 320, 4)
        expected = [(160 + x / 4, y / 4, w / 4, h / 4) for _, _, _, (x, y, w, h) in found]
        np.testing.assert_allclose(boxes, expected, atol=1e-3)


def test_a_converter_before_a_tiler_keeps_the_size(play: Run) -> None:
    """Objects lie in pixels of the batch: applications crop them out of its images."""

    def shape(buffer: Any) -> tuple[int, ...]:
        from headrace.gstreamer import pyds

        return tuple(pyds.get_nvds_buf_surface(hash(buffer), 0).shape)

    ran = play(
        "videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 width=192 height=108 ! nvvideoconvert ! "
        "video/x-raw(memory:NVMM),format=RGBA ! nvmultistreamtiler name=t width=72 height=58 ! "
        "nvvideoconvert ! nvdsosd name=end ! fakesink",
        t=shape,
        end=shape,
    )
    assert ran.errors == []
    assert (ran.seen["t"][0], ran.seen["end"][0]) == ((108, 192, 4), (58, 72, 4))


def test_a_demultiplexer_gives_each_source_its_pad(play: Run) -> None:
    numbers: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}

    def look(buffer: Any) -> None:
        (frame,) = walk(tree(buffer).frame_meta_list)
        numbers["a"].append((frame.source_id, frame.batch_id))

    ran = play(
        "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
        "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_1 "
        "nvstreammux name=m batch-size=2 batched-push-timeout=2000000 ! nvstreamdemux name=d "
        "d.src_0 ! queue ! fakesink async=false d.src_1 ! queue ! fakesink name=end async=false",
        end=look,
    )
    assert ran.errors == []
    assert numbers["a"] == [(1, 0)] * 3


@pytest.mark.parametrize("asked", [False, True])
def test_the_end_of_a_source_goes_on_at_once(gst: Any, asked: bool) -> None:
    """Else a pad ends with the last of all."""
    line = "videotestsrc num-buffers={} ! video/x-raw,width=64,height=48 ! m.sink_{} "
    pipeline = gst.parse_launch(
        line.format(2, 0) + line.format(6, 1) + "nvstreammux name=m batch-size=2 "
        f"batched-push-timeout=2000000 ! nvstreamdemux name=d per-stream-eos={int(asked)} "
        "d.src_0 ! fakesink name=a async=false d.src_1 ! fakesink name=b async=false"
    )
    frames, ended = 0, []

    def look(pad: Any, info: Any) -> int:
        nonlocal frames
        if info.type & gst.PadProbeType.BUFFER:
            frames += 1
        elif info.get_event().type == gst.EventType.EOS:
            ended.append(frames)
        return 1

    pipeline.get_by_name("b").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    ends = gst.PadProbeType.EVENT_DOWNSTREAM
    pipeline.get_by_name("a").get_static_pad("sink").add_probe(ends, look)
    pipeline.set_state(gst.State.PLAYING)
    done = pipeline.get_bus().timed_pop_filtered(10 * gst.SECOND, gst.MessageType.EOS)
    pipeline.set_state(gst.State.NULL)
    assert done is not None
    assert [frame < 6 for frame in ended] == [asked]


def test_a_pad_of_the_demultiplexer_has_a_batch_of_one(gst: Any) -> None:
    pipeline = gst.parse_launch(
        "videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! m.sink_0 "
        "nvstreammux name=m batch-size=5 ! nvstreamdemux name=d d.src_0 ! fakesink name=end"
    )
    caps: list[Any] = []

    def look(pad: Any, info: Any) -> int:
        caps.append(pad.get_current_caps().get_structure(0))
        return 1

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(10 * gst.SECOND, gst.MessageType.EOS)
    pipeline.set_state(gst.State.NULL)
    assert [one.get_value("batch-size") for one in caps] == [1]


@pytest.mark.slow
def test_the_example_counts_what_the_scene_shows(gst: Any, tmp_path: Path) -> None:
    """An application as it is written for DeepStream, run by Python itself."""
    script = SCENE.parent / "12_gstreamer" / "pipeline.py"
    config = tmp_path / "config_infer_primary.txt"
    for name in ("config_infer_primary.txt", "detector.onnx", "labels.txt", "conveyor_parser.py"):
        (tmp_path / name).write_bytes((SCENE / name).read_bytes())
    out = tmp_path / "out.mp4"
    arguments = [script, SCENE / "conveyor.mp4", config, out]
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    counts = dict(line.split() for line in done.stdout.splitlines())
    assert counts["frames"] == "250"
    assert int(counts["box"]) > 300
    with open_source(str(out)) as video:
        frames = list(video)
    assert len(frames) == 250
    assert (frames[0].width, frames[0].height) == (1280, 768)


def test_a_property_without_effect_is_named(gst: Any, capfd: pytest.CaptureFixture[str]) -> None:
    mux = gst.ElementFactory.make("nvstreammux")
    for name, value in (("gpu-id", 1), ("max-latency", 0), ("max-latency", 2), ("sync-inputs", 1)):
        mux.set_property(name, value)
    lines = [line for line in capfd.readouterr().err.splitlines() if "effect" in line]
    assert lines == [
        "warning: nvstreammux: max-latency=2 has no effect yet",
        "warning: nvstreammux: sync-inputs=True has no effect yet",
    ]


def test_a_logger_prints_the_rate_of_each_source(
    play: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    source = "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! "
    ran = play(
        f"{source} m.sink_0 {source} m.sink_2 nvstreammux name=m batch-size=2 "
        "batched-push-timeout=2000000 ! nvdslogger ! fakesink"
    )
    assert ran.errors == []
    (line,) = [text for text in capfd.readouterr().out.splitlines() if "**PERF" in text]
    rates = re.findall(r"source (\d): ([\d.]+) \(([\d.]+)\)", line)
    assert [rate[0] for rate in rates] == ["0", "2"]
    assert all(float(now) > 0 and float(mean) > 0 for _, now, mean in rates)
    assert play(f"{source} nvstreammux ! nvdslogger show-fps=0 ! fakesink").errors == []
    assert "**PERF" not in capfd.readouterr().out


def test_times_of_batches_never_go_back(play: Run) -> None:
    """Sources out of step give batches of one frame; no container takes a time before the last."""
    line = "videotestsrc num-buffers={} timestamp-offset={} ! video/x-raw,width=64,height=48 ! m. "
    ran = play(
        line.format(10, 10**9) + line.format(20, 0) + "nvstreammux name=m batch-size=2 width=64 "
        "height=48 batched-push-timeout=0 ! nvmultistreamtiler name=tiler columns=2 width=128 "
        "height=48 ! nvvideoconvert ! nvv4l2h264enc ! h264parse ! mp4mux ! fakesink",
        tiler=lambda buffer: (buffer.pts, [f.buf_pts for f in walk(tree(buffer).frame_meta_list)]),
    )
    assert ran.errors == []
    times = [pts for pts, _ in ran.seen["tiler"]]
    assert times == sorted(set(times))
    assert min(own for _, frames in ran.seen["tiler"] for own in frames) == 0
