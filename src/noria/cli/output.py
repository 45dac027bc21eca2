"""How the command line talks: notices, tables, progress. Results go to stdout, talk to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from noria.notices import Notice

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "print_json", "print_notices"]


def console(*, stderr: bool = False) -> Console:
    """A rich console that keeps long lines whole when its output is not a terminal."""
    from rich.console import Console

    c = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not c.is_terminal:
        c.width = 10_000
    return c


def print_notices(notices: Iterable[Notice], *, quiet: bool = False) -> None:
    """Each notice once, to stderr; `quiet` keeps the warnings only."""
    seen: set[str] = set()
    for notice in notices:
        text = str(notice)
        if text in seen or (quiet and notice.level == "info"):
            continue
        seen.add(text)
        warn = notice.level == "warning"
        click.secho(
            "warning: " if warn else "note: ", fg="yellow" if warn else "cyan", err=True, nl=False
        )
        click.echo(text, err=True)


def print_json(data: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))
