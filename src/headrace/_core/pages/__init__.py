"""Self-contained HTML reports: one file each, no outside resource, light and dark.

Names resolve on first use: who writes no report loads no template engine.

Start at `render.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace._core.pages.charts import Series, line_chart
    from headrace._core.pages.render import image_uri, render_page, write_page
else:
    __getattr__, __dir__ = lazy(
        __name__, {".charts": "Series line_chart", ".render": "image_uri render_page write_page"}
    )

__all__ = ["Series", "image_uri", "line_chart", "render_page", "write_page"]
