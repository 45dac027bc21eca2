"""Sphinx configuration; built with warnings as errors."""

import re
from typing import Any

project = "Headrace"
author = "The Headrace developers"
copyright = "The Headrace developers, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "Headrace"
html_static_path = ["_static"]
html_css_files = ["console.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"


def markdown_to_rst(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are written like these pages: `code` in single backticks."""
    text = "\n".join(lines)
    # an indented block behind a paragraph is code
    text = re.sub(r"(?m)^(\S.*\n)\n(?=    \S)", r"\1\n::\n\n", text)
    # "width, height: in pixels": Sphinx takes the first name for a type, unless they are one word
    text = re.sub(r"(?m)^ +(\w+, )+\w+(?=: )", lambda names: names[0].replace(", ", "/"), text)
    text = re.sub(r"(?<![`:])`([^`]+)`(?!`)(?=(\w?))", _literal, text)
    lines[:] = text.split("\n")


def _literal(match: re.Match[str]) -> str:
    return f"``{match[1]}``" + ("\\ " if match[2] else "")


def setup(app: Any) -> None:
    # before napoleon takes the docstrings apart
    app.connect("autodoc-process-docstring", markdown_to_rst, priority=100)
