"""Drawing: metadata on frames, many sources on one image, contact sheets.

Names resolve on first use.

Start at `painter.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.media.draw.contact_sheet import contact_sheet
    from headrace.media.draw.painter import Painter, show
    from headrace.media.draw.tiler import Tiler
else:
    __getattr__, __dir__ = lazy(
        __name__, {".contact_sheet": "contact_sheet", ".painter": "Painter show", ".tiler": "Tiler"}
    )

__all__ = ["Painter", "Tiler", "contact_sheet", "show"]
