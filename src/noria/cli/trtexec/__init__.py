"""`noria trtexec`: trtexec's options, report lines and exported files, on Noria's engines."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["trtexec"]


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def trtexec(words: tuple[str, ...]) -> int:
    """Build, run and time an engine as trtexec does, with its options."""
    from noria.cli.trtexec.command import trtexec as execute

    return execute(words, _load_plugins)


def _load_plugins(library: Path) -> None:
    """Register the plugins of a library."""
    from noria.plugins import get_plugin_registry

    get_plugin_registry().load_library(library)
