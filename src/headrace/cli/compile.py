"""`headrace compile` and `headrace includes`: custom libraries from their sources."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, cast

import click

from headrace.cli.output import echo, print_json, print_notices

EPILOG = """\b
Examples:
  headrace compile my_parser.cpp -o libmy_parser.so
  headrace compile nvdsparsebbox_Yolo.cpp utils.cpp
  headrace compile my_parser.cpp --generation 6.x
  headrace compile plugin.cpp kernels.cu -I include --cuda host
  headrace compile --exe lenet.cpp -o lenet
  headrace compile --exe deepstream_test1_app.c -o deepstream-test1-app
"""


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="SRC...")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="LIB.so",
              help="The library. Default: lib<first source>.so here.")  # fmt: skip
@click.option("--generation", type=click.Choice(["6.x", "9.x"]), default="9.x", show_default=True,
              help="View of the headers: boxes of 28 bytes (9.x) or 24.")  # fmt: skip
@click.option("-I", "--include", multiple=True, metavar="FOLDER", help="A folder of headers.")
@click.option("-D", "--define", multiple=True, metavar="NAME[=VALUE]", help="A macro.")
@click.option("-L", "folders", multiple=True, metavar="FOLDER", help="A folder of libraries.")
@click.option("-l", "libraries", multiple=True, metavar="NAME", help="A library to link.")
@click.option("--flag", "flags", multiple=True, help="A further flag of the compiler.")
@click.option("--std", "standard", default="gnu++17", show_default=True, help="The C++ standard.")
@click.option("-g", "--debug", is_flag=True, help="With symbols, without optimisation.")
@click.option("--sanitize", type=click.Choice(["address", "undefined"]), multiple=True,
              help="Find wrong uses of memory, or undefined behaviour, at run time.")  # fmt: skip
@click.option("--cuda", type=click.Choice(["auto", "host", "nvcc"]), default="auto",
              show_default=True, help="For x.cu: x_host.cpp beside it, or nvcc.")  # fmt: skip
@click.option("--exe", "program", is_flag=True,
              help="Make a program of SRC, which has main().")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the commands, run none.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def compile(
    sources: tuple[Path, ...],
    output: Path | None,
    generation: str,
    include: tuple[str, ...],
    define: tuple[str, ...],
    folders: tuple[str, ...],
    libraries: tuple[str, ...],
    flags: tuple[str, ...],
    standard: str,
    debug: bool,
    sanitize: tuple[str, ...],
    cuda: str,
    program: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Compile SRC, the unchanged sources of a custom library, against headrace's headers.

    With --exe, SRC is a program that builds, loads or runs engines by itself, or an application
    over GStreamer in C or C++; the latter needs GStreamer's headers, and `headrace exec` runs it.

    Needs g++ and nothing of NVIDIA's. What the sources include is what `headrace includes` names.
    """
    from headrace.custom.compile.build_library import compile_library

    result = compile_library(
        sources,
        output,
        generation=cast(Any, generation),
        include=include,
        define=define,
        flags=[word for flag in flags for word in shlex.split(flag)],
        links=[*(f"-L{f}" for f in folders), *(f"-l{name}" for name in libraries)],
        standard=standard,
        debug=debug,
        sanitize=cast(Any, sanitize),
        cuda=cast(Any, cuda),
        dry_run=dry_run,
        program=program,
    )
    print_notices(result.notices)
    if dry_run and not as_json:
        for command in result.commands:
            echo(shlex.join(command))
        return 0
    parsers = [] if dry_run or program else _exports(result.library)
    if as_json:
        print_json(
            {
                "library": str(result.library),
                "functions": parsers,
                "commands": [list(c) for c in result.commands],
                "notices": [str(n) for n in result.notices],
                "seconds": round(result.seconds, 3),
            }
        )
        return 0
    name = output or result.library.name
    if program:
        from headrace.custom.compile.build_library import uses_gstreamer

        if uses_gstreamer(sources):
            echo(f"{name}: an application over GStreamer; run it: headrace exec {_shown(name)}")
        else:
            echo(f"{name}: a program; it starts {sys.executable} with headrace")
        return 0
    _print(str(name), result.library, parsers)
    return 0


def _shown(name: object) -> str:
    text = str(name)
    return text if "/" in text else f"./{text}"


def _print(name: str, library: Path, parsers: list[str]) -> None:
    from headrace.binary.elf import ElfFile
    from headrace.binary.entry_points import export_hints, uses_host

    elf = ElfFile.read(library)
    may_have = not parsers and uses_host(elf)
    hints = export_hints(elf, has_plugins=may_have)
    summary = ", ".join(parsers) or "no parser functions"
    if may_have and not hints:
        summary += f"; what it makes and registers: headrace inspect {name}"
    echo(f"{name}: {summary}")
    for hint in hints:
        echo(f"hint: {hint}", err=True)


def _exports(library: Path) -> list[str]:
    from headrace.binary.elf import ElfFile
    from headrace.binary.entry_points import entry_points

    return [point.name for point in entry_points(ElfFile.read(library))]


_INCLUDES_EPILOG = """\b
Examples:
  g++ -shared -fPIC $(headrace includes) my_parser.cpp -o libmy_parser.so
  make $(headrace includes --make)
  eval "$(headrace includes --shell)"; make
  gcc app.c -o app $(headrace includes --pkg-config) -lm
"""


@click.command(epilog=_INCLUDES_EPILOG)
@click.option("--libs", "what", flag_value="libs", help="Flags of the linker.")
@click.option("--make", "what", flag_value="make",
              help="Variables for make, for an unchanged Makefile.")  # fmt: skip
@click.option("--shell", "what", flag_value="shell", help="The same as lines of a shell.")
@click.option("--pkg-config", "what", flag_value="application",
              help="Flags of compiler and linker for a C application over GStreamer.")  # fmt: skip
@click.option("--dir", "what", flag_value="dir", help="Only the folder of the headers.")
@click.option("--generation", type=click.Choice(["6.x", "9.x"]), default="9.x", show_default=True,
              help="View of the headers: boxes of 28 bytes (9.x) or 24.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def includes(what: str | None, generation: str, as_json: bool) -> int:
    """Print the compiler flags with which sources of custom libraries find headrace's headers."""
    from headrace.custom.compile.toolchain import (
        application_flags,
        header_flags,
        include_dir,
        link_dir,
        make_variables,
    )

    view = cast(Any, generation)
    variables = make_variables(view)
    if as_json:
        print_json(
            {
                "include": str(include_dir()),
                "lib": str(link_dir()),
                "flags": header_flags(view),
                "variables": variables,
            }
        )
    elif what == "application":
        echo(shlex.join([*application_flags("--cflags"), *application_flags("--libs")]))
    elif what == "libs":
        echo(shlex.join([f"-L{link_dir()}"]))
    elif what == "make":
        echo(" ".join(f"{name}={value}" for name, value in variables.items()))
    elif what == "shell":
        for name, value in variables.items():
            echo(f"export {name}={shlex.quote(value)}")
    elif what == "dir":
        echo(include_dir())
    else:
        echo(shlex.join(header_flags(view)))
    return 0
