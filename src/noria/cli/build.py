"""`noria build`: make the engine of a config ahead of time."""

from __future__ import annotations

from pathlib import Path

import click

from noria.cli.output import print_json, print_notices

__all__ = ["build"]

EPILOG = """\b
Examples:
  noria build config_infer_primary.txt
  noria build config_infer_primary.txt --rebuild --threads 2
"""


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--backend", metavar="NAME", help="The runtime: onnxruntime or openvino.")
@click.option("--rebuild", is_flag=True, help="Build even if a valid engine is saved.")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the engine.")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def build(
    config: Path,
    backend: str | None,
    rebuild: bool,
    threads: int | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Build the engine of CONFIG and save it beside the model.

    A valid saved engine is kept; otherwise the reason for building is said.
    """
    from noria.config import ModelConfig
    from noria.engine import load_or_build
    from noria.notices import refuse_warnings

    cfg = ModelConfig.load(config)
    if strict:
        refuse_warnings(cfg.notices)
    plan = load_or_build(cfg, threads=threads, rebuild=rebuild, backend=backend)
    if strict:
        refuse_warnings(plan.decisions)
    if as_json:
        print_json(
            {
                "engine": None if plan.path is None else str(plan.path),
                "notices": [
                    {"level": n.level, "message": n.message, "where": n.where}
                    for n in [*cfg.notices, *plan.decisions]
                ],
            }
        )
        return
    print_notices([*cfg.notices, *plan.decisions])
    click.echo(plan.path or "the engine could not be saved; it is built anew at every start")
