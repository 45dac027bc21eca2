"""The table of rooms in docs/architecture.md: what each package says of itself.

The first sentence of a package's docstring is what it holds; "Start at `file.py`." names the file.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "headrace"
PARTS = {"network/caffe/layers", "network/uff/ops", "diagnose/evaluate/datasets",
         "diagnose/lint/checks", "plugins/standard/maths", "trt/scripts/shims"}  # fmt: skip
"""Packages inside of rooms."""


def rooms() -> dict[str, Path]:
    """Return the packages inside of wings, by name, in the order of their names."""
    files = sorted(SOURCES.glob("*/**/__init__.py"))
    names = {path.parent.relative_to(SOURCES).as_posix(): path for path in files}
    return {name: path for name, path in names.items() if "/" in name and name not in PARTS}


def row(name: str, path: Path) -> str:
    """Return the row of one room.

    Raises:
        ValueError: its docstring does not name the file to start at.
    """
    doc = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split())
    start = re.search(r"Start at `([\w.]+)`\.", doc)
    if start is None or not path.with_name(start[1]).is_file():
        raise ValueError(f"{path}: the docstring must say: Start at `file.py`.")
    holds = re.split(r"(?<=[\w`)*])\.(?: |$)", doc, maxsplit=1)[0]
    return f"| `{name}/` | {holds} | `{name}/{start[1]}` |"


def rewritten(page: str) -> str:
    """Return a page with the table between its marks."""
    rows = [row(name, path) for name, path in rooms().items()]
    table = "\n".join(["| Room | Holds | Start reading at |", "|---|---|---|", *rows])
    marks = re.compile(r"(<!-- rooms -->\n).*?(<!-- /rooms -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)
