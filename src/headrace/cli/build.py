"""`headrace build`: make the engine of a config ahead of time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.findings import Finding
from headrace.cli.inputs import load_config
from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, notice_rows, print_json, print_notices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.config import ModelConfig
    from headrace.config.overrides import GivenKey
    from headrace.engine.plan_header import Precision
    from headrace.engine.tactic import Objective
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
Examples:
  headrace build config_infer_primary.txt
  headrace build config_infer_primary.txt --tune
  headrace build config_infer_primary.txt --tune 20 --tune-for latency
  headrace build config_infer_primary.txt --tune --images video.mp4
  headrace build config_infer_primary.txt --device cpu
  headrace build config_infer_primary.txt --backend openvino
  headrace build config_infer_primary.txt --precision int8 --backend openvino
  headrace build config_infer_primary.txt --precision fp16 --export-onnx detector_fp16.onnx
  headrace build config_infer_primary.txt --rebuild --threads 2
"""
_DEFAULT_BUDGET = "60"
OFFERED = "bf16-offered"
_FRAMES = 20  # on which an offered precision is compared


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--backend",
    metavar="NAME",
    help="The runtime, whatever the device: onnxruntime, openvino, onnxruntime-cuda or tensorrt. "
    "Default: the first that runs on the device; --tune tries all that do.",
)
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "bf16", "int8", "best"]),
    help="Types in the graph. Default: what network-mode allows and is faster here.",
)  # fmt: skip
@click.option(
    "--export-onnx", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the model with its precision in the graph, for TensorRT and others; build nothing.",
)  # fmt: skip
@click.option(
    "--tune", is_flag=False, flag_value=_DEFAULT_BUDGET, type=FiniteRange(0.1, 86400),
    metavar="[SECONDS]",
    help=f"Find the fastest way to run it on this machine, in {_DEFAULT_BUDGET} s or as given.",
)  # fmt: skip
@click.option(
    "--tune-for", type=click.Choice(["throughput", "latency"]),
    help="Goal of --tune.  [default: throughput]",
)  # fmt: skip
@click.option("--timing-cache", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Where times are kept. Default: the user's cache folder.")  # fmt: skip
@click.option("--retime", is_flag=True, help="Measure again what is in the timing cache.")
@click.option("--images", metavar="SOURCE",
              help="Images or a video: the boxes of a precision that --tune offers are compared "
                   "on 20 of them.")  # fmt: skip
@click.option("--tactic", metavar="TACTIC",
              help="Pin the way to run it, as onnxruntime:threads=1,streams=2.")  # fmt: skip
@click.option("--dynamic-batch", is_flag=True,
              help="Free the batch of a model that fixes it at 1, if that is right.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@run_options(
    "build",
    threads="CPU threads of the engine.",
    device="Where the engine will run",
    rebuild="Build even if a valid engine is saved.",
)
def build(
    config: Path,
    backend: str | None,
    precision: Precision | None,
    export_onnx: Path | None,
    dynamic_batch: bool,
    tune: float | None,
    tune_for: Objective | None,
    timing_cache: Path | None,
    retime: bool,
    images: str | None,
    tactic: str | None,
    strict: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> None:
    """Build the engine of CONFIG and save it beside the model.

    A valid saved engine is kept; otherwise the reason for building is printed. headrace run uses
    the engine as it was tuned or pinned.
    """
    from headrace._core.notices import refuse_warnings
    from headrace.cli.progress import RunProgress
    from headrace.engine.backends import GPU_RUNTIMES
    from headrace.engine.device import CPU, choose_device
    from headrace.engine.tactic import Tactic
    from headrace.engine.tuning.tune import TuneOptions
    from headrace.infer.model import load_or_build

    if tune is None and (retime or timing_cache or tune_for or images):
        raise click.UsageError("--tune-for, --retime, --timing-cache and --images need --tune")
    if run.device != "auto" and (backend or tactic):
        raise click.UsageError("--backend and --tactic say where it runs; leave --device out")
    if tune is not None and tactic:
        raise click.UsageError("--tactic pins what --tune would find; choose one")
    builds = tune is not None or tactic or backend or run.rebuild or run.threads or dynamic_batch
    if export_onnx is not None and (builds or run.device != "auto"):
        raise click.UsageError("--export-onnx builds no engine: it goes with --precision alone")
    cfg = load_config(config, [*settings, *run.keys()])
    refuse_warnings(cfg.notices, strict=strict)
    if export_onnx is not None:
        _export(cfg, export_onnx, precision, strict=strict, as_json=as_json)
        return
    tuning = None
    if tune is not None:
        tuning = TuneOptions(
            budget_s=tune,
            objective=tune_for or "throughput",
            cache=timing_cache,
            use_cache=not retime,
        )
    named = (backend or tactic or "").partition(":")[0]
    on_cpu = named and named not in GPU_RUNTIMES
    where = CPU if on_cpu else choose_device(run.device, cfg.gpu_id)
    shown = RunProgress(enabled=not as_json and tuning is not None, unit="steps")
    with where.entered(), shown as progress:
        plan = load_or_build(
            cfg,
            threads=run.threads,
            rebuild=run.rebuild or retime,
            backend=backend,
            tactic=None if tactic is None else Tactic.parse(tactic),
            tuning=tuning,
            precision=precision,
            dynamic_batch=dynamic_batch,
            progress=progress.at,
            device=None if named else where.kind,
        )
    if images is not None:
        keys = [*settings, *run.keys()]
        decide = partial(_compared, cfg=cfg, config=config, keys=keys, images=images, run=run)
        plan.decisions = [decide(n) if n.code == OFFERED else n for n in plan.decisions]
    notices = [*where.notices, *cfg.notices, *plan.decisions]
    refuse_warnings(plan.decisions, strict=strict)
    if as_json:
        print_json(
            {
                "engine": None if plan.path is None else str(plan.path),
                "precision": plan.header.precision,
                "tactics": tactic_rows(plan),
                "notices": notice_rows(notices),
            }
        )
        return
    print_notices(notices)
    echo(plan.path or "the engine could not be saved; it is built anew at every start")


def _compared(
    offer: Finding,
    *,
    cfg: ModelConfig,
    config: Path,
    keys: Sequence[GivenKey],
    images: str,
    run: RunOptions,
) -> Finding:
    """Add to an offered precision how many boxes agree with those of the built engine."""
    from headrace.config.overrides import combined
    from headrace.diagnose.compare.run import compare
    from headrace.diagnose.compare.sides import SideSpec

    backend = str(offer.data["tactic"]).partition(":")[0]
    other = SideSpec(config, combined(keys), precision="bf16", backend=backend)
    found = compare(
        cfg, other, images, frames=_FRAMES, layers=False, threads=run.threads, device="cpu"
    )
    if not found.by_boxes:
        data = {**offer.data, "decibels": round(found.outputs_db, 1), "frames": found.frames}
        suffix = "; its outputs keep {decibels:g} dB of signal to noise ({frames} frames)"
    else:
        total = found.total
        data = {**offer.data, "unit": found.unit, "equal": total.matched, "boxes": total.boxes_a,
                "more": total.boxes_b - total.matched, "frames": found.frames}  # fmt: skip
        suffix = "; {equal} of {boxes} {unit} agree, {more} more are others ({frames} frames)"
    return replace(offer, data=data).changed(suffix=suffix)


def _export(
    cfg: ModelConfig, path: Path, precision: Precision | None, *, strict: bool, as_json: bool
) -> None:
    from headrace._core.notices import refuse_warnings
    from headrace.infer.model.export import export_model, write_onnx
    from headrace.infer.model.precision import export_precision

    chosen, decisions = export_precision(cfg, precision)
    done = export_model(cfg, chosen)
    if chosen == "fp16":
        decisions += _half_trial(cfg)
    refuse_warnings([*cfg.notices, *decisions, *done.notices], strict=strict)
    write_onnx(cfg, done, path)
    notices = [*cfg.notices, *decisions, *done.notices]
    if as_json:
        print_json(
            {
                "onnx": str(path),
                "precision": chosen,
                "converted": len(done.converted),
                "kept": dict(done.kept),
                "missing": list(done.missing),
                "unused": list(done.unused),
                "notices": notice_rows(notices),
            }
        )
    else:
        print_notices(notices)
        echo(str(path))


def _half_trial(cfg: ModelConfig) -> list[Finding]:
    """Findings of FP16 on noise; none where it cannot be tried, as with plugins."""
    from headrace.errors import HeadraceError
    from headrace.infer.watch.half_trial import half_findings, try_half

    try:
        at = cfg.where("network_mode")
        return list(half_findings(try_half(cfg, ()), at, of=" of noise"))
    except HeadraceError as error:
        text = f"FP16 is not tried on images of noise: {error:brief}"
        return [Finding("fp16-not-tried", "info", text, str(cfg.path))]


def tactic_rows(plan: Any) -> list[dict[str, Any]]:
    """The tactics of a plan as JSON data."""
    return [{"tactic": str(t.tactic), **t.to_dict()} for t in plan.header.tactics]
