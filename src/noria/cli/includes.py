"""`noria includes`: flags and variables with which others' build files find noria's headers."""

from __future__ import annotations

import shlex
from typing import Any, cast

import click

EPILOG = """\b
Examples:
  g++ -shared -fPIC $(noria includes) my_parser.cpp -o libmy_parser.so
  make $(noria includes --make)
  eval "$(noria includes --shell)"; make
"""


@click.command(epilog=EPILOG)
@click.option("--libs", "what", flag_value="libs", help="Flags of the linker.")
@click.option("--make", "what", flag_value="make",
              help="Variables for make, for an unchanged Makefile.")  # fmt: skip
@click.option("--shell", "what", flag_value="shell", help="The same as lines of a shell.")
@click.option("--dir", "what", flag_value="dir", help="Only the folder of the headers.")
@click.option("--generation", type=click.Choice(["6.x", "9.x"]), default="9.x", show_default=True,
              help="View of the headers: boxes of 28 bytes (9.x) or 24.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def includes(what: str | None, generation: str, as_json: bool) -> int:
    """Print the compiler flags with which sources of custom libraries find noria's headers."""
    from noria.custom.compile.toolchain import header_flags, include_dir, link_dir, make_variables

    view = cast(Any, generation)
    variables = make_variables(view)
    if as_json:
        from noria.cli.output import print_json

        print_json(
            {
                "include": str(include_dir()),
                "lib": str(link_dir()),
                "flags": header_flags(view),
                "variables": variables,
            }
        )
    elif what == "libs":
        click.echo(shlex.join([f"-L{link_dir()}"]))
    elif what == "make":
        click.echo(" ".join(f"{name}={value}" for name, value in variables.items()))
    elif what == "shell":
        for name, value in variables.items():
            click.echo(f"export {name}={shlex.quote(value)}")
    elif what == "dir":
        click.echo(include_dir())
    else:
        click.echo(shlex.join(header_flags(view)))
    return 0
