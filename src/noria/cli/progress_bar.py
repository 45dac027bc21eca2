"""The line on a terminal that shows how far a run is; `progress` decides whether there is one."""

from __future__ import annotations

from rich.console import Console
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


def bar(screen: Console, unit: str) -> Progress:
    """Current work, progress, speed, time taken and time left."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        _FramesColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
    )
