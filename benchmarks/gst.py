"""The elements for DeepStream applications: throughput, memory, sources that come and go.

Throughput: four videos of 1920x1080 H.264 through `uridecodebin`, multiplexer and YOLOX-nano in
batches of four, without and with tiler and display, beside the plain pipeline of the same config,
videos and frames. Rounds take turns; each row has the medians, and the median of the rounds'
ratios. The other two tables use the demo scene. Needs GStreamer; the first one HEADRACE_TEST_DATA,
too.
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import headrace
from benchmarks.common import ROOT, data_dir, timed
from benchmarks.gpu.clips import clip
from headrace.gstreamer.pyds.loading import gstreamer

SCENE = ROOT / "examples" / "conveyor"
SOURCES = 4
FRAMES = 60  # of each video
ROUNDS = 5
LONG = 10_000
CHANGES = 600
LATELY = 20  # comings before a row; GStreamer keeps idle threads of sources that are gone a while


def play(description: str) -> None:
    """Run a pipeline to its end."""
    gst = gstreamer()
    pipeline = gst.parse_launch(description)
    bus = pipeline.get_bus()
    pipeline.set_state(gst.State.PLAYING)
    kinds = gst.MessageType.EOS | gst.MessageType.ERROR
    message = bus.timed_pop_filtered(gst.CLOCK_TIME_NONE, kinds)
    pipeline.set_state(gst.State.NULL)
    if message.type == gst.MessageType.ERROR:
        raise RuntimeError(message.parse_error())


def throughput(folder: Path) -> None:
    data = data_dir()
    if data is None:
        return
    video = clip("h264", frames=FRAMES)
    shutil.copytree(ROOT / "examples" / "yolox", folder, dirs_exist_ok=True)
    (folder / "yolox_nano.onnx").symlink_to(data / "models" / "yolox_nano.onnx")
    config = folder / "config_infer_primary.txt"
    text = config.read_text().replace("batch-size=1", f"batch-size={SOURCES}")
    config.write_text(text + f"[property]\nmodel-engine-file={folder}/b{SOURCES}.engine\n")
    uris = " ".join(f"uridecodebin uri={video.as_uri()} ! m.sink_{n} " for n in range(SOURCES))
    mux = (
        f"nvstreammux name=m batch-size={SOURCES} width=1920 height=1080 batched-push-timeout=40000"
    )
    infer = f"{uris} {mux} ! queue ! nvinfer config-file-path={config} ! queue"
    shown = "nvmultistreamtiler width=1280 height=720 ! nvvideoconvert ! nvdsosd"
    kinds = {
        "multiplexer, nvinfer": f"{infer} ! fakesink sync=0",
        "and tiler, nvdsosd": f"{infer} ! {shown} ! fakesink sync=0",
    }

    def plain() -> None:
        report = headrace.open_pipeline(config, sources=[video] * SOURCES).run()
        assert report.frames == SOURCES * FRAMES

    plain()
    rounds: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        found = {"plain pipeline": timed(plain)[0]}
        for name, line in kinds.items():
            found[name] = timed(lambda line=line: play(line))[0]
        rounds.append(found)
    table = Table(title=f"{SOURCES} videos of 1080p, YOLOX-nano", title_justify="left")
    for heading in ("what", "frames a second", "of the plain pipeline", "worst, best round"):
        table.add_column(heading)
    for name in rounds[0]:
        rate = SOURCES * FRAMES / statistics.median(one[name] for one in rounds)
        ratios = sorted(one["plain pipeline"] / one[name] for one in rounds)
        spread = f"{ratios[0]:.2f}, {ratios[-1]:.2f}"
        table.add_row(name, f"{rate:.1f}", f"{statistics.median(ratios):.2f}", spread)
    Console().print(table)


def resident_mib() -> float:
    text = Path("/proc/self/statm").read_text().split()[1]
    return int(text) * resource.getpagesize() / 2**20


def frame_counter(gst: Any, pad: Any) -> list[list[int]]:
    """Numbers of the frames that pass a pad, by source."""
    from headrace.gstreamer.pyds.bridge import bridge
    from headrace.gstreamer.pyds.meta import items

    seen: list[list[int]] = []

    def look(_: Any, info: Any) -> Any:
        batch = bridge().get(hash(info.get_buffer()))
        for frame in items(batch, "frame_meta_list"):
            while len(seen) <= frame.source_id:
                seen.append([])
            seen[frame.source_id].append(frame.frame_num)
        return gst.PadProbeReturn.OK

    pad.add_probe(gst.PadProbeType.BUFFER, look)
    return seen


def running(gst: Any, folder: Path, sources: int) -> tuple[Any, list[list[int]]]:
    """The demo's detector over one video again and again, drawn."""
    shutil.copytree(SCENE, folder, dirs_exist_ok=True)
    uri = (SCENE / "conveyor.mp4").as_uri()
    loop = f"nvurisrcbin uri={uri} file-loop=1 ! m.sink_"
    pipeline = gst.parse_launch(
        f"{' '.join(f'{loop}{n}' for n in range(sources))} "
        f"nvstreammux name=m batch-size={sources} width=640 height=384 "
        "batched-push-timeout=40000 ! "
        f"nvinfer config-file-path={folder}/config_infer_primary.txt ! nvosdbin ! "
        "fakesink name=end sync=0"
    )
    seen = frame_counter(gst, pipeline.get_by_name("end").get_static_pad("sink"))
    pipeline.set_state(gst.State.PLAYING)
    return pipeline, seen


def memory(folder: Path) -> None:
    gst = gstreamer()
    pipeline, seen = running(gst, folder, 2)
    table = Table(title=f"{LONG:,} frames of two sources", title_justify="left")
    for heading in ("frames", "RSS, MiB"):
        table.add_column(heading, justify="right")
    for step in range(1, 6):
        while sum(map(len, seen)) < LONG * step // 5:
            time.sleep(0.02)
        gc.collect()
        table.add_row(f"{sum(map(len, seen)):,}", f"{resident_mib():.1f}")
    pipeline.set_state(gst.State.NULL)
    Console().print(table)


def changes(folder: Path) -> None:
    gst = gstreamer()
    pipeline, seen = running(gst, folder, 1)
    mux, bus = pipeline.get_by_name("m"), pipeline.get_bus()
    mux.set_property("batch-size", 2)
    uri = (SCENE / "conveyor.mp4").as_uri()
    table = Table(title="a second source that comes and goes", title_justify="left")
    for heading in (
        "times",
        "threads, least and most",
        "open files",
        "RSS, MiB",
        "longest wait for a frame, s",
    ):
        table.add_column(heading, justify="right")
    longest = 0.0
    threads: list[int] = []
    for number in range(1, CHANGES + 1):
        pad = mux.request_pad_simple("sink_1")
        source = gst.ElementFactory.make("nvurisrcbin")
        source.set_property("uri", uri)
        source.connect("pad-added", lambda _, found, pad=pad: found.link(pad))
        pipeline.add(source)
        before, start = len(seen[1]) if len(seen) > 1 else 0, time.monotonic()
        source.sync_state_with_parent()
        while len(seen) < 2 or len(seen[1]) < before + 3:
            time.sleep(0.005)
            assert time.monotonic() - start < 20, f"source {number} gives no frame"
        longest = max(longest, time.monotonic() - start)
        source.set_locked_state(True)  # else a change of the pipeline may bring it back to life
        source.set_state(gst.State.NULL)
        pad.send_event(gst.Event.new_flush_stop(False))
        mux.release_request_pad(pad)
        pipeline.remove(source)
        del source, pad
        while bus.pop() is not None:  # messages keep their elements alive
            pass
        threads.append(len(os.listdir("/proc/self/task")))
        if number in (LATELY, CHANGES // 3, CHANGES * 2 // 3, CHANGES):
            gc.collect()
            files = len(os.listdir("/proc/self/fd"))
            lately = threads[-LATELY:]
            span = f"{min(lately)} to {max(lately)}"
            values = (number, span, files, f"{resident_mib():.1f}", f"{longest:.2f}")
            table.add_row(*map(str, values))
    pipeline.set_state(gst.State.NULL)
    assert seen[0] == list(range(len(seen[0]))), "the other source lost a frame"
    Console().print(table)


def report() -> None:
    from headrace.gstreamer.elements.register import register

    register()
    for part in (throughput, memory, changes):
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder))
    print(f"{threading.active_count()} threads of Python are left")
