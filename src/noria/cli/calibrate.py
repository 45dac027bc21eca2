"""`noria calibrate`: find the INT8 scales of a config's model."""

from __future__ import annotations

from pathlib import Path

import click

from noria.cli.output import print_json, print_notices

__all__ = ["calibrate"]

EPILOG = """\b
Examples:
  noria calibrate config_infer_primary.txt --images photos/
  noria calibrate config_infer_primary.txt --video road.mp4 --frames 300
  noria calibrate config_infer_primary.txt --video road.mp4 --method minmax --cache minmax.calib
"""


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--images", multiple=True, metavar="DIR", help="Folder or pattern of pictures; repeatable."
)
@click.option("--video", multiple=True, metavar="FILE", help="A video; repeatable.")
@click.option(
    "--frames",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="How many to use, spread evenly.",
)
@click.option(
    "--method",
    type=click.Choice(["entropy", "minmax", "percentile"]),
    default="entropy",
    show_default=True,
    help="How to choose where a tensor is clipped.",
)
@click.option(
    "--percentile",
    type=click.FloatRange(0, 100, min_open=True),
    default=99.99,
    show_default=True,
    help="Per cent of the values that are not clipped, for --method percentile.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write. Default: the config's int8-calib-file, else beside the model.",
)
@click.option(
    "--tensorrt",
    default="10.3.0",
    show_default=True,
    metavar="VERSION",
    help="TensorRT release that the first line names; TensorRT takes tables of its own only.",
)
@click.option("--overwrite", is_flag=True, help="Replace a table that is there.")
@click.option("--restart", is_flag=True, help="Forget what an interrupted run has seen.")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the engine.")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def calibrate(
    config: Path,
    images: tuple[str, ...],
    video: tuple[str, ...],
    frames: int,
    method: str,
    percentile: float,
    cache: Path | None,
    tensorrt: str,
    overwrite: bool,
    restart: bool,
    threads: int | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the INT8 scales of CONFIG's model from pictures and write a calibration table.

    Pictures are shown to the model as the config says. An interrupted run goes on where it was
    when it is started again.
    """
    from noria.cli.progress import RunProgress
    from noria.config import ModelConfig
    from noria.engine.precision.cache import table_header
    from noria.infer.calibration import calibrate as find_scales
    from noria.notices import refuse_warnings

    sources = [*images, *video]
    if not sources:
        raise click.UsageError("Missing option '--images' or '--video': pictures to learn from.")
    header = table_header(tensorrt)
    cfg = ModelConfig.load(config)
    if strict:
        refuse_warnings(cfg.notices)
    with RunProgress(enabled=not quiet and not as_json) as progress:
        report = find_scales(
            cfg,
            sources,
            frames=frames,
            method=method,  # type: ignore[arg-type]
            percentile=percentile,
            cache=cache,
            header=header,
            overwrite=overwrite,
            restart=restart,
            threads=threads,
            on_stage=progress.stage,
            on_frame=progress.step,
        )
    notices = [*cfg.notices, *report.notices]
    print_notices(notices, quiet=quiet or as_json)
    if strict:
        refuse_warnings(report.notices)
    if as_json:
        print_json(
            {
                "table": str(report.path),
                "header": report.table.header,
                "method": report.method,
                "frames": report.frames,
                "resumed": report.resumed,
                "tensors": len(report.table.scales),
                "notices": [
                    {"level": n.level, "message": n.message, "where": n.where} for n in notices
                ],
            }
        )
        return
    if not quiet:
        named = cfg.int8_calib_file
        if named is None or named.resolve() != report.path.resolve():
            click.echo(f"to use it: int8-calib-file={report.path.name} in {cfg.path}", err=True)
        click.echo(f"{len(report.table.scales)} tensors from {report.frames} frames", err=True)
    click.echo(str(report.path))
