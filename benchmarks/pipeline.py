"""The whole pipeline against its floor: a raw decode loop plus a raw engine loop.

Rounds of floor and pipeline take turns on the same frames with the same thread count; reported
are medians per frame.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import av
import numpy as np
import onnxruntime

from benchmarks.common import ROOT, Row, data_dir, timed
from headrace.config import ModelConfig
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.preprocess import Preprocessor
from headrace.infer.watch import Watch
from headrace.media import Frame, open_sink, open_source
from headrace.media.draw import Painter
from headrace.meta import Detections, FrameMeta, Objects, Space
from headrace.pipeline import Pipeline

THREADS = 2
ROUNDS = 5
FRAMES = 150


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _against_floor(*setup(Path(folder)), Path(folder))
    yield from _per_object()
    yield _start_to_first_box()


def setup(folder: Path) -> tuple[ModelConfig, Path]:
    """YOLOX-nano and a video of cars, with the engine in `folder`; the demo scene without them."""
    data = data_dir()
    if data is None:
        print("no real data (HEADRACE_TEST_DATA): the demo scene is measured instead")
        scene = ROOT / "examples" / "conveyor"
        return ModelConfig.load(scene / "config_infer_primary.txt"), scene / "conveyor.mp4"
    example = ROOT / "examples" / "yolox"
    text = (example / "config_infer_primary.txt").read_text()
    lines = []
    for line in text.splitlines():
        key = line.split("=", 1)[0]
        if key == "onnx-file":
            # a copy: engines of other batch sizes are saved beside the model
            model = shutil.copy(data / "models" / "yolox_nano.onnx", folder)
            line = f"onnx-file={model}"
        elif key in ("labelfile-path", "custom-lib-path"):
            line = f"{key}={example / Path(line.split('=', 1)[1]).name}"
        elif key == "model-engine-file":
            line = f"model-engine-file={folder / 'yolox.engine'}"
        lines.append(line)
    config = folder / "config.txt"
    config.write_text("\n".join(lines))
    return ModelConfig.load(config), data / "videos" / "car-detection.mp4"


def _against_floor(cfg: ModelConfig, video: Path, folder: Path) -> Iterable[Row]:
    """The floor runs the engine as its default is and without busy waiting; the better counts."""
    sessions = {spin: _raw_session(cfg, spinning=spin) for spin in (True, False)}
    inferencer = Inferencer.from_config(cfg, threads=THREADS, streams=THREADS)

    def floor(spinning: bool) -> None:
        raw, feed = sessions[spinning]
        with av.open(str(video)) as container:
            stream = container.streams.video[0]
            stream.thread_type, stream.codec_context.thread_count = "AUTO", THREADS
            for n, _ in enumerate(container.decode(stream), 1):
                raw.run(None, feed)
                if n == FRAMES:
                    break

    def pipeline(*outs: str) -> None:
        source = open_source(str(video))
        sinks = [open_sink(o, fps=source.fps) for o in outs]
        Pipeline(source, inferencer, sinks, painter=Painter(), limit=FRAMES).run()

    lines, drawn = f"jsonl:{folder / 'out.jsonl'}", f"mp4:{folder / 'out.mp4'}"
    work: dict[str, Callable[[], object]] = {
        "floor, engine default": lambda: floor(True),
        "floor, no busy waiting": lambda: floor(False),
        "to JSON Lines": lambda: pipeline(lines),
        "to JSON Lines + drawing + H.264": lambda: pipeline(lines, drawn),
    }
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, run in work.items():
            results[name].append(timed(run))
    wall = {n: statistics.median(w for w, _ in r) * 1e3 / FRAMES for n, r in results.items()}
    cpu = {n: statistics.median(c for _, c in r) * 1e3 / FRAMES for n, r in results.items()}
    best = min((n for n in wall if n.startswith("floor")), key=lambda n: wall[n])
    for name in wall:
        if name != best:
            title = name if name.startswith("floor") else f"pipeline {name}"
            yield Row(
                f"{title}, per frame, against {best}",
                wall[name],
                wall[best],
                wall[best] / wall[name],
            )
    calm = cpu["floor, no busy waiting"]
    for name in ("to JSON Lines", "to JSON Lines + drawing + H.264"):
        yield Row(
            f"pipeline {name}, CPU per frame, against floor", cpu[name], calm, calm / cpu[name]
        )
    yield _beside_engine(inferencer, video, folder)
    yield _watched(inferencer, video)
    inferencer.close()


def _raw_session(cfg: ModelConfig, *, spinning: bool) -> tuple[Any, dict[str, Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    if not spinning:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    raw = onnxruntime.InferenceSession(str(cfg.onnx_file), options)
    spec = raw.get_inputs()[0]
    shape = [d if isinstance(d, int) else 1 for d in spec.shape]
    return raw, {spec.name: np.zeros(shape, np.float32)}


def _beside_engine(inferencer: Inferencer, video: Path, folder: Path) -> Row:
    """CPU of everything that is neither decode nor engine: scale, parse, cluster, attach, write."""
    with open_source(str(video)) as source:
        frames = [f for f, _ in zip(source, range(FRAMES), strict=False)]
    run = inferencer.session.run
    ready = iter([run(_feeds(inferencer, f)) for f in frames])
    sink = open_sink(f"jsonl:{folder / 'beside.jsonl'}")
    inferencer.session.run = lambda _: next(ready)  # type: ignore[method-assign]
    start = process_time()
    for number, frame in enumerate(frames):
        batch = Batch.of([frame], buffer=number)
        (meta,) = inferencer.process(batch)
        sink.write(frame, meta)
    spent = (process_time() - start) * 1e3 / len(frames)
    inferencer.session.run = run  # type: ignore[method-assign]
    sink.close()
    return Row("beside decode and engine, CPU per frame (budget 2 ms)", spent, 2.0, 2.0 / spent)


def _watched(inferencer: Inferencer, video: Path) -> Row:
    """CPU of the pipeline with the plausibility watch and without, in turns, over a whole video.

    Each goes first every other time; the difference is the median of those of neighbours.
    """
    model = inferencer.model
    frames = 0

    def spent(watch: Watch | None) -> float:
        nonlocal frames
        model.watch = watch
        run = Pipeline(open_source(str(video)), inferencer, [])
        _, seconds = timed(run.run)
        frames = run.report.frames
        return seconds

    more, plain = [], []
    for turn in range(2 * ROUNDS):
        watches = [Watch(model, inferencer.record), None]
        seconds = {w is None: spent(w) for w in (watches if turn % 2 else watches[::-1])}
        more.append(seconds[False] - seconds[True])
        plain.append(seconds[True])
    without = statistics.median(plain) * 1e3 / frames
    ours = without + statistics.median(more) * 1e3 / frames
    return Row("with the watch, CPU per frame, against without", ours, without, without / ours)


def _feeds(inferencer: Inferencer, frame: Frame) -> dict[str, Any]:
    pre = Preprocessor.from_config(
        inferencer.config,
        inferencer.network.width,
        inferencer.network.height,
        inferencer.network.channels,
    )
    tensor = np.empty((1, *pre.shape), np.float32)
    pre(frame, tensor[0])
    return {inferencer.session.inputs[0].name: tensor}


def _per_object() -> Iterable[Row]:
    """Python cost of attaching and reading objects; the reference column is the 2 us budget."""
    n = 1000
    boxes = np.random.default_rng(0).uniform(0, 500, (n, 4)).astype(np.float32)
    found = Detections(boxes, np.ones(n, np.float32), np.zeros(n, np.int32), space=Space.FRAME)
    samples = []
    for _ in range(50):
        objects = Objects()
        start = perf_counter()
        objects.append(found, 1, labels=["thing"])
        samples.append(perf_counter() - start)
    ours = statistics.median(samples) * 1e3 / n
    yield Row("attach, per object (budget 2 us)", ours, 0.002, 0.002 / ours)
    meta = FrameMeta("bench", 0, 0, 0, 640, 480, True, objects)
    frame = Frame.from_array(np.zeros((480, 640, 3), np.uint8))
    with tempfile.TemporaryDirectory() as folder:
        sink = open_sink(f"jsonl:{folder}/x.jsonl")
        samples = []
        for _ in range(30):
            start = perf_counter()
            sink.write(frame, meta)
            samples.append(perf_counter() - start)
        sink.close()
    ours = statistics.median(samples) * 1e3 / n
    yield Row("JSON Lines, per object (budget 2 us)", ours, 0.002, 0.002 / ours)


def _start_to_first_box() -> Row:
    """A whole `headrace run` of one frame with a saved engine, against `import onnxruntime, av`.

    Both with compiled bytecode, as installers leave it, wherever this checkout keeps none.
    """
    scene = ROOT / "examples" / "conveyor"
    run = [sys.executable, "-m", "headrace", "run", str(scene / "config_infer_primary.txt")]
    run += [str(scene / "conveyor.mp4"), "--limit", "1", "-q"]
    imports = [sys.executable, "-c", "import onnxruntime, av, numpy"]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        env.pop("PYTHONDONTWRITEBYTECODE", None)

        def seconds(command: list[str]) -> float:
            return timed(lambda: subprocess.run(command, check=True, capture_output=True, env=env))[
                0
            ]

        seconds(run), seconds(imports)  # the engine is saved, bytecode written
        pairs = [(seconds(run), seconds(imports)) for _ in range(7)]
    ours, reference = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    return Row(
        "start to first box (saved engine), against importing the runtimes",
        ours,
        reference,
        reference / ours,
    )
