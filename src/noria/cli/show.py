"""`noria show`: what noria understood of a config, a model or an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noria.cli.output import console, print_json, print_notices, printable
from noria.errors import ConfigError, ModelError, NoriaError

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.engine.session import TensorSpec

__all__ = ["show"]

EPILOG = """\b
Examples:
  noria show config_infer_primary.txt
  noria show config_infer_primary.yml --set-only
  noria show model.onnx
  noria show model.onnx_b1_gpu0_fp32.engine --json
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set-only", is_flag=True, help="Of a config, only the values that the file sets.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show(file: Path, set_only: bool, as_json: bool) -> None:
    """Show FILE: a config, an ONNX model (.onnx) or an engine (.engine).

    A config is shown with the effective value of every key, where each comes from, and the inputs
    and outputs of its model.
    """
    suffix = file.suffix.lower()
    if os.path.isdir(file):  # unlike Path.is_dir, no error where it may not look
        raise ConfigError("this is a folder", where=str(file), expected="a config, model or engine")
    if suffix == ".onnx":
        data = _model(file)
    elif suffix in (".engine", ".plan", ".trt"):
        data = _engine(file)
    else:
        _show_config(file, set_only, as_json)
        return
    if as_json:
        print_json(data)
    else:
        _print_fields(data)


def _model(path: Path) -> dict[str, Any]:
    from noria.infer.parsers import suggest
    from noria.network import network_from_onnx

    network = network_from_onnx(path)
    summary = network.summary()
    data = _plain(summary)
    data["opsets"] = {domain or "ai.onnx": v for domain, v in summary.opsets.items()}
    data["built-in parsers that fit"] = suggest(network.outputs) or ["none"]
    assert isinstance(data, dict)
    return data


def _engine(path: Path) -> dict[str, Any]:
    from noria.engine import Plan

    data = _plain(Plan.load(path).describe())
    assert isinstance(data, dict)
    return data


def _show_config(path: Path, set_only: bool, as_json: bool) -> None:
    from noria.config import ModelConfig

    cfg = ModelConfig.load(path)
    rows = [r for r in cfg.effective() if not set_only or r[3] != "default"]
    model, problem = _model_io(cfg)
    if as_json:
        print_json(
            {
                "config": str(cfg.path),
                "values": [{"group": g, "key": k, "value": v, "origin": o} for g, k, v, o in rows],
                "model": model,
                "problem": problem,
                "notices": [
                    {"level": n.level, "message": n.message, "where": n.where} for n in cfg.notices
                ],
            }
        )
        return
    _print_values(rows)
    for name, specs in (model or {}).items():
        click.echo(printable(f"{name}: {', '.join(specs) or 'none'}"))
    print_notices(cfg.notices)
    if problem:
        click.secho("the model cannot be shown: ", fg="yellow", err=True, nl=False)
        click.echo(printable(problem), err=True)


def _model_io(cfg: ModelConfig) -> tuple[dict[str, list[str]] | None, str | None]:
    """Inputs, outputs and fitting parsers of the config's model, or why they cannot be told."""
    from noria.infer.parsers import suggest
    from noria.network import network_from_onnx

    if cfg.onnx_file is None:
        return None, "the config names no onnx-file"
    try:
        network = network_from_onnx(cfg.onnx_file)
    except (ModelError, NoriaError) as error:
        return None, str(error)

    def texts(specs: Sequence[TensorSpec]) -> list[str]:
        return [str(s) for s in specs]

    return {
        "inputs": texts(network.inputs),
        "outputs": texts(network.outputs),
        "built-in parsers that fit": suggest(network.outputs),
    }, None


def _print_values(rows: Sequence[tuple[str, str, str, str]]) -> None:
    from rich.table import Table

    screen = console()
    group = None
    table = Table(box=None, show_header=False, pad_edge=False)
    for column in range(3):
        table.add_column(overflow="fold", style="dim" if column == 2 else None)
    for g, key, value, origin in rows:
        if g != group:
            table.add_row(f"[bold]\\[{g}][/bold]", "", "")
            group = g
        table.add_row(f"  {key}", _escape(value), _escape(origin))
    screen.print(table)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _plain(value: Any) -> Any:
    """Dataclasses, paths and specs as JSON data."""
    from noria.engine.session import TensorSpec

    if isinstance(value, TensorSpec):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {k: _plain(getattr(value, k)) for k in (f.name for f in fields(value))}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _print_fields(data: dict[str, Any]) -> None:
    width = max((len(k) for k in data), default=0)
    for key, value in data.items():
        click.echo(f"{key.replace('_', ' '):<{width}}  {printable(_text(value))}")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_text(v) for v in value) or "none"
    return "" if value is None else str(value)
