"""Drawing: what is known about frames on them, many sources on one picture, contact sheets."""

from __future__ import annotations

from typing import Any

from noria.draw.contact_sheet import contact_sheet
from noria.draw.painter import Painter
from noria.draw.tiler import Tiler
from noria.media import as_frame
from noria.media.frame import Frame
from noria.meta import FrameMeta

__all__ = ["Painter", "Tiler", "contact_sheet", "show"]


def show(frame: Any, meta: FrameMeta, **options: Any) -> Frame:
    """The frame with its objects drawn, which a notebook shows as a picture.

    Args:
        frame: a `Frame`, or what a model was called with: an array in BGR order, or a path.
        meta: what is known of it.
        options: those of `Painter`.
    """
    return Painter(**options).draw(as_frame(frame), meta)
