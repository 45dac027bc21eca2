"""`headrace trust`: libraries that run without a worker process."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.output import echo

_TRUST_EPILOG = """\b
Examples:
  headrace trust
  headrace trust libnvdsinfer_custom_impl_Yolo.so
  headrace trust --remove libnvdsinfer_custom_impl_Yolo.so
"""


@click.command(epilog=_TRUST_EPILOG)
@click.argument("libraries", nargs=-1, metavar="[LIBRARY]...", type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Guard them again.")
def trust(libraries: tuple[Path, ...], remove: bool) -> int:
    """Let C++ libraries run without a worker process, or list those that may.

    What is trusted is the content of the file: a library that is compiled again is not trusted any
    more.
    """
    from headrace.custom.guard.trust import TrustStore, content_hash

    store = TrustStore()
    if not libraries:
        if remove:
            raise click.UsageError("Missing argument 'LIBRARY...': what to guard again.")
        entries = sorted(store.entries().values(), key=lambda e: e.since)
        for entry in entries:
            text = f"{entry.sha256[:12]}  {entry.since}  {entry.path} ({entry.why})"
            echo(text)
        if not entries:
            echo("no library is trusted yet")
        return 0
    for path in libraries:
        sha256 = content_hash(path)
        if not remove:
            store.add(sha256, path.absolute(), "headrace trust")
            echo(f"{path}: trusted ({sha256[:12]})")
        elif store.remove(sha256):
            echo(f"{path}: guarded again")
        else:
            echo(f"{path}: was not trusted")
    return 0
