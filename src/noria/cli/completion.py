"""`noria completion`: shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

EPILOG = """\b
Examples:
  eval "$(noria completion bash)"                                   # this shell
  noria completion bash > ~/.local/share/bash-completion/completions/noria
  noria completion fish > ~/.config/fish/completions/noria.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL (bash, zsh or fish)."""
    from noria.cli import main

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(main, {}, "noria", "_NORIA_COMPLETE").source())
