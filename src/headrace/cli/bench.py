"""`headrace bench`: how fast engines are, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace._core.notices import notices_on_errors
from headrace._core.text import printable
from headrace.cli.inputs import is_engine, is_model
from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, console, echo, print_json, print_notices
from headrace.cli.progress import RunProgress

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.overrides import GivenKey, Overrides
    from headrace.engine.bench import BenchResult
    from headrace.engine.device import Device
    from headrace.engine.session import Session
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
Examples:
  headrace bench config_infer_primary.txt
  headrace bench config_infer_primary.txt --tactic onnxruntime --tactic openvino:streams=2
  headrace bench a.engine b.engine --duration 10
  headrace bench model.onnx --tactic onnxruntime --tactic openvino
  headrace bench model.onnx --shapes tokens:1x128,mask:1x128
"""


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="CONFIG|MODEL|ENGINE…")  # fmt: skip
@click.option("--duration", type=FiniteRange(0.1, 3600), default=3.0, show_default=True,
              help="Seconds to measure each engine.")  # fmt: skip
@click.option(
    "--batch", type=click.IntRange(1, 1024), help="Items of a run. Default: the engine's."
)
@click.option("--shapes", metavar="NAME:1x64,…",
              help="Of a model: shapes of its inputs, where it leaves axes free. Default: images "
              "as a run takes them, or of 640x640, 512 for other axes of the first input, 1 for "
              "all else.")  # fmt: skip
@click.option(
    "--tactic", "tactics", multiple=True, metavar="TACTIC",
    help="Run it this way, whatever it was built for; repeat to compare, as "
    "onnxruntime:threads=1,streams=2.",
)  # fmt: skip
@click.option("--stages/--no-stages", default=True, help="Of configs, time each stage too.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@run_options(
    "bench",
    threads="CPU threads of a run.",
    streams="Runs at once.",
    device="Where engines run",
    labels="Label file instead of the config's, for the stages.",
)
def bench(
    inputs: tuple[Path, ...],
    duration: float,
    batch: int | None,
    shapes: str | None,
    tactics: tuple[str, ...],
    stages: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> None:
    """Time the engines of configs, models, or engine files, on noise.

    They take turns in short rounds, so that whatever else the machine does hits all alike. A
    config's engine is built if need be, a model's in memory. Without --threads and --streams an
    engine runs as it was tuned; one that was not tuned makes one run at a time on every core.
    """
    from headrace._core.formats.archives import is_bare_model
    from headrace.cli.trtexec.options import parse_shapes
    from headrace.config.overrides import distributed
    from headrace.engine.bench import bench as measure
    from headrace.engine.input_shapes import free_shapes
    from headrace.engine.session import FreeSession
    from headrace.engine.tactic import Tactic
    from headrace.infer.model.image_input import image_range
    from headrace.infer.recognise.recognise import free_image_size

    if tactics and (run.threads or run.streams):
        raise click.UsageError("--tactic says threads and streams itself")
    if tactics and run.device != "auto":
        raise click.UsageError("--tactic says where it runs; leave --device out")
    try:
        fixed = parse_shapes(shapes) if shapes else {}
    except ValueError as error:
        raise click.UsageError(f"--shapes {error}") from None
    requested: list[Tactic | None] = [Tactic.parse(text) for text in tactics] or [None]
    configs = [i for i, path in enumerate(inputs) if not (is_engine(path) or is_model(path))]
    parts = distributed([*settings, *run.keys()], [inputs[i].name for i in configs])
    overrides = dict(zip(configs, parts, strict=True))
    device = None if tactics else run.device
    notices: list[Finding] = []
    sessions: dict[str, Session] = {}
    ranges: dict[str, tuple[float, float]] = {}
    shaped: dict[str, dict[str, tuple[int, ...]]] = {}
    timed: dict[str, dict[str, float]] = {}
    with (
        notices_on_errors(notices),
        ExitStack() as opened,
        RunProgress(enabled=not as_json, unit="rounds") as progress,
    ):
        for index, path in enumerate(inputs):
            progress.stage(f"opening {path.name}")
            plan, cfg, where = _plan(
                path, batch, bool(fixed), notices, overrides.get(index), device
            )
            for tactic in requested:
                name = path.name if tactic is None else f"{path.name} {tactic}"
                if name in sessions:
                    name = f"{path} {tactic or ''}".strip()
                while name in sessions:  # twice the same: how far apart do they come out?
                    name += " again"
                with where.entered():
                    session = plan.open_session(
                        threads=run.threads, streams=run.streams, tactic=tactic
                    )
                sessions[name] = opened.enter_context(session)
                if isinstance(session, FreeSession):
                    size = free_image_size(path) if is_bare_model(path) else None
                    shaped[name], assumed = free_shapes(
                        session.inputs, fixed, batch or 1, *([size] if size else [])
                    )
                    notices += [note.at(str(path)) for note in assumed]
                if cfg is not None:
                    ranges[name] = image_range(cfg)
            if cfg is not None and stages:
                if times := _stages(cfg, duration, run, where):
                    timed[path.name] = times
                else:
                    text = "no stages: it works on objects or on tensors, not on frames"
                    notices.append(Finding("no-stages", "info", text, str(path)))
        with _noise_may_be_refused(bool(shaped)):
            results = measure(
                sessions,
                items=batch,
                duration_s=duration,
                image_range=ranges,
                shapes=shaped,
                progress=lambda done, rounds, name: progress.at(done, rounds, f"timing {name}"),
            )
    print_notices(notices)
    if as_json:
        print_json({"engines": [asdict(r) for r in results], "stages_ms_per_frame": timed})
        return
    _print(results, timed)


@contextmanager
def _noise_may_be_refused(free: bool) -> Iterator[None]:
    """Add two remedies to the error of a model with inputs of any shape."""
    try:
        yield
    except EngineError as error:
        if not free:
            raise
        ways = (
            "--shapes gives inputs other lengths",
            "headrace trtexec --onnx=MODEL --loadInputs=NAME:FILE times it on values of your own: "
            "here floats are noise and whole numbers 1",
        )
        raise type(error)(error.finding, fix=ways) from error


def _plan(
    path: Path,
    batch: int | None,
    any_shape: bool,
    notices: list[Finding],
    overrides: Overrides | None,
    device: str | None,
) -> tuple[Any, ModelConfig | None, Device]:
    """The engine of a file, with its config if it is one, which has `overrides` then; its device.

    `device` None is that of a tactic.
    """
    from headrace._core.formats.tensorrt import is_tensorrt_file
    from headrace.cli.show import read_model
    from headrace.config import ModelConfig
    from headrace.engine import BuildOptions, Plan, build
    from headrace.engine.backends import gpu_runtime
    from headrace.engine.device import CPU, choose_device
    from headrace.engine.input_shapes import is_batch_of_images
    from headrace.engine.tensorrt_plan import plan_from_tensorrt
    from headrace.infer.model import load_or_build

    if is_engine(path):
        if device not in (None, "auto"):
            raise click.UsageError(f"{path} is an engine of one device; leave --device out")
        plan = plan_from_tensorrt(path) if is_tensorrt_file(path) else Plan.load(path)
        notices += plan.decisions
        return plan, None, CPU
    cfg = None if overrides is None else ModelConfig.load(path, overrides)
    where = CPU if device is None else choose_device(device, 0 if cfg is None else cfg.gpu_id)
    notices += where.notices
    with where.entered():
        if cfg is None:
            network = read_model(path)[0]
            batched = not any_shape and is_batch_of_images(network)
            options = BuildOptions(
                batched=batched,
                max_batch=batch or 1,
                runtime=gpu_runtime() if where.is_gpu else None,
            )
            plan = build(network, options)
        else:
            plan = load_or_build(cfg, device=where.kind)
            notices += cfg.notices
    notices += plan.decisions
    return plan, cfg, replace(where, notices=())


def _stages(cfg: ModelConfig, duration: float, run: RunOptions, device: Device) -> dict[str, float]:
    """Milliseconds of each stage per frame of 1920x1080 noise; nothing where it takes no frames."""
    import numpy as np

    from headrace.infer.inferencer import Inferencer
    from headrace.media import Frame, PixelFormat

    inferencer = Inferencer.open(cfg, replace(run, streams=run.streams or 1), device)
    try:
        if inferencer.secondary or cfg.input_tensor_from_meta:
            return {}
        rng = np.random.default_rng(0)
        planes = tuple(
            rng.integers(16, 235, shape, np.uint8)
            for shape in ((1080, 1920), (540, 960), (540, 960))
        )
        batch = [Frame(planes, PixelFormat.I420, 1920, 1080)] * cfg.batch_size
        inferencer.interval = 0
        for _ in range(2 + cfg.stabilize_buffer_count):
            inferencer.process(batch)
        before = asdict(inferencer.times)
        frames = 0
        until = perf_counter() + duration
        while frames == 0 or perf_counter() < until:
            inferencer.process(batch)
            frames += len(batch)
        after = asdict(inferencer.times)
    finally:
        inferencer.close()
    return {name.removesuffix("_s"): (after[name] - before[name]) * 1e3 / frames for name in after}


def _print(results: list[BenchResult], timed: dict[str, dict[str, float]]) -> None:
    from rich.table import Table

    from headrace.engine.bench import PERCENTILES

    table = Table(box=None, pad_edge=False)
    table.add_column("engine")
    heads = ["batch", "runs at once", "threads", "items/s", "min ms", "mean ms"]
    for head in [*heads, *(f"{p}% ms" for p in PERCENTILES), "max ms"]:
        table.add_column(head, justify="right")
    for r in results:
        percentiles = [f"{r.percentiles_ms[p]:.2f}" for p in PERCENTILES]
        table.add_row(
            printable(r.name), str(r.items), str(r.streams), str(r.threads or "all"),
            f"{r.items_per_s:.1f}", f"{r.min_ms:.2f}", f"{r.mean_ms:.2f}", *percentiles,
            f"{r.max_ms:.2f}",
        )  # fmt: skip
    console().print(table)
    for name, times in timed.items():
        echo()
        echo(f"{name}, ms per 1920x1080 frame, one batch at a time:")
        echo("  " + "   ".join(f"{stage} {ms:.3f}" for stage, ms in times.items()))
