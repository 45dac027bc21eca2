"""What view, metrics, counting and messages cost with eight RTSP sources, as CPU time of a frame.

A server on loopback plays the demo scene at its own pace to eight connections; detector and tracker
run on all. In turns: the plain run; with the view and one page; with metrics asked for each 0.2 s;
with rules that count; with events to an MQTT broker. The reference is the plain run of the same
round. Nothing without GStreamer's RTSP server; no messages without mosquitto.
"""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from time import process_time, sleep

import headrace
from benchmarks.common import Row
from benchmarks.live import RULES, SCENE, watch
from headrace.live import Address, LiveServer, LiveView
from headrace.live.metrics import metrics_text
from tests.media.sources.test_stream_rtsp import Server, available
from tests.ports import free_port

ROUNDS = 3
SOURCES = 8
FRAMES = 150  # of each source


def run(
    folder: Path, url: str, *, view: bool = False, metrics: bool = False, rules: bool = False,
    broker: str = "",
) -> float:  # fmt: skip
    """CPU milliseconds of the process for each frame."""
    sink = LiveView()
    outputs = [*([sink] if view else []), *([broker] if broker else [])]
    pipeline = headrace.open_pipeline(
        SCENE / "config_infer_primary.txt", sources=[url] * SOURCES, tracker="iou",
        analytics=RULES if rules else None, outputs=outputs, limit=FRAMES,
        model_engine_file=str(folder / "detector.engine"),
    )  # fmt: skip
    server = watcher = None
    over = threading.Event()
    if view:
        server = LiveServer(pipeline, sink, Address(port=0))
        context = multiprocessing.get_context("spawn")
        watcher = context.Process(target=watch, args=(server.address.port,))
        watcher.start()

    def scrape() -> None:
        while not over.wait(0.2):
            metrics_text(pipeline)

    scraper = threading.Thread(target=scrape) if metrics else None
    if scraper is not None:
        scraper.start()
    start = process_time()
    report = pipeline.run()
    spent = process_time() - start
    over.set()
    if scraper is not None:
        scraper.join()
    if server is not None and watcher is not None:
        server.close()
        watcher.terminate()
        watcher.join()
    return 1000 * spent / (report.frames - report.dropped_frames)


def rows() -> Iterable[Row]:
    """Each addition beside the plain run."""
    if not available():
        return
    kinds: dict[str, dict[str, bool | str]] = {
        "8 RTSP sources, with the view and one page": {"view": True},
        "8 RTSP sources, with metrics": {"metrics": True},
        "8 RTSP sources, with rules that count": {"rules": True},
    }
    broker = None
    if shutil.which("mosquitto"):
        port = free_port()
        broker = subprocess.Popen(
            ["mosquitto", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        kinds["8 RTSP sources, with MQTT"] = {"broker": f"mqtt://127.0.0.1:{port}/headrace"}
    server = Server()
    server.start("--clip", str(SCENE / "conveyor.mp4"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measured(Path(folder), server.url(path="clip"), kinds)
    finally:
        server.kill()
        if broker is not None:
            broker.terminate()
            broker.wait()


def _measured(folder: Path, url: str, kinds: dict[str, dict[str, bool | str]]) -> Iterable[Row]:
    plain: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in kinds}
    run(folder, url)
    for _ in range(ROUNDS):
        plain.append(run(folder, url))
        for name, options in kinds.items():
            sleep(0.2)
            found[name].append(run(folder, url, **options))  # type: ignore[arg-type]
    for name, values in found.items():
        ratio = statistics.median(p / v for p, v in zip(plain, values, strict=True))
        yield name, statistics.median(values), statistics.median(plain), ratio
