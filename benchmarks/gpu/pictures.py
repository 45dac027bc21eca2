"""Images that are drawn on and encoded where they were decoded."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from benchmarks.gpu.clips import clip, images, show
from benchmarks.gpu.decoding import decoded, threads_rate
from benchmarks.gpu.starts import built, timed_job
from headrace.media.gpu_jpeg import encode_on_gpu
from headrace.media.sinks.images import JPEG_QUALITY

_STREAMS = 32
_FRAMES = 200  # of each, for each process: decoders are made in the first seconds
_PROCESSES = (1, 4, 8)


def encoded(path: Path, lanes: int) -> float:
    """JPEG files a second of an image of a video, again and again in `lanes` threads."""
    (frame,) = images(path, 1)

    def work(lane: int, counts: list[int], stop: threading.Event) -> None:
        while not stop.is_set():
            encode_on_gpu(frame, JPEG_QUALITY)
            counts[lane] += 1

    return threads_rate(work, lanes)


def pictures() -> None:
    """32 videos found in, drawn on and written as JPEG, beside what either unit does alone."""
    path = clip("libx264")
    rows = [("video unit", decoded(path, _STREAMS))]
    rows += [(f"nvJPEG, {lanes} threads", encoded(path, lanes)) for lanes in (1, 4)]
    slower = min(rows[0][1], max(rate for _, rate in rows[1:]))
    job = partial(timed_job, codec="libx264", count=_STREAMS)
    with built() as folder:
        drawn = f"{folder}/{{source}}_%06d.jpg"
        for processes in _PROCESSES:
            for name, more in (("JSON Lines alone", ()), ("drawn, JPEG", (drawn,))):
                rate = job(folder, frames=_FRAMES * processes, processes=processes, more=more)[3]
                rows.append((f"{name}, {processes}", rate))
            rows.append(("of the slower unit", rows[-1][1] / slower))
    show(f"{_STREAMS} videos of 1920x1080, and processes", ("what", "frames/s"), rows)
