"""From a command, or a request, to the first result; and latency at load."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import headrace
from benchmarks.gpu.clips import DEVICE, clip, model, show
from benchmarks.gpu.decoding import decoded_together
from benchmarks.rtsp_server import shown
from headrace.cli.inputs import spec_of
from headrace.config import ModelConfig
from headrace.infer.run_options import RunOptions
from headrace.media import open_source
from headrace.pipeline.durations import Durations
from headrace.pipeline.shares import SharedRun

_PROCESSES = 4
_MANY = (("libx264", 160), ("libx265", 240))
_JOB_S = float(os.environ.get("GPU_JOB_SECONDS", "60"))
_RATES = {"libx264": 4500, "libx265": 8400}  # about, of the job's length
_LOAD_S = float(os.environ.get("GPU_LOAD_SECONDS", "180"))
_SETTLE_S = 60.0  # in which decoders are made, and what servers kept meanwhile is caught up with
_WAIT_S = 120.0


def starts() -> None:
    """A command with many videos, and the same added to a pipeline that runs."""
    with built() as folder:
        cold = [(f"{codec} 1080p", count, *_cold(folder, codec, count)) for codec, count in _MANY]
        headings = ("clip", "videos", "first result s", "whole s", "frames/s", "steady", "ratio")
        show("command, built engine, four processes", headings, cold)
        warm = [(f"{codec} 1080p", count, *_warm(folder, codec, count)) for codec, count in _MANY]
    headings = ("clip", "videos", "first result s", "of each s", "of one more s")
    show("added to a pipeline that runs, one process", headings, warm)


@contextmanager
def built() -> Iterator[Path]:
    """A folder with a config and its engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = Path(shutil.copy(model(), folder))
        cfg = ModelConfig.load(copy).with_overrides(batch_size=32, network_mode=2)
        (folder / "model.txt").write_text(cfg.dump())
        headrace.Inferencer.from_config(cfg, device="cuda").close()
        yield folder


def _cold(folder: Path, codec: str, count: int) -> tuple[float, float, float, float, float]:
    return timed_job(folder, codec, count, round(_JOB_S * _RATES[codec] / count))


def timed_job(
    folder: Path,
    codec: str,
    count: int,
    frames: int,
    *,
    processes: int = _PROCESSES,
    more: tuple[str, ...] = (),
) -> tuple[float, float, float, float, float]:
    """A command with `count` videos, `frames` of each, and `more` outputs beside JSON Lines.

    Returns:
        Seconds to the first result and of the whole, frames a second of the whole and of its
        middle, and their ratio.
    """
    out, file = folder / "out.jsonl", folder / "many.yaml"
    out.unlink(missing_ok=True)
    file.write_text(
        f"sources:\n  - {{uri: {clip(codec)}, loop: true, repeat: {count}}}\n"
        "models:\n  - {config: model.txt}\n"
    )
    command = [sys.executable, "-m", "headrace", "run", str(file), "-o", str(out), "--quiet"]
    command += [word for output in more for word in ("-o", output)]
    command += ["--device", DEVICE, "--processes", str(processes), "--limit", str(frames)]
    start, sizes = perf_counter(), [(0.0, 0)]
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            sleep(0.02)
            size = out.stat().st_size if out.exists() else 0
            if size != sizes[-1][1]:
                sizes.append((perf_counter() - start, size))
    whole_s = perf_counter() - start
    assert process.returncode == 0, process.returncode
    assert out.read_bytes().count(b"\n") == count * frames
    total = sizes[-1][1]
    middle = [pair for pair in sizes if 0.35 * total <= pair[1] <= 0.9 * total]
    (begin, before), (end, after) = middle[0], middle[-1]
    steady = (after - before) / total * count * frames / (end - begin)
    rate = count * frames / whole_s
    return sizes[1][0], whole_s, rate, steady, rate / steady


def _warm(folder: Path, codec: str, count: int) -> tuple[float, float, float]:
    firsts: dict[int, float] = {}
    come = threading.Event()

    def result(meta: Any) -> None:
        if meta.source_id not in firsts:
            firsts[meta.source_id] = perf_counter()
            come.set()

    inferencer = headrace.Inferencer.from_config(folder / "model.txt", device=DEVICE)
    with inferencer:
        pipeline = headrace.Pipeline([], inferencer, keep_open=True, on_result=result)
        thread = threading.Thread(target=pipeline.run)
        thread.start()

        def add(_: int) -> int:
            return pipeline.add_source(open_source(str(clip(codec)), gpu=0))

        _until(lambda: pipeline.state == "running")
        sleep(15)  # a service that is up: its kernels are planned
        start = perf_counter()
        with ThreadPoolExecutor(8) as pool:
            added = list(pool.map(add, range(count)))
        _until(lambda: len(firsts) >= len(added))
        many = min(firsts.values()) - start, max(firsts.values()) - start
        more = perf_counter()
        number = add(0)
        _until(lambda: number in firsts)
        one = firsts[number] - more
        pipeline.stop(10)
        thread.join()
    return (*many, one)


def _until(true: Any) -> None:
    end = perf_counter() + _WAIT_S
    while not true():
        if perf_counter() > end:
            sys.exit(f"nothing came for {_WAIT_S:g} s")
        sleep(0.005)


def _settled(inputs: list[str], outputs: list[str]) -> Any:
    """A pipeline whose durations count between its first decoders and its last."""
    add, begin = Durations.add, perf_counter()

    def later(durations: Durations, seconds: float) -> None:
        if _SETTLE_S < perf_counter() - begin < _SETTLE_S + _LOAD_S:
            add(durations, seconds)

    Durations.add = later  # type: ignore[method-assign]
    return spec_of(inputs, outputs, None)


def loads() -> None:
    """RTSP streams as 40 and 80 % of what the video unit decodes: packet to metadata."""
    path = clip("libx264", tune="zerolatency")
    unit = decoded_together(path, 32, _PROCESSES)
    rows = []
    for part in (0.4, 0.8):
        count = int(unit * part / 30)
        with ExitStack() as stack, built() as folder:
            urls = [stack.enter_context(shown(path)) for _ in range(8)]
            streams = [urls[i % len(urls)] for i in range(count)]
            out = str(folder / "out.jsonl")
            run = SharedRun(
                partial(_settled, [str(folder / "model.txt"), *streams], [out]),
                RunOptions(device=DEVICE),
                _PROCESSES,
            )
            run.begin()
            end = threading.Timer(_SETTLE_S + _LOAD_S + 1, run.stop, [10.0])
            end.start()
            report = run.run()
            end.cancel()
        within = [source.latency_s for source in report.sources if source.latency_s]
        given = [one["count"] / _LOAD_S for one in within]
        total = sum(one["count"] for one in within)
        late = 1 - sum(one["within"]["0.05"] for one in within) / total
        p99 = sorted(1e3 * one["p99"] for one in within)
        median = sorted(1e3 * one["median"] for one in within)[len(within) // 2]
        rows.append(
            (f"{part:.0%} of {unit:,.0f}", count, median, p99[len(p99) // 2], p99[-1], late,
             min(given), max(given), report.dropped_frames)
        )  # fmt: skip
    headings = (
        "load", "streams", "median ms", "99 %, middle stream", "99 %, worst stream",
        "later than 50 ms", "least frames/s", "most", "dropped",
    )  # fmt: skip
    show(f"packet to metadata, {_LOAD_S:g} s after {_SETTLE_S:g} s to settle", headings, rows)
