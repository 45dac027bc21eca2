"""`headrace calibrate`: find the INT8 scales of a config's model."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.inputs import load_config
from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, notice_rows, print_json, print_notices

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.compare.calibrating import Calibrated
    from headrace.diagnose.compare.sensitivity import SensitivityReport
    from headrace.engine.precision.histogram import Method
    from headrace.infer.run_options import RunOptions

_SHOWN = 20

EPILOG = """\b
Examples:
  headrace calibrate config_infer_primary.txt photos/
  headrace calibrate config_infer_primary.txt road.mp4 crossing.mp4 --frames 300
  headrace calibrate config_infer_primary.txt road.mp4 --method minmax --cache minmax.calib
  headrace calibrate config_infer_primary.txt road.mp4 --scales-only
  headrace calibrate config_infer_primary.txt road.mp4 --sensitivity
  headrace calibrate config_infer_primary.txt val/ --truth val.json --sensitivity
"""


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "--images", multiple=True, metavar="DIR", help="The same as a SOURCE of images; repeatable."
)
@click.option(
    "--video", multiple=True, metavar="FILE", help="The same as a SOURCE, a video; repeatable."
)
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
    help="How the limits of a tensor are chosen.",
)
@click.option(
    "--percentile",
    type=FiniteRange(0, 100, min_open=True),
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
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Rank the layers by what INT8 costs, and find those to keep in FP32. A table that is "
    "there is used as it is.",
)
@click.option(
    "--scales-only",
    is_flag=True,
    help="Write the table alone: no agreement with FP32 is measured, no layers are chosen.",
)
@click.option(
    "--truth",
    type=click.Path(path_type=Path),
    metavar="JSON",
    help="COCO JSON of the images: the loss is mAP50-95. Default: FP32 is the truth.",
)
@click.option(
    "--max-loss",
    type=FiniteRange(0, 100),
    metavar="POINTS",
    help="Loss that is accepted of INT8. Default: 1 point of mAP50-95, or 5 % of FP32's boxes.",
)
@click.option(
    "--backend",
    metavar="NAME",
    help="The runtime that --sensitivity measures. Default: onnxruntime.",
)
@click.option("--overwrite", is_flag=True, help="Replace a table that is there.")
@click.option("--restart", is_flag=True, help="Forget what an interrupted run has seen.")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@run_options("calibrate", threads="CPU threads of the engine.")
def calibrate(
    config: Path,
    sources: tuple[str, ...],
    images: tuple[str, ...],
    video: tuple[str, ...],
    frames: int,
    method: Method,
    percentile: float,
    cache: Path | None,
    tensorrt: str,
    sensitivity: bool,
    scales_only: bool,
    truth: Path | None,
    max_loss: float | None,
    backend: str | None,
    overwrite: bool,
    restart: bool,
    strict: bool,
    quiet: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> None:
    """Find the INT8 scales of CONFIG's model from images and write a calibration table.

    A SOURCE is a video, an image, a folder, or a quoted pattern of images. Beside the table stands
    how many of FP32's boxes INT8 keeps, and which layers stay FP32 for that. Images are shown by
    the config's keys. An interrupted run goes on where it was
    when it is started again.
    """
    from headrace._core.notices import refuse_warnings
    from headrace.cli.ending import finish_on_signal
    from headrace.cli.progress import RunProgress
    from headrace.cli.running import say_aside
    from headrace.diagnose.calibrate.scales import calibration_path
    from headrace.diagnose.compare.calibrating import Calibrating
    from headrace.engine.precision.cache import table_header

    names = [*sources, *images, *video]
    if not names:
        raise click.UsageError("Missing argument 'SOURCE...': a video or images to learn from.")
    if not sensitivity and (truth or backend or max_loss is not None):
        raise click.UsageError("--truth, --max-loss and --backend belong to --sensitivity")
    header = table_header(tensorrt)
    cfg = load_config(config, [*settings, *run.keys()])
    refuse_warnings(cfg.notices, strict=strict)
    path = cache or calibration_path(cfg)
    stop = Event()
    with (
        RunProgress(enabled=not quiet and not as_json, unit="steps", lines=True) as progress,
        finish_on_signal(stop.set, say_aside),
    ):

        def step() -> None:
            progress.step()
            if stop.is_set():  # what was seen is saved on the way out
                raise KeyboardInterrupt

        done = Calibrating(
            cfg=cfg,
            sources=names,
            path=path,
            goal="sensitivity" if sensitivity else "scales" if scales_only else "choice",
            frames=frames,
            method=method,
            percentile=percentile,
            header=header,
            overwrite=overwrite,
            restart=restart,
            truth=truth,
            max_loss=max_loss,
            backend=backend,
            threads=run.threads,
            on_stage=progress.stage,
            on_step=step,
        ).run()
    notices = [*cfg.notices, *done.notices]
    print_notices(notices, quiet=quiet or as_json)
    refuse_warnings(done.notices, strict=strict)
    if as_json:
        print_json(_as_json(done, path, notices))
        return
    if not quiet:
        if advice := _advice(cfg, path):
            echo(f"to use it: {advice}", err=True)
        seen = f" from {done.report.frames} frames" if done.report else ", as they were"
        echo(f"{len(done.table.scales)} tensors{seen}", err=True)
        chosen = done.choice
        if chosen is not None and chosen.choice.keep:
            count = f"{len(chosen.choice.keep)} of {chosen.layers} layers stay FP32"
            echo(f"{count}: {', '.join(chosen.choice.keep)}", err=True)
    echo(str(path))
    if done.ranking is not None:
        _print_sensitivity(done.ranking)


def _print_sensitivity(report: SensitivityReport) -> None:
    echo(f"{'layer':40} {'operator':14} signal to noise")
    for layer in report.layers[:_SHOWN]:
        echo(f"{layer.name:40} {layer.operator:14} {layer.decibels:8.1f} dB")
    if len(report.layers) > _SHOWN:
        echo(f"and {len(report.layers) - _SHOWN} more, less noisy")
    if report.reference is None:
        return
    echo(f"FP32: {report.reference:.2f} points of {report.measure}")
    for step in report.steps:
        echo(f"INT8, {step.kept} layers in FP32: {step.quality:.2f}")
    if not report.reached:
        echo("the loss is larger than allowed with all layers in FP32", err=True)
    elif report.kept:
        echo("keep the worst layers in FP32 with this line of the config:", err=True)
        echo(report.line)


def _advice(cfg: ModelConfig, table: Path) -> str:
    """The keys that a run with `table` still lacks, as the config or command line takes them."""
    from headrace._core.formats.archives import is_bare_model
    from headrace.config.enums import NetworkMode

    bare = is_bare_model(cfg.path)
    folder = Path() if bare else cfg.path.parent
    keys = [] if cfg.network_mode in (NetworkMode.INT8, NetworkMode.BEST) else ["network-mode=1"]
    named = cfg.int8_calib_file
    if named is None or named.resolve() != table.resolve():
        keys.append(f"int8-calib-file={os.path.relpath(table, folder)}")
    if bare and keys:
        return f"headrace run {cfg.path} " + " ".join(f"--set {shlex.quote(key)}" for key in keys)
    return f"{' and '.join(keys)} in {cfg.path}" if keys else ""


def _as_json(done: Calibrated, path: Path, notices: list[Finding]) -> dict[str, Any]:
    table, report, chosen, sensitivity = done.table, done.report, done.choice, done.ranking
    content: dict[str, Any] = {
        "table": str(path),
        "header": table.header,
        "tensors": len(table.scales),
        "notices": notice_rows(notices),
    }
    if report is not None:
        content |= {"method": report.method, "frames": report.frames, "resumed": report.resumed}
    if chosen is not None:
        figure = chosen.choice.agreement
        content["keep"], content["layers"] = list(chosen.choice.keep), chosen.layers
        content["agreement"] = figure and {**figure.to_dict(), "share": round(figure.share, 4)}
    if sensitivity is not None:
        content["sensitivity"] = {
            "measure": sensitivity.measure,
            "fp32": sensitivity.reference,
            "steps": [{"kept": s.kept, "quality": s.quality} for s in sensitivity.steps],
            "kept": list(sensitivity.kept),
            "reached": sensitivity.reached,
            "layers": [
                {"name": x.name, "operator": x.operator, "db": round(x.decibels, 2)}
                for x in sensitivity.layers
            ],
        }
    return content
