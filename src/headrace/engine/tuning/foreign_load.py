"""The load of other programs while something is measured: it makes the times noise."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from time import monotonic

from headrace.engine.machine import usable_cores

_OWN = ("RUSAGE_SELF", "RUSAGE_CHILDREN")
_IDLE = (3, 4)  # columns of /proc/stat: idle, and waiting for a disk


class ForeignLoad:
    """Counts the work of others from its making on, on the cores that this process may use."""

    def __init__(self) -> None:
        self._start = monotonic()
        mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        self._cores = {f"cpu{n}" for n in mine}
        self._before = self._busy_s(())

    def share(self, *children: int) -> float:
        """The share of the cores that others used, 0 to 1; 0 where the system does not tell.

        Args:
            children: numbers of processes that are not ended, and whose time is not foreign; the
                time of ended children is not, either.
        """
        now = self._busy_s(children)
        if self._before is None or now is None:
            return 0.0
        most = (monotonic() - self._start) * usable_cores()
        return min(1.0, max(0.0, now - self._before) / most) if most > 0 else 0.0

    def _busy_s(self, children: Sequence[int]) -> float | None:
        """Seconds that the cores were busy with others since the system started."""
        tick = os.sysconf("SC_CLK_TCK")
        try:
            with open("/proc/stat", encoding="ascii") as file:
                rows = [line.split() for line in file]
            own = 0.0
            for child in children:
                with open(f"/proc/{child}/stat", encoding="utf-8", errors="replace") as file:
                    # the name in parentheses may hold blanks
                    fields = file.read().rpartition(")")[2].split()
                own += (int(fields[11]) + int(fields[12])) / tick
        except (OSError, ValueError, IndexError):
            return None
        ticks = 0
        for name, *columns in (row for row in rows if row):
            if name in self._cores:  # user to steal; guests are counted in user
                ticks += sum(int(n) for i, n in enumerate(columns[:8]) if i not in _IDLE)
        for who in _OWN:
            usage = resource.getrusage(getattr(resource, who))
            own += usage.ru_utime + usage.ru_stime
        return ticks / tick - own
