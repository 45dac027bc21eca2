"""The engine and nothing else."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import headrace
from benchmarks.gpu.clips import SECONDS, clip, config, images, model, show
from headrace.config import ModelConfig
from headrace.engine.tactic import Tactic
from headrace.infer.items import FramePiece
from headrace.infer.model.planning import load_or_build


def engine() -> None:
    rows = []
    for mode, precision in ((0, "FP32"), (2, "FP16")):
        cfg = config(batch_size=32, network_mode=mode)
        with headrace.Inferencer.from_config(cfg, device="cuda", streams=3) as inferencer:
            pieces = pieces_of(inferencer, 32)
            for lanes in (1, 3):
                rows.append(
                    (f"YOLOX-nano {precision}", lanes, items_a_second(inferencer, pieces, lanes))
                )
            scaler = inferencer.model.gpu_scaler
            assert scaler is not None
            start = perf_counter()
            for _ in range(50):
                scaler(pieces, 32)
            rows.append(("scaling alone, 32 frames", 1, 1600 / (perf_counter() - start)))
    show("engine", ("model", "lanes", "items/s"), rows)


def graphs() -> None:
    """One lane, tensors on the GPU from the scaler on, outputs on the host."""
    rows = []
    for items in (1, 8, 32):
        expected: dict[str, Any] = {}
        for graph in (0, 1):
            with (
                one_lane(items, graph) as cfg,
                headrace.Inferencer.from_config(cfg, device="cuda") as inferencer,
            ):
                scaler, session = inferencer.model.gpu_scaler, inferencer.session
                assert scaler is not None
                assert session.options.graph == bool(graph)
                feeds = {inferencer.model.input_name: scaler(pieces_of(inferencer, items), items)}
                outputs = session.run(feeds)
                expected = expected or outputs
                off = max(float(np.abs(outputs[k] - v).max()) for k, v in expected.items())
                took, cpu = [], process_time()
                for _ in range(500):
                    start = perf_counter()
                    session.run(feeds)
                    took.append(perf_counter() - start)
                cpu = (process_time() - cpu) / len(took)
            rows.append((items, graph, off, statistics.median(took) * 1e3, cpu * 1e3))
    show("graphs", ("items", "graph", "largest difference", "ms a run", "CPU ms a run"), rows)


@contextmanager
def one_lane(items: int, graph: int) -> Iterator[ModelConfig]:
    """A config whose engine has one lane, in a folder of its own: none is left beside the model."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(model(), folder))
        cfg = ModelConfig.load(copy).with_overrides(batch_size=items, network_mode=2)
        tactic = Tactic.parse(f"onnxruntime-cuda:streams=1,graph={graph}")
        load_or_build(cfg, tactic=tactic, device="cuda", dynamic_batch=items > 1)
        yield cfg


def pieces_of(inferencer: headrace.Inferencer, count: int) -> list[FramePiece]:
    pre = inferencer.model.preprocessor
    assert pre is not None
    frames = list(images(clip("libx264"), count))
    placed = [pre.place(frame) for frame in frames]
    return [FramePiece(f, p.src, p.dst, whole=True) for f, p in zip(frames, placed, strict=True)]


def items_a_second(inferencer: headrace.Inferencer, pieces: list[FramePiece], lanes: int) -> float:
    """Items a second of the engine, each lane with one tensor of its own."""
    scaler, session = inferencer.model.gpu_scaler, inferencer.session
    assert scaler is not None

    def work(_: int) -> float:
        feeds = {inferencer.model.input_name: scaler(pieces, len(pieces))}
        for _ in range(5):
            session.run(feeds)
        start, count = perf_counter(), 0
        while perf_counter() - start < SECONDS / 2:
            session.run(feeds)
            count += len(pieces)
        return count / (perf_counter() - start)

    with ThreadPoolExecutor(lanes) as pool:
        return sum(pool.map(work, range(lanes)))
