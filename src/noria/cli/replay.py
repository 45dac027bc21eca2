"""`noria replay`: a saved call of a parser once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["replay"]

EPILOG = """\b
Examples:
  noria replay ~/.local/state/noria/crashes/20260301-101500.000000-libparser-ParseBoxes
  noria replay FOLDER --guard --timeout 2
  gdb --args python -m noria replay FOLDER
  LD_PRELOAD=$(g++ -print-file-name=libasan.so) noria replay FOLDER --library libparser_asan.so
"""
_UNNOTICED = (
    "only workers guard the ends of outputs: what the library does past them is not noticed in "
    "this process, which may die of it later; --guard shows it, and so does a sanitizer"
)


@click.command(epilog=EPILOG)
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER"
)
@click.option(
    "--library",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another build of the library, with debug information or sanitizers.",
)
@click.option("--guard", is_flag=True, help="In a worker process again: print how it ends.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 1e6),
    metavar="SECONDS",
    help="Limit of the call; default: what it was when the call was saved. 0 sets none.",
)
def replay(folder: Path, library: Path | None, guard: bool, timeout: float | None) -> int:
    """Repeat the call that ended the worker process of a custom library.

    It runs in this process, so that a debugger or a sanitizer sees it: if the library crashes, so
    does this command. If it does not return in time, this command ends; in a debugger it does not.
    """
    from noria.cli.output import printable
    from noria.custom import open_library
    from noria.custom.guard.limit import limited
    from noria.custom.guard.options import GuardOptions
    from noria.custom.guard.repro import load_case
    from noria.custom.guard.trust import content_hash

    case, layers, said = load_case(folder)
    path = library or case.library
    if library is None and path.is_file() and content_hash(path) != case.sha256:
        click.echo(printable(f"warning: {path} is not the file that it was"), err=True)
    frame = f", frame {said['frame']} of {said.get('source')}" if "frame" in said else ""
    click.echo(printable(f"{path}: {case.name}{frame}"), err=True)
    click.echo(printable(f"then: {said.get('found', '')}"), err=True)
    past = not guard and " past the end of " in str(said.get("found", ""))
    if past:
        # before the call: what it overwrites here may end this process at any time
        click.echo(f"warning: {_UNNOTICED}", err=True)
    limit = case.timeout_s if timeout is None else timeout
    options = GuardOptions(
        timeout_s=limit or 1e9, memory_mib=case.memory_mib, restarts=0, once=True
    )
    with limited(0 if guard or not limit else options.load_timeout_s, str(path)):
        opened = open_library(
            path,
            abi=case.abi,
            rotation=case.rotation,
            guard="always" if guard else "never",
            guard_options=options,
        )
        parser: Any = getattr(opened, f"{case.kind}_parser")(case.name)
    with limited(0 if guard else limit, f"{path}: {case.name}"):
        found = parser(layers, case.network, case.params)
    click.echo(printable(f"now: the function returned {found!r}"[:2000]))
    if not past:
        text = "the fault did not recur: what earlier calls left in the library is not repeated"
        click.echo(text, err=True)
    for notice in (*opened.decisions, *parser.notices):
        if notice.level == "warning":
            click.echo(printable(f"warning: {notice}"), err=True)
    return 0
