"""`noria show`: what noria understood of a config, a model or an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click

from noria.cli.output import console, print_json, print_notices, printable, stdout_is_for_results
from noria.errors import ConfigError

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
def show(file: Path, set_only: bool, as_json: bool) -> int:
    """Show FILE: a config, an ONNX model (.onnx) or an engine (.engine).

    A config is shown with the effective value of every key, where each comes from, what its model
    takes and gives, which parser decodes, and why noria run would refuse it, if it would.
    """
    suffix = file.suffix.lower()
    if os.path.isdir(file):  # unlike Path.is_dir, no error where it may not look
        raise ConfigError("this is a folder", where=str(file), expected="a config, model or engine")
    if suffix == ".onnx":
        data = _model(file)
    elif suffix in (".engine", ".plan", ".trt"):
        data = _engine(file)
    else:
        return _show_config(file, set_only, as_json)
    if as_json:
        print_json(data)
        return 0
    tactics, tuning = data.pop("tactics", []), data.pop("tuning", None)
    _print_fields(data)
    if tuning is not None:
        _print_tactics(tactics, tuning)
    return 0


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
    from noria.cli.build import tactic_rows
    from noria.engine import Plan

    plan = Plan.load(path)
    data = _plain(plan.describe())
    assert isinstance(data, dict)
    data["tactics"] = tactic_rows(plan)
    tuning = plan.header.tuning
    data["tuning"] = None if tuning is None else tuning.model_dump()
    return data


def _show_config(path: Path, set_only: bool, as_json: bool) -> int:
    from noria.config import ModelConfig
    from noria.config.enums import NetworkType
    from noria.infer.dry_run import dry_run
    from noria.infer.parsers import suggest

    cfg = ModelConfig.load(path)
    rows = [r for r in cfg.effective() if not set_only or r[3] != "default"]
    with stdout_is_for_results() if as_json else nullcontext():
        checked = dry_run(cfg)
    facts: dict[str, list[str]] = {}
    if checked.network is not None:
        facts["inputs"] = [str(s) for s in checked.network.inputs]
        facts["outputs"] = [str(s) for s in checked.network.outputs]
        if cfg.network_type is NetworkType.DETECTOR:
            facts["built-in parsers that fit"] = suggest(checked.network.outputs)
    facts["parser"] = [checked.parser] if checked.parser else []
    if as_json:
        print_json(
            {
                "config": str(cfg.path),
                "values": [{"group": g, "key": k, "value": v, "origin": o} for g, k, v, o in rows],
                "model": facts,
                "problems": [str(p) for p in checked.problems],
                "notices": [
                    {"level": n.level, "message": n.message, "where": n.where}
                    for n in checked.notices
                ],
            }
        )
    else:
        _print_values(rows, str(cfg.path))
        for name, values in facts.items():
            click.echo(printable(f"{name}: {', '.join(values) or 'none'}"))
        print_notices(checked.notices)
        for problem in checked.problems:
            click.secho("noria run would refuse: ", fg="red", err=True, nl=False)
            click.echo(printable(str(problem)), err=True)
    return checked.problems[0].exit_code if checked.problems else 0


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


def _print_tactics(tactics: Sequence[dict[str, Any]], tuning: dict[str, Any]) -> None:
    """All tries of a tuning, the best first."""
    from rich.table import Table

    by = "items_per_s" if tuning["objective"] == "throughput" else "latency_ms"
    sign = -1 if by == "items_per_s" else 1
    rows = sorted(tactics, key=lambda t: (not t["chosen"], t[by] is None, sign * (t[by] or 0)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    heads = ("", "tactic", "outcome", "items/s", "ms a run", "difference", "load s", "")
    for head in heads:
        table.add_column(head, justify="right" if "s" in head and head != "outcome" else "left")
    for row in rows:
        numbers = (row["items_per_s"], row["latency_ms"], row["error"], row["load_s"])
        table.add_row(
            "*" if row["chosen"] else "", row["tactic"], row["outcome"],
            *("" if n is None else f"{n:.4g}" for n in numbers), printable(row["note"]),
        )  # fmt: skip
    where = f"{tuning['machine']}, {tuning['cores']} cores"
    click.echo(printable(
        f"tuned for {tuning['objective']}, batch {tuning['items']}, on {where}, in "
        f"{tuning['spent_s']:.1f} s" + (" (timing cache)" if tuning["cached"] else "")
    ))  # fmt: skip
    console().print(table)


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
