"""`headrace check-plugin`: plugins against the contract that TensorRT's documentation describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.inputs import is_config, is_model, load_config, refuse_options
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_error, print_json

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.plugin_check import PluginReport

EPILOG = """\b
Examples:
  headrace check-plugin libmyplugin.so --input float32:2x3x17x13
  headrace check-plugin my_plugins.py --plugin Swish --field alpha=0.5
  headrace check-plugin config_infer_primary.txt
  headrace check-plugin model.onnx --library libmyplugin.so
"""
EXIT_BROKEN = 5


@click.command(name="check-plugin", epilog=EPILOG)
@click.argument("file", metavar="LIBRARY|MODULE|CONFIG", type=click.Path(path_type=Path))
@click.option("--plugin", "only", multiple=True, metavar="NAME",
              help="Check this plugin alone; repeatable.")  # fmt: skip
@click.option("--input", "inputs", multiple=True, metavar="TYPE:SHAPE",
              help="Type and shape of one input: float32:2x3x17x13; repeatable.")  # fmt: skip
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE",
              help="Value of a field of the creator; repeatable.")  # fmt: skip
@click.option("--library", "libraries", multiple=True, type=click.Path(path_type=Path),
              metavar="PLUGINS", help="A file of plugins to load first, for a model.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@run_options("check-plugin")
def check_plugin(
    file: Path,
    only: tuple[str, ...],
    inputs: tuple[str, ...],
    fields: tuple[str, ...],
    libraries: tuple[Path, ...],
    as_json: bool,
    settings: list[GivenKey],
) -> int:
    """Check the plugins of LIBRARY (.so), MODULE (.py), or of a config's or ONNX file's model.

    Each plugin is made, copied, saved, loaded and run in copies of this process, between guard
    pages, and everything that breaks TensorRT's contract is named by its clause. The exit code is 5
    if a clause is broken, or a plugin could not be checked.
    """
    reports = _reports(file, only, inputs, fields, libraries, settings)
    if as_json:
        print_json({"plugins": [r.to_json() for r in reports]})
    else:
        for report in reports:
            _print(report)
    if not reports:
        print_error("the model has no plugins that a creator makes")
    return 0 if reports and all(r.passed for r in reports) else EXIT_BROKEN


def _reports(
    file: Path,
    only: tuple[str, ...],
    inputs: tuple[str, ...],
    fields: tuple[str, ...],
    libraries: tuple[Path, ...],
    settings: list[GivenKey],
) -> list[PluginReport]:
    from headrace.diagnose.plugin_check import check_library, check_network
    from headrace.diagnose.plugin_check.subjects import of_config, parsed_field, parsed_input
    from headrace.plugins.registry import get_plugin_registry

    for library in libraries:
        get_plugin_registry().load_library(library)
    if not is_config(str(file)):
        refuse_options(file, settings)
        return check_library(
            file,
            inputs=[parsed_input(text) for text in inputs],
            fields=dict(parsed_field(text) for text in fields),
            only=only,
        )
    if inputs or fields:
        raise click.UsageError("a model's nodes have inputs and fields of their own: "
                               "--input and --field are for libraries")  # fmt: skip
    if is_model(file):
        from headrace.engine.builder import BuildOptions
        from headrace.network import network_from_onnx

        refuse_options(file, settings)
        return check_network(network_from_onnx(file), BuildOptions(), only=only)
    return check_network(*of_config(load_config(file, settings)), only=only)


def _print(report: PluginReport) -> None:
    bad = [b for b in report.breaches if b.level == "error"]
    if not report.inputs and not bad:
        state = "not checked"
    else:
        state = f"{len(bad)} of its clauses broken" if bad else "no breach found"
    echo(f"{report.plugin}: {state}", bold=True)
    if report.inputs:
        given = f" (tried out: {', '.join(report.guessed)})" if report.guessed else ""
        echo(f"  inputs: {report.inputs}{given}")
    else:
        echo("  no inputs that it takes were found; --input TYPE:SHAPE gives them")
    for breach in report.breaches:
        echo(f"  {breach.level}: {breach.clause}: {breach.event}",
             fg="red" if breach.level == "error" else "yellow")  # fmt: skip
        for line in breach.lines:
            echo(f"    {line}")
    for note in report.notes:
        echo(f"  note: {note}")
    reasons: dict[str, list[str]] = {}
    for name, reason in report.skipped.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        echo(f"  not checked, because {reason}: {', '.join(names)}")
    if report.checked:
        echo(f"  checked: {', '.join(report.checked)}")
