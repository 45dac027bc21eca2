"""How many rows a run on a GPU has: few different numbers, so that kernels are planned seldom."""

from __future__ import annotations

import threading

_PATIENCE = 500  # runs with half of the rows or fewer, before runs become smaller


class RunSize:
    """Chooses the rows of runs: a power of two, or the most, and the same one again and again.

    A runtime plans its kernels anew for each shape, which takes it seconds, and may forget the
    plans of the shape before. Rows beyond the items are computed for nothing.

    Args:
        most: rows of a run at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows = 0
        self._kept = False
        self._highest = 0
        self._runs = 0
        self._lock = threading.Lock()

    def keep(self, items: int) -> int:
        """Return the rows of all runs of up to `items` from now on: these never shrink again."""
        with self._lock:
            self._kept = True
            self._start(min(items, self._most))
            return self._rows

    def rows(self, items: int) -> int:
        """Return the rows of the next run, at least its number of items.

        They grow at once, and shrink when many runs in a row would have done with half of them.
        """
        with self._lock:
            if items > self._rows:
                self._start(items)
                return self._rows
            self._highest = max(self._highest, items)
            self._runs += 1
            if self._runs >= _PATIENCE and not self._kept:
                if 2 * self._highest <= self._rows:
                    self._start(self._highest)
                    return max(items, self._rows)
                self._highest, self._runs = 0, 0
            return self._rows

    def _start(self, items: int) -> None:
        self._rows = max(items, min(self._most, 1 << (items - 1).bit_length()))
        self._highest, self._runs = 0, 0
