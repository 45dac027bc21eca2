"""`headrace trace-plugins`: every call into the plugins of a model, and which of them failed."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError
from headrace._core.text import printable, shortened
from headrace.cli.inputs import load_config, refuse_options
from headrace.cli.options import run_options
from headrace.cli.output import console, echo, print_error, print_json, print_notices

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.engine.plan import Plan
    from headrace.plugins.trace import PluginCall, Tracer


EPILOG = """\b
Examples:
  headrace trace-plugins config_infer_primary.txt
  headrace trace-plugins model.onnx --library my_plugins.py
  headrace trace-plugins model.onnx --phase run --phase destroy
"""
_PHASES = ("parse", "build", "save", "load", "run", "destroy")


@click.command(name="trace-plugins", epilog=EPILOG)
@click.argument("file", metavar="CONFIG|MODEL", type=click.Path(path_type=Path))
@click.option("--library", "libraries", multiple=True, type=click.Path(path_type=Path),
              metavar="PLUGINS.py", help="A file of plugins to load first.")  # fmt: skip
@click.option("--phase", "phases", multiple=True, type=click.Choice(_PHASES),
              help="Show only this phase; repeatable.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 1024), default=1, show_default=True,
              help="Greatest batch of a model; a config has its own.")  # fmt: skip
@click.option("--runs", type=click.IntRange(0, 1000), default=2, show_default=True,
              help="How often to run it.")  # fmt: skip
@click.option("--backend", metavar="NAME", help="The runtime of the rest: onnxruntime, openvino.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@run_options("trace-plugins")
def trace_plugins(
    file: Path,
    libraries: tuple[Path, ...],
    phases: tuple[str, ...],
    batch: int,
    runs: int,
    backend: str | None,
    as_json: bool,
    settings: list[GivenKey],
) -> int:
    """Show each call into the plugins of CONFIG's model, or MODEL (.onnx), with its phase.

    The model is built, saved, loaded, run on noise, and ended. Nothing is written. The exit code is
    0 if no call failed.
    """
    from headrace.plugins.registry import get_plugin_registry
    from headrace.plugins.trace import Tracer
    from headrace.plugins.watch import watch_every_run

    watch_every_run()
    journal = Journal()
    try:
        journal.split()
    except PluginProcessLostError as lost:
        return _lost(lost, phases, as_json)
    for library in libraries:
        get_plugin_registry().load_library(library)
    failure: HeadraceError | None = None
    plan: Plan | None = None
    with Tracer(journal=journal.write) as tracer:
        try:
            plan = _live(file, batch, runs, backend, settings)
        except HeadraceError as error:
            failure = error
    journal.done()
    calls = [c for c in tracer.calls if not phases or c.phase in phases]
    if as_json:
        print_json(
            {
                "calls": [asdict(c) for c in calls],
                "plugins": [] if plan is None else [str(r) for r in plan.header.plugins],
                "error": None if failure is None else str(failure),
            }
        )
    else:
        _print(calls)
        if calls or failure is None:
            echo(_summary(tracer, plan))
        if plan is not None:
            print_notices(plan.decisions)
    if failure is not None:
        print_error(str(failure))
        return failure.exit_code
    return 5 if tracer.failures else 0


def _lost(lost: PluginProcessLostError, phases: tuple[str, ...], as_json: bool) -> int:
    """Show the calls until the plugins' process ended."""
    last = lost.last
    who = "code between the calls"
    if last is not None:
        who = f"{last.cls}#{last.object}.{last.method} (phase {last.phase}, layer {last.layer!r})"
    text = f"{who} {lost.found}"
    calls = [c for c in lost.calls if not phases or c.phase in phases]
    if as_json:
        unfinished = None if last is None else asdict(last)
        error = {"calls": [asdict(c) for c in calls], "unfinished": unfinished, "plugins": []}
        print_json(error | {"error": text, "backtrace": lost.trace})
    else:
        _print(calls)
        for line in lost.trace:
            echo(f"  {line}", err=True)
    print_error(text)
    return 5


def _live(file: Path, batch: int, runs: int, backend: str | None, settings: list[GivenKey]) -> Plan:
    """A whole life; the plan, closed."""
    from headrace.engine.builder import BuildOptions, build
    from headrace.engine.input_shapes import sample_inputs
    from headrace.engine.plan import Plan

    if file.suffix.lower() == ".onnx":
        from headrace.network import network_from_onnx

        refuse_options(file, settings)
        network = network_from_onnx(file)
        options = BuildOptions(max_batch=batch, runtime=backend)
    else:
        from headrace.diagnose.plugin_check.subjects import of_config

        network, options = of_config(load_config(file, settings), backend)
    built = build(network, options)
    data = b"".join(built.to_chunks())
    built.open_session().close()  # the one that the build keeps ready
    plan = Plan.from_bytes(data)
    with plan.open_session() as session:
        items = plan.header.fixed_batch or plan.header.max_batch
        feeds = sample_inputs(plan.inputs, min(items, plan.header.max_batch))
        for _ in range(runs):
            session.run(feeds)
    plan.decisions = built.decisions
    return plan


def _print(calls: list[PluginCall]) -> None:
    if not calls:
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head, justify in (("", "right"), ("phase", "left"), ("object", "left"), ("call", "left"),
                          ("result", "left"), ("ms", "right")):  # fmt: skip
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for call in calls:
        shown = f"#{call.made}" in call.result
        suffix = f" (#{call.made})" if call.made and not shown else ""
        result = _plain(shortened(call.result, 32)) + suffix
        if call.error:
            result = f"[red]{_plain(call.error)}[/red]"
        arguments = f"({shortened(call.arguments, 48)})" if call.arguments else ""
        table.add_row(
            str(call.number), call.phase, f"{call.cls}#{call.object}",
            _plain(f"{call.method}{arguments}"), result, f"{call.seconds * 1e3:.3f}",
        )  # fmt: skip
    console().print(table)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(printable(text))


def _summary(tracer: Tracer, plan: Plan | None) -> str:
    failed = tracer.failures
    if not tracer.calls:
        return "no calls: the model has no plugins"
    text = f"{len(tracer.calls)} calls, {len(failed)} failed"
    if failed:
        text += ": " + ", ".join(dict.fromkeys(f"{c.method} ({c.phase})" for c in failed))
    if plan is not None and not plan.header.plugins:
        text += (
            "; the plan has no plugins: those of the model became ONNX operators, or it has none"
        )
    return text


class PluginProcessLostError(Exception):
    """The process that called the plugins is gone.

    Attributes:
        calls: those that had ended.
        last: the one that had not, if any.
        found: what happened to the process, in words.
        trace: lines of the backtrace.
        code: its exit code, negative for a signal.
    """

    def __init__(self, journal: Journal, code: int) -> None:
        from headrace.custom.guard.crash import describe, read_report

        self.calls, self.last = journal.read()
        self.code = code
        report = read_report(os.pread(journal.report.fileno(), 1 << 24, 0))
        self.found, self.trace = describe(report, code, "died", 0.0)
        super().__init__(self.found)


class Journal:
    """Calls as they happen, in a file that outlives the process which makes them."""

    def __init__(self) -> None:
        self._lines: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - until the end
        self.report: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - until the end

    def split(self) -> None:
        """Go on in a copy of this process; this one ends as the copy does.

        It raises if code of a plugin ended the copy.

        Raises:
            PluginProcessLostError: a signal ended the copy, or it ended by itself before `done`.
        """
        from headrace.cli.ending import unwatch_signals

        unwatch_signals()  # the copy would wake the watch of this process
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            from headrace._core import _native
            from headrace.custom.guard.crash import HANG_SIGNAL

            _native.guard_report_to(self.report.fileno(), HANG_SIGNAL)
            return
        code = os.waitstatus_to_exitcode(_wait(child))
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        if code < 0 or (code == 0 and None not in self._entries()):
            raise PluginProcessLostError(self, code)
        os._exit(code)

    def write(self, call: PluginCall, over: bool) -> None:
        """For `Tracer(journal=…)`."""
        self._line([over, asdict(call)])

    def done(self) -> None:
        """No plugin is called any more."""
        self._line(None)

    def read(self) -> tuple[list[PluginCall], PluginCall | None]:
        """The calls that ended, and one that only began."""
        from headrace.plugins.trace import PluginCall

        calls, begun = [], None
        for entry in self._entries():
            if entry is None:
                continue
            over, fields = entry
            call = PluginCall(**fields)
            begun = None if over else call
            if over:
                calls.append(call)
        return calls, begun

    def _entries(self) -> list[Any]:
        self._lines.seek(0)
        return [json.loads(line) for line in self._lines.read().splitlines()]

    def _line(self, entry: object) -> None:
        self._lines.write(json.dumps(entry).encode() + b"\n")


def _wait(child: int) -> int:
    while True:
        try:
            return os.waitpid(child, 0)[1]
        except KeyboardInterrupt:  # the copy gets it, too
            continue
