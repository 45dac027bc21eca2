"""The `noria` command: one file per subcommand, imported only when used."""

from __future__ import annotations

import click

__all__ = ["main"]


@click.group()
def main() -> None:
    """Run nvinfer configs, models and custom parsers anywhere."""
