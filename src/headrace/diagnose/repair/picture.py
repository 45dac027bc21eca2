"""The likeliest set-ups as pictures side by side: the same frames with the boxes of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import MediaError
from headrace._core.files import PartFile, os_errors
from headrace._core.text import counted
from headrace.media.draw import Painter
from headrace.media.pixels import to_rgb

if TYPE_CHECKING:
    from headrace.diagnose.repair.candidate import Candidate
    from headrace.diagnose.repair.repairing import Repair
    from headrace.media.frame import Frame

ROWS = 2
"""Frames of each set-up."""

_WIDTH = 520  # pixels of a panel
_GAP, _LINE, _SIZE = 10, 18, 14
_BACKGROUND, _INK, _DIM = (24, 26, 30), (214, 218, 224), (150, 156, 164)
_ADDED, _REMOVED = (120, 200, 120), (224, 120, 110)


def write_picture(repair: Repair, path: Path) -> Path:
    """Write a PNG with a panel for each set-up that is shown: frames with boxes, and the edits.

    Raises:
        MediaError: the file cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    shown = _panels(repair)
    rows = _telling(repair, [candidate for _, candidate in shown])
    frames = [repair.frames[row] for row in rows]
    font = ImageFont.load_default(_SIZE)
    captions = [_caption(repair, title, candidate) for title, candidate in shown]
    heights = [max(1, round(_WIDTH * frame.height / frame.width)) for frame in frames]
    text_height = _LINE * max(map(len, captions)) + _GAP
    size = (
        _GAP + len(shown) * (_WIDTH + _GAP),
        _GAP + sum(height + _GAP for height in heights) + text_height,
    )
    sheet = Image.new("RGB", size, _BACKGROUND)
    ink = ImageDraw.Draw(sheet)
    for column, (_, candidate) in enumerate(shown):
        x, y = _GAP + column * (_WIDTH + _GAP), _GAP
        for row, frame, height in zip(rows, frames, heights, strict=True):
            drawn = Image.fromarray(to_rgb(_drawn(candidate, frame, row)))
            sheet.paste(drawn.resize((_WIDTH, height), Image.Resampling.LANCZOS), (x, y))
            y += height + _GAP
        for line, color in captions[column]:
            ink.text((x, y), _fitted(ink, line, font), fill=color, font=font)
            y += _LINE
    with os_errors(MediaError, "the picture cannot be written", path), PartFile(path) as part:
        sheet.save(part, "PNG", optimize=True)
    return path


def _panels(repair: Repair) -> list[tuple[str, Candidate]]:
    """The set-ups with their titles; the config as it is joins where there are less than three."""
    first = "chosen" if repair.outcome == "chosen" else "likeliest"
    shown = [
        (f"{place}: {first if place == 1 else 'also tried'}", candidate)
        for place, candidate in enumerate(repair.shown, 1)
        if candidate is not repair.start
    ]
    if len(shown) < len(repair.shown) or len(shown) < 3:
        shown.append(("as it is", repair.start))
    return shown


def _telling(repair: Repair, shown: Sequence[Candidate]) -> list[int]:
    """The frames in which the set-ups differ most, by the number of their boxes."""

    def spread(row: int) -> int:
        counts = [len(c.run.metas[row].objects) for c in shown if c.run is not None and c.run.metas]
        return max(counts, default=0) - min(counts, default=0)

    true = [i for i, f in enumerate(repair.frames) if f.frame in {t.frame for t in repair.truths}]
    order = sorted(range(len(repair.frames)), key=lambda row: (row not in true, -spread(row), row))
    return sorted(order[:ROWS])


def _drawn(candidate: Candidate, frame: Frame, row: int) -> Frame:
    run = candidate.run
    if run is None or not run.metas:
        return frame
    drawn: Frame = Painter().draw(frame, run.metas[row])
    return drawn


def _caption(repair: Repair, title: str, candidate: Candidate) -> list[tuple[str, Any]]:
    """Lines under a panel, with their colours."""
    figures = candidate.plausibility
    lines: list[tuple[str, Any]] = [(f"{title}   {candidate.score:.2f}", _INK)]
    lines += [(term.words, _DIM) for term in figures.terms[:4]]
    diff = repair.fix(candidate).diff.splitlines()[2:]
    edits = [line for line in diff if line[:1] in "+-"]
    lines += [(line, _ADDED if line[0] == "+" else _REMOVED) for line in edits[:12]]
    if len(edits) > 12:
        lines.append((f"and {counted(len(edits) - 12, 'more line')}", _DIM))
    return lines


def _fitted(ink: Any, text: str, font: Any) -> str:
    """The text, cut to the width of a panel."""
    while len(text) > 4 and ink.textlength(text, font=font) > _WIDTH:
        text = f"{text[:-4]}..."
    return text
