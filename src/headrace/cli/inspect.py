"""`headrace inspect`: contents, needs and registered plugins of a custom library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.output import FiniteRange, echo, print_json

if TYPE_CHECKING:
    from headrace.custom.inspect import LibraryReport

EPILOG = """\b
Examples:
  headrace inspect libnvdsinfer_custom_impl_Yolo.so
  headrace inspect libparser.so --no-load
  headrace inspect libparser.so --json
"""
_SHOWN = 12


@click.command(epilog=EPILOG)
@click.argument("library", type=click.Path(path_type=Path), metavar="LIB.so")
@click.option("--load/--no-load", default=True, show_default=True,
              help="Load it in a process of its own, to see what it registers.")  # fmt: skip
@click.option(
    "--signatures", is_flag=True, help="Show types of functions, and when they are called."
)
@click.option("--timeout", type=FiniteRange(0.1, 3600), default=20.0, show_default=True,
              metavar="SECONDS", help="How long loading it may take.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(library: Path, load: bool, signatures: bool, timeout: float, as_json: bool) -> int:
    """Show the contents, needs and load behaviour of LIB.so, a C++ custom library.

    The exit code is 5 if it cannot be loaded here.
    """
    from headrace.custom.inspect import inspect_library

    report = inspect_library(library, load=load, timeout_s=timeout)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report, signatures)
    failed = report.load is not None and not report.load.ok
    broken = report.undefined or report.too_new or any(x.state == "missing" for x in report.linked)
    return 5 if failed or broken else 0


def _print(report: LibraryReport, signatures: bool) -> None:
    def say(title: str, *lines: str) -> None:
        for i, line in enumerate(lines):
            echo(f"{title if i == 0 else '':<14}{line}")

    say("library", f"{report.path} ({report.size_bytes:,} bytes)")
    say("built", report.built)
    for point in report.entry_points:
        told = "what it fills" if point.certain else "its name"
        told = "the check in its source" if point.checked else told
        sure = f", by {told}" if point.about.key or not point.certain else ""
        key = f", {point.about.key}" if point.about.key else ""
        device = ", for GPU memory" if point.device else ""
        say("function", f"{point.name}: {point.kind}{sure}{key}{device}")
        if signatures:
            say("", f"  {point.about.signature}", f"  {point.about.called}")
    if (asks := report.tensorrt) is not None:
        linked_to = f", linked against {asks.soname}" if asks.soname else ""
        say("compiled for", f"{asks.releases}{linked_to}")
        say("", *[f"  derives from {', '.join(asks.bases)}"] * bool(asks.bases))
        say("", *[f"  calls {', '.join(asks.factories)}"] * bool(asks.factories))
        say("", *[f"  {asks.mixed}"] * bool(asks.mixed))
        say("GPU code", *[str(asks.gpu)] * bool(asks.gpu), *asks.needs)
        say("runs", *asks.runs)
    if report.fills:
        say("fills", f"vectors of what these return: {', '.join(report.fills)}")
    size = f"{report.box_bytes} bytes" if report.box_bytes else "not told by the file"
    if report.returns_boxes:
        say("boxes", size, *(f"  {e.reason}" for e in report.evidence))
    for linked in report.linked:
        asked = linked.functions[:_SHOWN]
        more = f", … ({len(linked.functions)})" if len(linked.functions) > _SHOWN else ""
        state = {"found": linked.path, "stand-in": "not installed, headrace stands in"}
        say("linked", f"{linked.name}: {state.get(linked.state, linked.state)}")
        if asked:
            say("", f"  asked for {', '.join(asked)}{more}")
    for name in report.undefined:
        say("undefined", name)
    for name, versions, newest in report.too_new:
        say("too new", f"{versions} of {name}, which here ends at {newest}")
    if report.load is not None:
        say("loading", "works" if report.load.ok else f"fails: {report.load.error}")
        say("", *(f"  {line}" for line in report.load.trace))
        for creator in report.load.creators:
            space = f" in {creator.namespace!r}" if creator.namespace else ""
            say("registers", f"plugin {creator.name} version {creator.version}{space}")
            say("", *[f"  takes {', '.join(creator.fields)}"] * bool(creator.fields))
            say("", *[f"  its fields are not told: {creator.trouble}"] * bool(creator.trouble))
        say("decided", *report.load.decisions)
        if report.load.output:
            say("printed", *report.load.output.splitlines()[:_SHOWN])
    say("hint", *report.hints)
