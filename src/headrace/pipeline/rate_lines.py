"""Frames per second of each source while a pipeline runs, in the form of deepstream-app."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from headrace._core.findings import Finding
from headrace._core.threads import say_failure, start_thread
from headrace.infer.batch import Batch

_HEADER_EVERY = 20  # lines
_NAME = "headrace-rates"


class RateLines:
    """A probe that counts frames; a thread prints their rates, each with its average in brackets.

        **PERF:  FPS 0 (Avg)	FPS 1 (Avg)
        **PERF:  25.02 (24.98)	25.01 (25.00)

    Args:
        sources: how many there are; columns are in the order of their ids.
        interval_s: seconds between two lines.
        write: takes each line; None prints it.
        leave: sources that are over leave the lines, unless all are.
    """

    notices: Sequence[Finding] = ()

    def __init__(
        self,
        sources: int,
        interval_s: float,
        write: Callable[[str], None] | None = None,
        *,
        leave: bool = False,
    ) -> None:
        self._counts = dict.fromkeys(range(sources), 0)
        self._before: dict[int, int] = {}
        self._columns: list[int] = []  # of the header that was written last
        self._leave, self._gone = leave, set[int]()
        self._interval_s = interval_s
        self._write = write or (lambda line: print(line, flush=True))
        self._lines = 0
        self._began: float | None = None
        self._last = 0.0
        self._over = threading.Event()
        self._thread = start_thread(self._work, name=_NAME, failed=partial(say_failure, _NAME))

    def __call__(self, batch: Batch) -> None:
        """Count the frames of a batch."""
        if self._began is None:
            self._began = self._last = perf_counter()
        for meta in batch.metas:
            self._counts[meta.source_id] = self._counts.get(meta.source_id, 0) + 1
        if self._leave:
            self._gone.update(batch.ended)

    def close(self) -> None:
        """Print the last line, and end."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._line()

    def _work(self) -> None:
        while not self._over.wait(self._interval_s):
            self._line()

    def _line(self) -> None:
        if self._began is None:
            return  # nothing came yet
        now, counts = perf_counter(), dict(self._counts)
        there = sorted(counts.keys() - set(self._gone)) or self._columns
        past, whole = max(now - self._last, 1e-9), max(now - self._began, 1e-9)
        if there != self._columns or self._lines % _HEADER_EVERY == 0:
            self._columns, self._lines = there, 0
            self._write("\n**PERF:  " + "".join(f"FPS {i} (Avg)\t" for i in there))
        self._lines += 1
        rates = [((counts[i] - self._before.get(i, 0)) / past, counts[i] / whole) for i in there]
        self._write("**PERF:  " + "".join(f"{rate:.2f} ({mean:.2f})\t" for rate, mean in rates))
        self._before, self._last = counts, now
