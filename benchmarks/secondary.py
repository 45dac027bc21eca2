"""What a secondary classifier costs per object beside its engine and its pixels.

A primary model whose parser finds 1,000 boxes in each frame, an IOU tracker or none, and a
classifier of 16x16 crops, 64 at once. Scheduling is everything else that the classifier does:
choosing, batching, handing to the engine's threads, parsing, remembering, attaching. It is told
twice: by the stages' own clocks, and as the CPU time of the whole process with engine and crops
taken away. The reference is the budget of 5 us per object.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time, thread_time
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.common import Row
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.media import Frame
from headrace.pipeline.track import open_tracker

OBJECTS = 1000
BATCH = 64
FRAMES = 30
WARM_UP = 5
SIZE = (1920, 1080)
BUDGET_MS = 0.005

PARSER = f"""
import numpy as np
from headrace import Detections

rng = np.random.default_rng(1)
size = rng.uniform(2, 6, ({OBJECTS}, 2))
grid = np.stack(np.meshgrid(np.arange(40), np.arange(25)), -1).reshape(-1, 2) * (10, 12)
boxes = np.hstack((grid, size)).astype(np.float32)

def parse(layers, network, params):
    return Detections(boxes, np.ones({OBJECTS}, np.float32), np.zeros({OBJECTS}, np.int32))
"""
PRIMARY = """[property]
gie-unique-id=1
onnx-file=primary.onnx
num-detected-classes=1
cluster-mode=4
custom-lib-path=boxes.py
parse-bbox-func-name=parse
"""
SECONDARY = f"""[property]
gie-unique-id=2
process-mode=2
network-type=1
operate-on-gie-id=1
onnx-file=secondary.onnx
labelfile-path=labels.txt
classifier-threshold=0.1
batch-size={BATCH}
"""


def rows() -> Iterable[Row]:
    """Both clocks, for objects that are all inferred on and for objects that are all known."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_mean_model(folder / "primary.onnx", 320, 480)
        _write_mean_model(folder / "secondary.onnx", 16, 16)
        (folder / "boxes.py").write_text(PARSER)
        (folder / "labels.txt").write_text("red;green;blue\n")
        (folder / "primary.txt").write_text(PRIMARY)
        (folder / "secondary.txt").write_text(SECONDARY)
        for title, tracked in (("untracked, all inferred", False), ("tracked, all known", True)):
            clocks, cpu, own = _measure(folder, tracked=tracked)
            for what, spent in (("clocks", clocks), ("CPU", cpu)):
                yield Row(f"{title}, {what}, per object", spent, BUDGET_MS, BUDGET_MS / spent)
            print(f"{title}, us per object: " + ", ".join(f"{k} {v:.2f}" for k, v in own.items()))


def _measure(folder: Path, *, tracked: bool) -> tuple[float, float, dict[str, float]]:
    """(clocks, CPU) milliseconds per object, and microseconds of each stage."""
    pixels = np.random.default_rng(2).integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8)
    tracker = open_tracker("iou") if tracked else None
    clocks, cpu = [], []
    with (
        Inferencer.from_config(folder / "primary.txt") as primary,
        Inferencer.from_config(folder / "secondary.txt", threads=1) as secondary,
        _apart(secondary) as apart,
    ):
        own: dict[str, list[float]] = {"select": [], "parse": [], "attach": []}
        for number in range(WARM_UP + FRAMES):
            frame = Frame.from_array(pixels, frame=number)
            batch = Batch.of([frame], buffer=number)
            (meta,) = primary.process(batch)
            assert len(meta.objects) == OBJECTS
            if tracker is not None:
                tracker.update(frame, meta)
            inferred = secondary.inferred_items
            times, before = secondary.times, {k: getattr(secondary.times, f"{k}_s") for k in own}
            start, elsewhere = process_time(), apart()
            secondary.process(batch)
            spent = process_time() - start - (apart() - elsewhere)
            assert len(meta.objects.classifiers) == OBJECTS
            if number >= WARM_UP:
                inferred = secondary.inferred_items - inferred
                assert inferred == (0 if tracked else OBJECTS)
                cpu.append(spent)
                parts = {k: getattr(times, f"{k}_s") - v for k, v in before.items()}
                clocks.append(sum(parts.values()))
                for name, value in parts.items():
                    own[name].append(value)
    middle = statistics.median
    us = {k: middle(v) * 1e6 / OBJECTS for k, v in own.items()}
    return middle(clocks) * 1e3 / OBJECTS, middle(cpu) * 1e3 / OBJECTS, us


@contextmanager
def _apart(secondary: Inferencer) -> Iterator[Callable[[], float]]:
    """CPU seconds that engine and crops took so far; both run in the calling thread only."""
    spent = [0.0]

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            start = thread_time()
            try:
                return work(*args)
            finally:
                spent[0] += thread_time() - start

        return call

    pre = secondary.model.preprocessor
    assert pre is not None
    secondary.session.run = counted(secondary.session.run)  # type: ignore[method-assign]
    pre.fitted = counted(pre.fitted)  # type: ignore[method-assign]
    pre.write = counted(pre.write)  # type: ignore[method-assign]
    yield lambda: spent[0]


def _write_mean_model(path: Path, height: int, width: int) -> None:
    """(n, 3, height, width) -> (n, 3) channel means."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["mean"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, height, width])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "mean", [image], [mean])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
