"""Eight files through batches of eight, against one file alone: frames per second of all together.

Both read the same video with the same model and threads, and give the same number of frames; rounds
take turns, and the ratio is the median of theirs.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.common import Row, timed
from benchmarks.pipeline import setup
from headrace.infer.inferencer import Inferencer
from headrace.media import open_sink, open_source
from headrace.pipeline import Pipeline

THREADS = 2
SOURCES = 8
FRAMES = 240  # of all sources together
ROUNDS = 5


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as folder:
        cfg, video = setup(Path(folder))
        cfg = cfg.with_overrides(batch_size=SOURCES)
        with Inferencer.from_config(cfg, threads=THREADS, streams=THREADS) as inferencer:

            def run(count: int) -> None:
                sources = [open_source(str(video), source_id=i) for i in range(count)]
                sink = open_sink(f"jsonl:{folder}/{count}.jsonl")
                report = Pipeline(sources, inferencer, [sink], limit=FRAMES // count).run()
                assert report.frames == FRAMES

            run(1)
            one, many = [], []
            for _ in range(ROUNDS):
                one.append(timed(lambda: run(1)))
                many.append(timed(lambda: run(SOURCES)))
    for title, column in (("wall", 0), ("CPU", 1)):
        alone = statistics.median(t[column] for t in one) * 1e3 / FRAMES
        together = statistics.median(t[column] for t in many) * 1e3 / FRAMES
        name = f"{SOURCES} files, batch {SOURCES}, against one alone, {title} per frame"
        ratio = statistics.median(a[column] / b[column] for a, b in zip(one, many, strict=True))
        yield Row(name, together, alone, ratio)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
