"""Progress of a run on a terminal: stage, frames, fps, time left. Silent elsewhere."""

from __future__ import annotations

from time import monotonic
from types import TracebackType

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from noria.cli.output import console

__all__ = ["RunProgress"]

_MIN_STEP_S = 0.1  # redraw at most ten times a second: the pipeline has better things to do


class _FramesColumn(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        if not task.completed:
            return Text("")
        total = f"/{int(task.total)}" if task.total else ""
        speed = task.finished_speed or task.speed
        fps = f"  {speed:.1f} fps" if speed and self._unit == "frames" else ""
        return Text(f"{int(task.completed)}{total} {self._unit}{fps}")


class RunProgress:
    """A context manager; `step()` counts a frame, `stage(text)` says what is going on.

    `unit` names what is counted, if not frames.
    """

    def __init__(self, *, enabled: bool, unit: str = "frames") -> None:
        screen = console(stderr=True)
        self._on = enabled and screen.is_terminal
        self._frames = 0
        self._shown_at = 0.0
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            _FramesColumn(unit),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=screen,
            transient=True,
            disable=not self._on,
        )
        self._task = self._bar.add_task("starting", total=None)

    def stage(self, text: str, total: int | None = None) -> None:
        """Say what is being done, and of how many frames."""
        self._bar.update(self._task, description=text, total=total)

    def at(self, done: int, total: int, text: str) -> None:
        """So much of the whole is done, and this is next."""
        self._bar.update(self._task, description=text, total=total, completed=done)

    def step(self) -> None:
        """One more frame has its result."""
        self._frames += 1
        if self._on and (now := monotonic()) - self._shown_at >= _MIN_STEP_S:
            self._shown_at = now
            self._bar.update(self._task, completed=self._frames)

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
