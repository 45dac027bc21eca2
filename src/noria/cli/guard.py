"""`noria replay` and `noria trust`: libraries that end their worker, and those without one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from noria.cli.output import print_notices, printable

if TYPE_CHECKING:
    from noria.custom.guard.repro import Case


_REPLAY_EPILOG = """\b
Examples:
  noria replay ~/.local/state/noria/crashes/20260301-101500.000000-libparser-ParseBoxes
  noria replay FOLDER --guard --timeout 2
  gdb -ex run --args python -m noria replay FOLDER
  LD_PRELOAD=$(g++ -print-file-name=libasan.so) noria replay FOLDER --library libparser_asan.so
"""
_UNNOTICED = (
    "only workers guard the ends of outputs: what the library does past them is not noticed in "
    "this process, which may die of it later; --guard shows it, and so does a sanitizer"
)
_OTHER = (
    "the fault did not recur in this build of the library, which is not the one that failed then"
)
_SAME = (
    "the fault did not recur in the same library: what earlier calls left in it, and the "
    "environment of that time, are not repeated"
)


@click.command(epilog=_REPLAY_EPILOG)
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

    A parser, the filling of inputs, a function that makes a network, or a plugin. It runs in this
    process, so that a debugger or a sanitizer sees it: if the library crashes, so does this
    command. If it does not return in time, this command ends; in a debugger it does not.
    """
    from noria.custom.in_process import debugged
    from noria.diagnose.replay import repeat, title
    from noria.model.guarded_cases import load_case

    case, arrays, said = load_case(folder)
    path = (library or case.library).absolute()
    other = _is_other(path, case)
    frame = f", frame {said['frame']} of {said.get('source')}" if "frame" in said else ""
    click.echo(printable(f"{path}: {title(case)}{frame}"), err=True)
    click.echo(printable(f"then: {said.get('found', '')}"), err=True)
    if other and library is None:
        click.echo("note: the library was compiled anew, or replaced, since then", err=True)
    print_notices(getattr(case.args, "notices", ()))
    past = not guard and " past the end of " in str(said.get("found", ""))
    if past:
        # before the call: what it overwrites here may end this process at any time
        click.echo(f"warning: {_UNNOTICED}", err=True)
    if not guard and not debugged():
        click.echo(printable(_before(folder, library)), err=True)
    found, notices = repeat(
        case, arrays, path, guard=guard, timeout_s=case.timeout_s if timeout is None else timeout
    )
    click.echo(printable(f"now: {found}"[:2000]))
    if not past:
        click.echo(_OTHER if other else _SAME, err=True)
    print_notices(notices, quiet=True)
    return 0


def _is_other(path: Path, case: Case) -> bool:
    from noria.custom.guard.trust import content_hash

    return path.is_file() and content_hash(path) != case.sha256


def _before(folder: Path, library: Path | None) -> str:
    """Announce the call: a process that crashes cannot report any more."""
    words = ["noria", "replay", str(folder)]
    if library is not None:
        words += ["--library", str(library)]
    again = shlex.join(words)
    return (
        "now it runs in this process: if it crashes again, this program ends with that signal"
        f"\n  in gdb:      gdb -ex run --args {shlex.quote(sys.executable)} -m {again}"
        f"\n  in a worker: {again} --guard"
    )


_TRUST_EPILOG = """\b
Examples:
  noria trust
  noria trust libnvdsinfer_custom_impl_Yolo.so
  noria trust --remove libnvdsinfer_custom_impl_Yolo.so
"""


@click.command(epilog=_TRUST_EPILOG)
@click.argument("libraries", nargs=-1, metavar="[LIBRARY]...", type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Guard them again.")
def trust(libraries: tuple[Path, ...], remove: bool) -> int:
    """Let C++ libraries run without a worker process, or list those that may.

    What is trusted is the content of the file: a library that is compiled again is not trusted any
    more.
    """
    from noria.custom.guard.trust import TrustStore, content_hash

    store = TrustStore()
    if not libraries:
        if remove:
            raise click.UsageError("Missing argument 'LIBRARY...': what to guard again.")
        entries = sorted(store.entries().values(), key=lambda e: e.since)
        for entry in entries:
            text = f"{entry.sha256[:12]}  {entry.since}  {entry.path} ({entry.why})"
            click.echo(printable(text))
        if not entries:
            click.echo("no library is trusted yet")
        return 0
    for path in libraries:
        sha256 = content_hash(path)
        if not remove:
            store.add(sha256, path.absolute(), "noria trust")
            click.echo(printable(f"{path}: trusted ({sha256[:12]})"))
        elif store.remove(sha256):
            click.echo(printable(f"{path}: guarded again"))
        else:
            click.echo(printable(f"{path}: was not trusted"))
    return 0
