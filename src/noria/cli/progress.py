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
    def render(self, task: Task) -> Text:
        if not task.completed:
            return Text("")
        total = f"/{int(task.total)}" if task.total else ""
        speed = task.finished_speed or task.speed
        fps = f"  {speed:.1f} fps" if speed else ""
        return Text(f"{int(task.completed)}{total} frames{fps}")


class RunProgress:
    """A context manager; `step()` counts a frame, `stage(text)` says what is going on."""

    def __init__(self, *, enabled: bool) -> None:
        screen = console(stderr=True)
        self._on = enabled and screen.is_terminal
        self._frames = 0
        self._shown_at = 0.0
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            _FramesColumn(),
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
