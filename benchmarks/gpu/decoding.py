"""The video unit and nothing else."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import av

from benchmarks.gpu.clips import SECONDS, STREAMS, clip, show
from headrace.media.sources.gpu_decoding import gpu_decoding

PATIENCE_S = 120.0  # more than a process that decodes takes to begin


def decoded(path: Path, streams: int, ready: Callable[[], object] = lambda: None) -> float:
    """Frames a second of `streams` decoders of a video again and again, each in a thread.

    `ready` is called when all have begun, before anything is measured.
    """

    def work(place: int, counts: list[int], stop: threading.Event) -> None:
        with av.open(str(path), **gpu_decoding()) as container:
            context = container.streams.video[0].codec_context
            context.thread_count = 1
            while True:
                for _ in container.decode(video=0):
                    counts[place] += 1
                    if stop.is_set():
                        return
                container.seek(0)
                context.flush_buffers()

    return threads_rate(work, streams, ready)


def threads_rate(
    work: Callable[[int, list[int], threading.Event], None],
    count: int,
    ready: Callable[[], object] = lambda: None,
) -> float:
    """Items a second of threads; each counts its own until it is stopped."""
    counts, stop = [0] * count, threading.Event()
    threads = [
        threading.Thread(target=work, args=(i, counts, stop), daemon=True) for i in range(count)
    ]
    for thread in threads:
        thread.start()
    while min(counts) < 3:
        if not all(thread.is_alive() for thread in threads):
            raise RuntimeError("a thread failed before its third image")
        sleep(0.01)
    ready()
    start, before = perf_counter(), sum(counts)
    stop.wait(SECONDS)
    rate = (sum(counts) - before) / (perf_counter() - start)
    stop.set()
    for thread in threads:
        thread.join(20)
    return rate


def decoded_together(path: Path, streams: int, processes: int) -> float:
    """Frames a second of `decoded` in several processes, which measure at the same time."""
    spawn = multiprocessing.get_context("spawn")
    workers, pipes = [], []
    try:
        for _ in range(processes):
            pipe, theirs = spawn.Pipe()
            worker = spawn.Process(target=_decode_in_step, args=(theirs, path, streams))
            worker.start()
            theirs.close()  # a pipe ends with its process
            workers.append(worker)
            pipes.append(pipe)
        _answers(workers, pipes)
        for pipe in pipes:
            with suppress(ConnectionError):  # who has ended is told below
                pipe.send("go")
        return sum(_answers(workers, pipes))
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _decode_in_step(pipe: Any, path: Path, streams: int) -> None:
    def ready() -> None:
        pipe.send(0.0)
        pipe.recv()

    pipe.send(decoded(path, streams, ready))


def _answers(workers: list[Any], pipes: list[Any]) -> list[float]:
    """What each process says next; the run ends if one has ended, or says nothing."""
    answers: list[float] = []
    until = perf_counter() + SECONDS + PATIENCE_S
    for worker, pipe in zip(workers, pipes, strict=True):
        place = f"decoding process {len(answers) + 1} of {len(workers)}"
        try:
            if not pipe.poll(max(0.0, until - perf_counter())):
                sys.exit(f"{place} did not answer within {SECONDS + PATIENCE_S:g} s")
            answers.append(pipe.recv())
        except (EOFError, ConnectionError):
            worker.join()
            sys.exit(f"{place} ended with exit status {worker.exitcode} before it answered")
    return answers


def decode() -> None:
    rows = []
    for codec, numbers in (("libx264", (1, *STREAMS)), ("libx265", STREAMS[:1])):
        for streams in numbers:
            rows.append((f"{codec} 1080p", streams, decoded(clip(codec), streams)))
    show("decode", ("clip", "streams", "frames/s"), rows)
