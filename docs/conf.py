"""Sphinx configuration; built with warnings as errors."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from headrace import __version__
from headrace.cli import _COMMANDS

sys.path.insert(0, str(Path(__file__).parents[1]))  # docs._ext

project = "Headrace"
author = "The Headrace developers"
copyright = "The Headrace developers, Apache-2.0"

version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docs._ext.searching",
    "docs._ext.plain_pages",
]
myst_enable_extensions = ["colon_fence", "deflist"]
suppress_warnings = ["ref.python"]  # a class has a name in `headrace` and one in its package
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]

autodoc_member_order = "bysource"
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"Headrace {version}"
html_short_title = "nvinfer configs, models and custom libraries of DeepStream on any machine"
html_baseurl = os.environ.get("HEADRACE_DOCS_URL", "")  # of the published site, with a / at its end
html_logo = "_static/headrace.svg"
html_favicon = "_static/headrace.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_additional_pages = {"404": "404.html"}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "monokai"

man_pages = [
    (f"cli/{name}", f"headrace-{name}", text.rstrip("."), [], 1) for name, text in _COMMANDS.items()
]
man_pages.append(("cli/index", "headrace", html_short_title, [], 1))


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
