"""Timing an engine: so many runs at once, for so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter


def measure(
    run: Callable[[], object], *, streams: int, window_s: float, at_least: int
) -> list[list[float]]:
    """Call `run` in `streams` threads for `window_s`, each `at_least` so many times.

    Returns:
        Seconds of each call, by thread. The threads' rates add up to the throughput, so that it
        does not matter which one ends last.

    Raises:
        Whatever `run` raised first.
    """
    times: list[list[float]] = [[] for _ in range(streams)]
    failed: list[BaseException] = []
    together = threading.Barrier(streams)

    def work(mine: list[float]) -> None:
        try:
            together.wait()
            begun = now = perf_counter()
            while len(mine) < at_least or now - begun < window_s:
                run()
                after = perf_counter()
                mine.append(after - now)
                now = after
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in times[1:]]
    for thread in threads:
        thread.start()
    work(times[0])
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return times
