"""INT8: what it costs in accuracy and gives in speed, by runtime, with the configs of the examples.

Calibrated here by percentile. The demo detector is judged by the truth of its scene, YOLOX-nano by
what FP32 finds on 5 pictures and on 50 frames of a video that it was not calibrated on.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import ROOT, data_dir
from noria.config import ModelConfig
from noria.config.enums import NetworkMode
from noria.diagnose.average_precision import average_precision
from noria.diagnose.box_matching import Scored, agreement
from noria.diagnose.truth import read_truth, scored
from noria.engine.backends import installed_backends
from noria.engine.machine import this_machine
from noria.engine.plan import Plan
from noria.engine.plan_header import Precision
from noria.infer.calibration import calibrate, selected_frames
from noria.media import open_source
from noria.media.frame import Frame
from noria.model import load_or_build

PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
_ROUNDS = 15


def report() -> None:
    """Print both tables."""
    accuracy = Table(title="int8: accuracy", title_justify="left")
    speed = Table(title=f"int8: ms of one run, {this_machine()}", title_justify="left")
    for heading in ("model", "runtime", "measure", "fp32", "int8"):
        accuracy.add_column(heading)
    for heading in ("model", "runtime", *PRECISIONS, "fp32 / int8"):
        speed.add_column(heading)
    runtimes = [r for r in installed_backends() if r in ("onnxruntime", "openvino")]
    with tempfile.TemporaryDirectory() as folder:
        for name, cfg, frames, judge in _models(Path(folder)):
            made = {(r, p): _plan(cfg, r, p) for r in runtimes for p in PRECISIONS}
            reference = scored(cfg, made["onnxruntime", "fp32"].open_session(), frames)
            for runtime in runtimes:
                found = (
                    scored(cfg, made[runtime, p].open_session(), frames) for p in ("fp32", "int8")
                )
                quality = [f"{judge(reference, one):.2f}" for one in found]
                accuracy.add_row(name, runtime, judge.__doc__, *quality)
            for runtime, times in _times(made, runtimes).items():
                ratio = f"{times['fp32'] / times['int8']:.2f} x"
                speed.add_row(name, runtime, *(f"{t:.2f}" for t in times.values()), ratio)
    Console().print(accuracy, speed)


Judge = Callable[[list[Scored], list[Scored]], float]


def _models(folder: Path) -> Iterator[tuple[str, ModelConfig, list[Frame], Judge]]:
    demo = folder / "demo"
    shutil.copytree(ROOT / "examples" / "conveyor", demo)
    clip = str(demo / "conveyor.mp4")
    cfg = _calibrated(demo, [clip], 20, ())
    chosen, truths, _ = read_truth(demo / "truth.json", [clip], cfg, 100)

    def points(reference: list[Scored], found: list[Scored]) -> float:
        """mAP50-95"""
        return 100 * average_precision(truths, found)

    yield "demo detector", cfg, list(selected_frames(chosen)), points
    data = data_dir()
    if data is None:
        return
    yolox = folder / "yolox"
    shutil.copytree(ROOT / "examples" / "yolox", yolox)
    shutil.copy(data / "models" / "yolox_nano.onnx", yolox)
    pictures, video = str(data / "images"), str(data / "videos" / "car-detection.mp4")
    kept = sensitive_layers(yolox / "yolox_nano.onnx")
    cfg = _calibrated(yolox, [pictures, video], 25, kept)
    frames = [*open_source(pictures)]
    frames += [f for i, f in enumerate(open_source(video)) if i % 7 == 5][:50]

    def matched(reference: list[Scored], found: list[Scored]) -> float:
        """% of FP32's boxes >= 0.5 at IoU 0.8"""
        return 100 * agreement(reference, found)

    yield "YOLOX-nano", cfg, frames, matched


def sensitive_layers(model: Path) -> list[str]:
    """Depthwise convolutions, which have few products and wide ranges, and the worst other layer
    that `noria calibrate --sensitivity` finds in YOLOX-nano."""
    import onnx

    convolutions = [n for n in onnx.load(model).graph.node if n.op_type == "Conv"]
    depthwise = [n.name for n in convolutions for a in n.attribute if a.name == "group" and a.i > 1]
    return sorted({*depthwise, "Conv_44", "Conv_47"})


def _calibrated(folder: Path, sources: list[str], frames: int, kept: Sequence[str]) -> ModelConfig:
    cfg = ModelConfig.load(folder / "config_infer_primary.txt")
    table = folder / "table.calib"
    calibrate(cfg, sources, frames=frames, method="percentile", cache=table)
    return cfg.with_overrides(
        int8_calib_file=table,
        batch_size=1,
        layer_device_precision=tuple(f"{name}:fp32:gpu" for name in kept),
    )


def _plan(cfg: ModelConfig, runtime: str, precision: Precision) -> Plan:
    if precision != "int8":
        cfg = cfg.with_overrides(layer_device_precision=())
    cfg = cfg.with_overrides(network_mode=NetworkMode.FP32, model_engine_file=None)
    return load_or_build(cfg, backend=runtime, precision=precision, rebuild=True)


def _times(
    plans: dict[tuple[str, Precision], Plan], runtimes: list[str]
) -> dict[str, dict[str, float]]:
    """Median milliseconds of runs in turns, by runtime and precision."""
    sessions = {key: plan.open_session() for key, plan in plans.items()}
    taken: dict[tuple[str, Precision], list[float]] = {key: [] for key in plans}
    spec = next(iter(sessions.values())).inputs[0]
    axes = [d if isinstance(d, int) else 1 for d in spec.shape]
    feeds = {spec.name: np.random.default_rng(0).random(axes, np.float32)}
    for _ in range(_ROUNDS):
        for key, session in sessions.items():
            session.run(feeds)  # caches are those of the one before
            start = perf_counter()
            session.run(feeds)
            taken[key].append((perf_counter() - start) * 1e3)
    for session in sessions.values():
        session.close()
    return {r: {p: statistics.median(taken[r, p]) for p in PRECISIONS} for r in runtimes}
