"""Talk of the command line: numbers, notices, tables. Results go to stdout, talk to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console


class FiniteRange(click.FloatRange):
    """A number in a range. `nan` is in none, though no comparison finds it outside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; refuses `nan`."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


def console(*, stderr: bool = False) -> Console:
    """A rich console that keeps long lines whole when its output is not a terminal."""
    from rich.console import Console

    c = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not c.is_terminal:
        c.width = 10_000
    return c


def echo(
    text: object = "", *, err: bool = False, nl: bool = True, lines: bool = False, **style: Any
) -> None:
    """Print a text on stdout, or with `err` on stderr: nothing in it steers the terminal.

    Args:
        text: of any origin.
        nl: end the line.
        lines: as of `printable`.
        style: colours, as of `click.style`.
    """
    click.secho(printable(str(text), lines=lines), err=err, nl=nl, **style)


def print_notices(notices: Iterable[Finding], *, quiet: bool = False) -> None:
    """Each notice once, to stderr, warnings first; `quiet` keeps the warnings only."""
    seen: set[str] = set()
    for notice in sorted(notices, key=lambda n: n.level == "info"):
        text = str(notice)
        if text in seen or (quiet and notice.level == "info"):
            continue
        seen.add(text)
        warn = notice.level == "warning"
        echo("warning: " if warn else "note: ", fg="yellow" if warn else "cyan", err=True, nl=False)
        echo(text, err=True)


def notice_rows(notices: Iterable[Finding]) -> list[dict[str, object]]:
    """Notices as JSON data."""
    return [n.to_json() for n in notices]


def print_error(text: str, head: str = "error: ") -> None:
    """Print an error to stderr, behind a red head."""
    echo(head, fg="red", err=True, nl=False)
    echo(text, err=True)


def print_table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], *, right: Collection[str] = ()
) -> None:
    """Print a table without lines; columns of the heads in `right` are numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left")
    for row in rows:
        table.add_row(*map(printable, row))
    console().print(table, markup=False)


@contextmanager
def stdout_is_for_results() -> Iterator[None]:
    """Everything else that is printed meanwhile goes to stderr, also by parsers in Python or C++.

    JSON Lines for `-` still go to stdout.
    """
    import ctypes

    from headrace.media.sinks.jsonl import standard_output_is

    try:
        real = -1 if sys.stdout is None else os.dup(1)
    except OSError:
        real = -1
    if real < 0:  # closed: nothing to keep clean
        yield
        return
    libc = ctypes.CDLL(None)
    try:
        sys.stdout.flush()
        with suppress(OSError):  # stderr may be closed
            os.dup2(2, 1)
        with standard_output_is(real):
            yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        libc.fflush(None)
        os.dup2(real, 1)
        os.close(real)


_waiting: list[str] | None = None  # documents of a command with --json, until it ends


class _JsonAlone:
    """Runs a command's function so that its --json has stdout to itself."""

    def __init__(self, run: Callable[..., object]) -> None:
        self.run = run

    def __call__(self, *args: Any, as_json: bool, **options: Any) -> Any:
        global _waiting
        if not as_json:
            return self.run(*args, as_json=False, **options)
        waiting: list[str] = []
        _waiting = waiting
        try:
            with stdout_is_for_results():
                return self.run(*args, as_json=True, **options)
        except HeadraceError as error:
            if not waiting:
                rows = notice_rows(error.notices)
                print_json({"error": error.finding.to_json(), "notices": rows})
            raise
        finally:
            _waiting = None
            for text in waiting:
                echo(text, lines=True)


def json_alone(command: click.Command) -> click.Command:
    """Have `--json` of a command print its document alone to stdout, and all else to stderr."""
    run = command.callback
    takes_json = any(parameter.name == "as_json" for parameter in command.params)
    if takes_json and run is not None and not isinstance(run, _JsonAlone):
        command.callback = _JsonAlone(run)
    return command


def print_json(data: object) -> None:
    """One JSON document on stdout, in ASCII where its encoding needs that."""
    from headrace._core.json_record import finite_data

    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    text = json.dumps(finite_data(data), allow_nan=False, indent=2, ensure_ascii=encoding != "utf8")
    text = printable_json(text)  # names that are no text have lone surrogates
    if _waiting is None:
        echo(text, lines=True)
    else:
        _waiting.append(text)
