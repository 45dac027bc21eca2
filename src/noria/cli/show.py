"""`noria show`: a config with origins, a model, or an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noria._core.errors import ConfigError
from noria.cli.output import (
    notice_rows,
    print_error,
    print_json,
    print_notices,
    printable,
    stdout_is_for_results,
)

if TYPE_CHECKING:
    from noria.diagnose.dry_run import DryRun
    from noria.network import Network

EPILOG = """\b
Examples:
  noria show config_infer_primary.txt
  noria show config_infer_primary.yml --set-only
  noria show model.onnx --layers
  noria show model.caffemodel --with deploy.prototxt
  noria show model.onnx_b1_gpu0_fp32.engine --json
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set-only", is_flag=True, help="Of a config, only the values that the file sets.")
@click.option("--layers", is_flag=True, help="List every layer of the network.")
@click.option("--with", "partner", type=click.Path(path_type=Path), metavar="FILE",
              help="The other file of a Caffe or Darknet model.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show(file: Path, set_only: bool, layers: bool, partner: Path | None, as_json: bool) -> int:
    """Show FILE: a config, a model (.onnx, .caffemodel, .uff, .weights) or an engine (.engine).

    A config is shown with the effective value of every key, where each comes from, what its model
    takes and gives, which parser decodes, and why noria run would refuse it, if it would. The
    network that a function of the custom library makes is made in a process of its own.
    """
    from noria.cli import show_model as models

    if os.path.isdir(file):  # unlike Path.is_dir, no error where it may not look
        raise ConfigError("this is a folder", where=str(file), expected="a config, model or engine")
    if models.is_model(file):
        data = models.show_model(file, partner)
    elif file.suffix.lower() in (".engine", ".plan", ".trt"):
        data = models.show_engine(file)
    else:
        return _show_config(file, set_only, layers, as_json)
    if as_json:
        print_json(data)
        return 0
    models.print_engine_or_model(data, layers=layers)
    return 0


def _show_config(path: Path, set_only: bool, layers: bool, as_json: bool) -> int:
    from noria.cli.show_model import counted_layers, print_layers
    from noria.config import ModelConfig
    from noria.config.enums import NetworkType
    from noria.diagnose.dry_run import dry_run
    from noria.infer.parsers import suggest

    cfg = ModelConfig.load(path)
    rows = [r for r in cfg.effective() if not set_only or r[3] != "default"]
    with stdout_is_for_results() if as_json else nullcontext():
        checked = dry_run(cfg)
    network = checked.network
    facts = _maker_facts(checked)
    if network is not None:
        facts["inputs"] = [str(s) for s in network.inputs]
        facts["outputs"] = [str(s) for s in network.outputs]
        if cfg.network_type is NetworkType.DETECTOR:
            facts["built-in parsers that fit"] = suggest(network.outputs)
    facts["parser"] = [checked.parser] if checked.parser else []
    listed = _layers(network) if layers or checked.maker else []
    if as_json:
        data: dict[str, Any] = {
            "config": str(cfg.path),
            "values": [{"group": g, "key": k, "value": v, "origin": o} for g, k, v, o in rows],
            "model": facts,
            "problems": [str(p) for p in checked.problems],
            "notices": notice_rows(checked.notices),
        }
        if checked.maker is not None:
            failed = checked.not_made
            data["made by"] = {
                **asdict(checked.maker),
                "library": str(checked.maker.library),
                "not_made": None if failed is None else str(failed),
            }
        print_json(data | ({"layers": listed} if listed else {}))
    else:
        _print_values(rows, str(cfg.path))
        for name, values in facts.items():
            click.echo(printable(f"{name}: {', '.join(values) or 'none'}"))
        if listed:
            click.echo(printable(f"layers: {counted_layers(listed, shown=layers)}"))
            if layers:
                print_layers(listed)
        print_notices(checked.notices)
        for problem in checked.problems:
            print_error(str(problem), "noria run would refuse: ")
    return checked.problems[0].exit_code if checked.problems else 0


def _maker_facts(checked: DryRun) -> dict[str, list[str]]:
    """The network that a function of the custom library makes: its origin and its contents."""
    maker = checked.maker
    if maker is None:
        return {}
    there = "makes the network" if maker.there else "is not there"
    from_code = f"{maker.function} of {maker.library.name} ({maker.kind}) {there}"
    if maker.there and not maker.callable_here:
        from_code = f"{maker.function} of {maker.library.name} ({maker.kind}) cannot be called here"
    facts = {"network": [from_code], "signature": [f"{maker.signature} ({maker.reason})"]}
    if maker.evidence:
        facts["library"] = list(maker.evidence)
    if checked.not_made is not None:
        # as a problem it is shown whole
        failed = checked.not_made
        facts["not made"] = [f"{failed.where}: {failed.found}" if failed in checked.problems
                             else str(failed)]  # fmt: skip
    elif maker.there and checked.network is not None:
        counts = checked.network.summary().operators.items()
        facts["operators"] = [f"{count} {name}" for name, count in counts]
    return facts


def _layers(network: Network | None) -> list[dict[str, Any]]:
    from noria.engine.layers import layers_of_model

    if network is None or network.is_large:
        return []
    return [asdict(layer) for layer in layers_of_model(network.graph_proto())]


def _print_values(rows: Sequence[tuple[str, str, str, str]], path: str) -> None:
    """Values in three columns; an origin in the config itself is its line only."""
    own = f"{Path(path).name}:"
    texts = [
        (g, key, value, origin.replace(origin[: origin.rfind(own) + len(own)], "line "))
        if own in origin
        else (g, key, value, origin)
        for g, key, value, origin in rows
    ]
    wide = max((len(key) for _, key, _, _ in texts), default=0)
    values = min(40, max((len(value) for _, _, value, _ in texts), default=0))
    click.echo(printable(path))
    group = None
    for g, key, value, origin in texts:
        if g != group:
            click.echo(f"[{g}]")
            group = g
        click.echo(printable(f"  {key:<{wide}}  {value:<{values}}  {origin}".rstrip()))
