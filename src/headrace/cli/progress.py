"""Progress of a run: stage, frames, fps, time left; drawn on a terminal, elsewhere in lines."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from headrace._core.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_S = 10.0  # between lines where there is no terminal
_MIN_STEP_S = 0.1  # redraw at most ten times a second: the pipeline has better things to do
_TERMINAL_ALL_THE_SAME = ("FORCE_COLOR", "TTY_COMPATIBLE")  # to rich


class RunProgress:
    """A context manager; `step()` counts a frame, `stage(text)` shows the current work.

    `unit` names what is counted, if not frames. With `lines`, where there is no terminal, a line
    tells of each stage with a length, and every few seconds how much is done.
    """

    def __init__(self, *, enabled: bool, unit: str = "frames", lines: bool = False) -> None:
        self._bar = _bar(unit) if enabled else None
        self._lines = lines and enabled and self._bar is None
        self._frames = 0
        self._shown_at = 0.0
        self._unit, self._text = unit, ""
        self._total: int | None = None
        self._begun_at = self._line_at = monotonic()
        self._before = 0
        if self._bar is not None:
            self._task = self._bar.add_task("starting", total=None)

    def stage(self, text: str, total: int | None = None) -> None:
        """Show the current work, and its number of frames."""
        self._text, self._total, self._before = printable(text), total, self._frames
        self._begun_at = self._line_at = monotonic()
        if self._bar is not None:
            self._bar.update(self._task, description=printable(text), total=total)

    def at(self, done: int, total: int | None, text: str) -> None:
        """So much of the whole is done, and this is next."""
        if self._bar is not None:
            self._bar.update(self._task, description=printable(text), total=total, completed=done)

    def step(self) -> None:
        """One more frame has its result."""
        self._frames += 1
        if self._lines:
            self._line()
        if self._bar is not None and (now := monotonic()) - self._shown_at >= _MIN_STEP_S:
            self._shown_at = now
            self._bar.update(self._task, completed=self._frames)

    def _line(self) -> None:
        now, done = monotonic(), self._frames - self._before
        if self._total is None or now - self._line_at < _LINE_S:
            return
        self._line_at = now
        left = (now - self._begun_at) / done * max(self._total - done, 0)
        text = f"{self._text}: {done} of {self._total} {self._unit}, {_span(left)} left"
        with suppress(OSError, ValueError):
            print(printable(text), file=sys.stderr, flush=True)

    def __enter__(self) -> RunProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(unit: str) -> Progress | None:
    """Make the bar: work, count, speed, time taken and left; None where it would not be seen."""
    if not (_on_terminal() or any(map(os.environ.get, _TERMINAL_ALL_THE_SAME))):
        return None
    from rich import progress
    from rich.text import Text

    from headrace.cli.output import console

    class CountColumn(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            if not task.completed:
                return Text("")
            total = f"/{int(task.total)}" if task.total else ""
            speed = task.finished_speed or task.speed
            fps = f"  {speed:.1f} fps" if speed and unit == "frames" else ""
            return Text(f"{int(task.completed)}{total} {unit}{fps}")

    screen = console(stderr=True)
    if not screen.is_terminal:
        return None
    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        CountColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=screen,
        transient=True,
    )


def _span(seconds: float) -> str:
    """Write a span of time in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False
