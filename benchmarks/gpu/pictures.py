"""Images that are drawn on and encoded where they were decoded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.gpu.clips import SECONDS, clip, images, show
from benchmarks.gpu.decoding import decoded_together
from benchmarks.gpu.starts import built, timed_job
from headrace.media.gpu_jpeg import encode_on_gpu
from headrace.media.sinks.images import JPEG_QUALITY

_STREAMS, _PROCESSES, _FRAMES = 32, 4, 900


def encoded(path: Path, lanes: int, ready: Callable[[], object] = lambda: None) -> float:
    """JPEG files a second of an image of a video, again and again in `lanes` threads."""
    (frame,) = images(path, 1)
    counts, stop = [0] * lanes, threading.Event()

    def work(lane: int) -> None:
        while not stop.is_set():
            encode_on_gpu(frame, JPEG_QUALITY)
            counts[lane] += 1

    threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in range(lanes)]
    for thread in threads:
        thread.start()
    while min(counts) < 3:
        stop.wait(0.01)
    ready()
    start, before = perf_counter(), sum(counts)
    stop.wait(SECONDS)
    rate = (sum(counts) - before) / (perf_counter() - start)
    stop.set()
    for thread in threads:
        thread.join(20)
    return rate


def pictures() -> None:
    """32 videos found in, drawn on and written as JPEG, beside what either unit does alone."""
    path = clip("libx264")
    unit = decoded_together(path, _STREAMS // _PROCESSES, _PROCESSES)
    rows = []
    for lanes in (1, 2):
        rows.append(
            (f"nvJPEG, {lanes} in each process", decoded_together(path, lanes, _PROCESSES, encoded))
        )
    jpeg = max(rate for _, rate in rows)
    with built() as folder:
        plain = timed_job(folder, "libx264", _STREAMS, _FRAMES)
        drawn = timed_job(folder, "libx264", _STREAMS, _FRAMES, (f"{folder}/{{source}}_%06d.jpg",))
    rows.append(("video unit", unit))
    rows.append(("whole, JSON Lines alone", plain[3]))
    rows.append(("whole, drawn and written as JPEG", drawn[3]))
    rows.append(("of the slower unit", drawn[3] / min(unit, jpeg)))
    show(f"{_STREAMS} videos of 1920x1080, {_PROCESSES} processes", ("what", "frames/s"), rows)
