"""Errors in the user's Python code, told by its own file and line."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

__all__ = ["describe", "user_frames"]

SHOWN = 4
_OWN_CODE = Path(__file__).parents[1]


def user_frames(trace: TracebackType | None, folder: Path) -> list[traceback.FrameSummary]:
    """The calls in `trace` that are in the user's files below `folder`, outermost first."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if Path(frame.filename).is_relative_to(folder)
        and not Path(frame.filename).is_relative_to(_OWN_CODE)
        and "site-packages" not in Path(frame.filename).relative_to(folder).parts
    ]


def describe(error: BaseException, folder: Path) -> tuple[str, str | None, list[str]]:
    """(what happened, `file:line` in the user's code, the lines of user code that led there)."""
    text = str(error).strip()
    kind = type(error).__name__
    found = f"{kind}: {text}" if text else kind
    if isinstance(error, SyntaxError) and error.filename:
        lines = [error.text.strip()] if error.text else []
        return f"{kind}: {error.msg}", f"{error.filename}:{error.lineno}", lines
    frames = user_frames(error.__traceback__, folder)
    if not frames:
        return found, None, []
    last = frames[-1]
    hints = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in frames[-SHOWN:]]
    return found, f"{last.filename}:{last.lineno}", hints
