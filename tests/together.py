"""Work of several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

Result = TypeVar("Result")


def together(work: Callable[[int], Result], count: int) -> list[Result]:
    """What `work(0)` … `work(count - 1)` return, each in a thread of its own. Errors are raised."""
    ready = Barrier(count)

    def run(number: int) -> Result:
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
