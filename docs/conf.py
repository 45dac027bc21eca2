"""Sphinx configuration; built with warnings as errors."""

project = "Noria"
author = "The Noria developers"
copyright = "The Noria developers, Apache-2.0"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "Noria"
html_static_path = ["_static"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
