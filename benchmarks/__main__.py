"""Print every table, or those named: `python -m benchmarks [pipeline preprocess …]`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

NAMES = (
    "preprocess",
    "profiles",
    "crops",
    "parse",
    "own_cost",
    "cluster",
    "custom",
    "media",
    "track",
    "engines",
    "large",
    "pipeline",
    "sources",
    "secondary",
    "plugins",
    "int8",
    "cut",
    "batch",
    "live",
    "messages",
    "live_streams",
    "gst",
    "gpu",
)


def show(title: str, rows: Iterable[tuple[str, float, float, float]]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("what", "headrace", "reference", "reference / headrace"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, ours, reference, ratio in rows:
        table.add_row(name, f"{ours:.3f} ms", f"{reference:.3f} ms", f"{ratio:.2f} x")
    Console().print(table)


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    for name in chosen:
        if name not in NAMES:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(NAMES)}")
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "report"):  # tables of its own
            module.report()
        else:
            show(name, module.rows())


main()
