"""Live streams, the time of one frame, and memory over many."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import headrace
from benchmarks.gpu.clips import DEVICE, PROCESSES, clip, config, images, show
from benchmarks.gpu.engines import one_lane
from benchmarks.gpu.throughput import looped
from benchmarks.rtsp_server import shown
from headrace.cli.inputs import spec_of
from headrace.config import ModelConfig
from headrace.infer.run_options import RunOptions
from headrace.media import open_source
from headrace.pipeline.assembly import Assembling
from headrace.pipeline.shares import SharedRun


def rtsp() -> None:
    """Streams of 30 frames a second over loopback, in several processes: none may stall."""
    seconds, count = float(os.environ.get("GPU_RTSP_SECONDS", "600")), 64
    rows = []
    for processes in PROCESSES:
        with (
            shown(clip("libx264", tune="zerolatency")) as url,
            tempfile.TemporaryDirectory() as name,
        ):
            file, out = Path(name) / "model.txt", Path(name) / "out.jsonl"
            file.write_text(config(batch_size=32, network_mode=2).dump())
            seen: list[float] = []
            run = SharedRun(
                partial(spec_of, [str(file), *[url] * count], [str(out)], None),
                RunOptions(device=DEVICE, limit=int(30 * seconds)),
                processes,
                on_frames=lambda _, seen=seen: seen.append(perf_counter()),
            )
            run.begin()
            started = perf_counter()
            report = run.run()
            taken = perf_counter() - started
            given = [source.frames - source.dropped for source in report.sources]
            assert out.read_bytes().count(b"\n") == sum(given)
        again = sum(source.reconnects for source in report.sources)
        row = (
            processes, count, taken, report.frames / count / taken, min(given),
            max(given), report.dropped_frames, again,
            max(b - a for a, b in pairwise(seen)),
        )  # fmt: skip
        rows.append(row)
    headings = (
        "processes", "streams", "seconds", "frames/s of each", "least lines", "most", "dropped",
        "reconnects", "longest pause of all, s",
    )  # fmt: skip
    show("RTSP", headings, rows)


def latency() -> None:
    """From the packet of an image to its metadata; a camera's stream has no B frames."""
    rows = []
    for graph in (0, 1):
        with one_lane(1, graph) as cfg:
            took = sorted(_latencies(cfg)[30:])
        times = [1e3 * took[round((len(took) - 1) * part)] for part in (0.5, 0.9, 0.99, 1)]
        rows.append((graph, len(took), *times))
    show("latency", ("graph", "frames", "median ms", "90 %", "99 %", "longest"), rows)


def _latencies(cfg: ModelConfig) -> list[float]:
    handed: dict[int, float] = {}
    took: list[float] = []
    warm = threading.Event()
    source = open_source(str(clip("libx264", tune="zerolatency")), gpu=0)
    source.live = True  # as a camera's: nothing is held back for throughput
    read = source._decode  # type: ignore[attr-defined]

    def timed(context: Any, packets: Any) -> Any:
        def paced() -> Iterator[Any]:
            for number, packet in enumerate(packets):
                if number == 10:
                    warm.wait(60)  # the engine's first run looks for algorithms
                sleep(1 / 60)
                if packet.pts is not None:
                    handed[round(packet.pts * packet.time_base * 1_000_000_000)] = perf_counter()
                yield packet

        return read(context, paced())

    source._decode = timed  # type: ignore[attr-defined]

    def result(meta: Any) -> None:
        warm.set()
        if meta.pts_ns in handed:
            took.append(perf_counter() - handed[meta.pts_ns])

    headrace.open_pipeline(cfg, sources=source, on_result=result, device="cuda").run()
    return took


def memory() -> None:
    import subprocess

    def used() -> tuple[float, float]:
        text = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096 / 1e6, float(text.split()[0])

    rows = [("start", *used())]
    total = int(os.environ.get("GPU_MEMORY_FRAMES", "100000"))
    seen = 0

    def result(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen % (total // 10) == 0:
            rows.append((f"{seen:,} frames", *used()))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.txt"
        file.write_text(config(batch_size=32, network_mode=2).dump())
        spec = looped([str(file)], str(clip("libx264")), 32, f"{folder}/out.jsonl", None)
        options = RunOptions(device="cuda", limit=total // 32)
        made = Assembling(spec=spec, options=options, on_result=result).assemble()
        made.pipeline.run()
        made.close()
    for number in range(int(os.environ.get("GPU_MEMORY_SOURCES", "500"))):
        list(images(clip("libx264"), 2))
        if number % 100 == 99:
            rows.append((f"{number + 1} sources", *used()))
    show("memory", ("after", "RSS MB", "GPU MB"), rows)
