"""The report of `headrace exec --report`: a page, or an image of the pipeline alone."""

from __future__ import annotations

import json
import sys
from multiprocessing import util
from pathlib import Path

from headrace._core.errors import HeadraceError
from headrace._core.json_record import finite_data
from headrace._core.pages import render_page, write_page
from headrace._core.pages.graphs import layered_graph, svg_file
from headrace._core.text import printable
from headrace.gstreamer.elements.element import Stopwatch
from headrace.gstreamer.elements.properties import NO_EFFECT
from headrace.gstreamer.elements.usage import ElementUse, Usage

KINDS = (".html", ".json", ".svg", ".dot")


def check_report(path: Path) -> None:
    """Refuse a name before the application runs.

    Raises:
        HeadraceError: the ending is none of a report's.
    """
    if path.suffix not in KINDS:
        raise HeadraceError(f"--report {path}", expected="a name that ends in " + ", ".join(KINDS))


def last_written(path: Path) -> int | None:
    """Return the time of a file's last change, in nanoseconds; None without a file."""
    return path.stat().st_mtime_ns if path.exists() else None


def report_of_children(usage: Usage, path: Path, title: str) -> None:
    """Let a process that the application forks write the report at its end, if it had a pipeline.

    Applications of the service maker run theirs in a `multiprocessing.Process`.
    """

    def at_end() -> None:
        if usage.elements:
            write_report(usage, path, title)
            print(printable(f"{path}: report of the run"), file=sys.stderr)

    util.register_after_fork(usage, lambda _: util.Finalize(None, at_end, exitpriority=0))


def write_report(usage: Usage, path: Path, title: str) -> None:
    """Write a report, or the image of the last pipeline if the name ends in `.svg` or `.dot`.

    A name that ends in `.json` gets the report's numbers.

    Args:
        usage: after the run.
        path: the file.
        title: name of the application.

    Raises:
        HeadraceError: it cannot be written, or there was no pipeline to draw.
    """
    usage.finish()
    if path.suffix == ".html":
        write_page(path, report_page(usage, title))
        return
    if path.suffix == ".json":
        write_page(path, json.dumps(finite_data(report_values(usage, title)), indent=1) + "\n")
        return
    if not usage.image:
        raise HeadraceError("there is no image: the application started no pipeline", where=title)
    drawn = path.suffix == ".svg"
    write_page(path, svg_file(layered_graph(*usage.graph)) if drawn else usage.image)


def report_values(usage: Usage, title: str) -> dict[str, object]:
    """Return the numbers of a run."""
    spent = Stopwatch.spent or {}
    return {
        "application": title,
        "elements": {
            name: {
                "kind": use.factory,
                "buffers": use.buffers,
                "frames": use.frames,
                "frames_per_s": use.fps,
                "python_s": spent.get(name),
                "metadata": dict(usage.metadata[name]),
            }
            for name, use in usage.elements.items()
            if use.buffers
        },
        "probes": {
            pad: {"calls": int(calls), "cpu_s": seconds}
            for pad, (calls, seconds) in usage.probes.items()
        },
        "without_effect": [row[:3] for row in usage.settings if row[3] == NO_EFFECT],
        "pyds": dict(usage.names),
        "missing": dict(usage.missing),
    }


def report_page(usage: Usage, title: str) -> str:
    """Render the page of a run."""
    spent = Stopwatch.spent or {}
    rows = [
        (name, use.factory, use.buffers, use.frames, _number(use.fps), _per_frame(spent, name, use))
        for name, use in usage.elements.items()
        if use.buffers
    ]
    last = max(
        (name for name, counts in usage.metadata.items() if counts),
        key=lambda name: (sum(usage.metadata[name].values()), usage.elements[name].last_s),
        default="",
    )
    return render_page(
        "exec.html",
        title=title,
        image=layered_graph(*usage.graph) if usage.image else "",
        dot=usage.image,
        elements=rows,
        probes=[
            (pad, int(calls), f"{1000 * seconds / calls:.3f}" if calls else "")
            for pad, (calls, seconds) in usage.probes.items()
        ],
        ignored=[row for row in usage.settings if row[3] == NO_EFFECT],
        settings=usage.settings,
        metadata=sorted(usage.metadata[last].items()) if last else [],
        last=last,
        names=usage.names.most_common(),
        missing=usage.missing.most_common(),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _per_frame(spent: dict[str, float], name: str, use: ElementUse) -> str:
    return f"{1000 * spent[name] / use.frames:.3f}" if name in spent and use.frames else ""
