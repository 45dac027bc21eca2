"""What counting, the view and a watcher cost a run, as CPU time of its process.

The demo scene from two files at once, through detector and tracker, in turns: the plain run; with
rules that count (a region, a crowd, a line); with the view and nobody watching; with one page that
asks for the next image as soon as it has one, from a process of its own. The reference is the
plain run of the same round.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import statistics
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import process_time

import headrace
from benchmarks.common import Row
from headrace.live import Address, LiveServer, LiveView
from headrace.pipeline.analytics import AnalyticsRules, Crowd, Line, Region, SourceRules
from headrace.pipeline.analytics.rules import ALL_SOURCES

SCENE = Path(__file__).parents[1] / "examples" / "conveyor"
ROUNDS = 7
BELT = ((200.0, 60.0), (440.0, 60.0), (440.0, 330.0), (200.0, 330.0))
RULES = AnalyticsRules(
    sources={
        ALL_SOURCES: SourceRules(
            regions=(Region(name="scan", points=BELT),),
            crowds=(Crowd(name="jam", points=BELT, threshold=4),),
            lines=(Line(name="read", start=(376, 50), end=(376, 330)),),
        )
    }
)


def watch(port: int) -> None:
    """Ask for image after image, as the page does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    seen = {"0": 0, "1": 0}
    while True:
        body = json.dumps({"seen": seen, "width": 640})
        try:
            connection.request("POST", "/api/images", body)
            data = connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return  # the run is over
        (length,) = struct.unpack(">I", data[:4])
        for head in json.loads(data[4 : 4 + length]):
            seen[str(head["source"])] = head["number"]


def run(folder: Path, *, rules: bool = False, view: bool = False, watched: bool = False) -> float:
    """CPU milliseconds of the process for each frame."""
    sink = LiveView() if view else None
    pipeline = headrace.open_pipeline(
        SCENE / "config_infer_primary.txt",
        sources=[SCENE / "conveyor.mp4"] * 2,
        tracker="iou",
        analytics=RULES if rules else None,
        outputs=[] if sink is None else [sink],
        model_engine_file=str(folder / "detector.engine"),
    )
    server = None if sink is None else LiveServer(pipeline, sink, Address(port=0))
    watcher = None
    if watched and server is not None:
        watcher = multiprocessing.get_context("spawn").Process(
            target=watch, args=(server.address.port,)
        )
        watcher.start()
    start = process_time()
    report = pipeline.run()
    spent = process_time() - start
    if server is not None:
        server.close()
    if watcher is not None:
        watcher.terminate()
        watcher.join()
    return 1000 * spent / report.frames


def rows() -> Iterable[Row]:
    """Each addition beside the plain run."""
    kinds = {
        "with rules that count": {"rules": True},
        "with the view, nobody watching": {"view": True},
        "with the view and one page": {"view": True, "watched": True},
    }
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
        plain: list[float] = []
        found: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            plain.append(run(Path(folder)))
            for name, options in kinds.items():
                found[name].append(run(Path(folder), **options))
    for name, values in found.items():
        ratio = statistics.median(p / v for p, v in zip(plain, values, strict=True))
        yield name, statistics.median(values), statistics.median(plain), ratio
