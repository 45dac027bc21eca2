"""Self-contained HTML reports: one file each, no outside resource, light and dark."""

from noria.diagnose.pages.charts import Series, line_chart
from noria.diagnose.pages.render import picture_uri, render_page

__all__ = ["Series", "line_chart", "picture_uri", "render_page"]
