"""Progress monitors and profilers, which applications subclass to watch builds and runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from noria._core.errors import EngineError


class IProgressMonitor:
    """Watches a build. Source: tensorrt-api spec 3.2."""

    def __init__(self) -> None:
        """Subclasses call it first."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """A phase begins, inside another or none."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """A step is done, counted from 0; False stops the build."""
        return True

    def phase_finish(self, phase_name: str) -> None:
        """A phase is over, done or not."""


class IProfiler:
    """Receives the time of each layer."""

    def __init__(self) -> None:
        """Subclasses call it first."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """One layer of one run, in milliseconds."""
        raise NotImplementedError("report_layer_time")


class Profiler(IProfiler):
    """Prints each time."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Print one layer of one run."""
        print(f"{layer_name}: {ms}ms")


class Progress:
    """Calls a monitor, if there is one; one that fails is reported and not called again."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor
        self._phases: list[list[Any]] = []

    @contextmanager
    def phase(self, name: str, parent: str | None, steps: int) -> Iterator[None]:
        """A phase, over when the block is left."""
        self._call("phase_start", name, parent, steps)
        self._phases.append([name, 0])
        try:
            yield
        finally:
            self._phases.pop()
            self._call("phase_finish", name)

    def step(self) -> None:
        """A step of the innermost phase is done.

        Raises:
            EngineError: the monitor wants to stop.
        """
        name, number = self._phases[-1]
        self._phases[-1][1] += 1
        if self._call("step_complete", name, number) is False:
            raise EngineError(f"the progress monitor stopped the build in {name!r}")

    def _call(self, method: str, *arguments: Any) -> Any:
        if self._monitor is None:
            return None
        try:
            return getattr(self._monitor, method)(*arguments)
        except Exception as error:  # the user's code
            print(f"[ERROR] Exception caught in {method}(): {error}", file=sys.stderr)
            self._monitor = None
            return None
