"""Our own CPU time per frame: everything but decoding, scaling and the engine.

The engine gives recorded outputs and scaling is left out; all else is the real thing: frames are
chosen, outputs are parsed, clustered, filtered and attached, objects are tracked, lines written.
One table for each head, with about 20 objects a frame: microseconds of CPU of the whole process
per frame, by frames in a batch. Figures are medians over turns, in which every part runs once; the
cost of a part is the median of what a turn takes more with it than without it. The plausibility
watch looks ever more rarely: its cost is that of the first 1,000 frames of a run. A pipeline runs
ten times as many frames as the other parts: its start is no cost of a frame.

Outputs are made: noise below the threshold, and 6 candidates for each of 20 objects that move. As
those of a model that runs they lie in arrays of their own for each run, 1.2 MB (YOLOX-nano) and
2.8 MB (YOLOv8) an item: reading them is most of parsing. With OWN_COST_DEVICE=cuda they lie on the
GPU, as its engine leaves them, and the candidates are found there.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import av
import numpy as np
import onnx
from onnx import TensorProto, helper
from rich.console import Console
from rich.table import Table

from benchmarks.common import ROOT, require_device
from benchmarks.pipeline import setup
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.config import ModelConfig
from headrace.infer import runners
from headrace.infer.batch import Batch
from headrace.infer.geometry import Rect, fit
from headrace.infer.inferencer import Inferencer
from headrace.infer.items import Items
from headrace.media import Frame, open_sink, open_source
from headrace.media.sources.arrays import ArraySource
from headrace.pipeline import Pipeline
from headrace.pipeline.track import open_tracker

DEVICE = os.environ.get("OWN_COST_DEVICE", "cpu")
BATCHES = (1, 8, 32)
OBJECTS, EACH = 20, 6  # objects of a frame, and candidates of each
SCENES = 16  # different outputs, one after the other
FRAMES = 256  # of a turn
PIPELINE_FRAMES = 10 * FRAMES  # of a pipeline
TURNS = 15
_RUNS = 2  # of the engine, with arrays of their own
SIZE = (1920, 1080)

HEADS = {
    "YOLOX-nano 3549x85": ("HeadraceParseYoloX", 416, (3549, 85)),
    "YOLOv8 84x8400": ("HeadraceParseYoloV8", 640, (84, 8400)),
}
CONFIG = """[property]
gie-unique-id=1
onnx-file=model.onnx
batch-size={batch}
num-detected-classes=80
maintain-aspect-ratio=1
parse-bbox-func-name={parser}
{library}
labelfile-path={root}/examples/yolox/labels.txt
cluster-mode=2
[class-attrs-all]
pre-cluster-threshold=0.3
nms-iou-threshold=0.45
topk=300
"""
Outputs = dict[str, np.ndarray]


def report() -> None:
    """Print a table for each head, and one for parsers of users."""
    require_device(DEVICE, f"OWN_COST_DEVICE={DEVICE}")
    for title, (parser, side, shape) in HEADS.items():
        scenes = _scenes(side, shape)
        _show(title, {batch: _costs(parser, "", side, scenes, batch) for batch in BATCHES})
    if DEVICE == "cpu":
        _show("A whole run to JSON Lines", {1: _whole_run()})
    _, side, shape = next(iter(HEADS.values()))
    scenes = _scenes(side, shape)
    own = {
        "built-in": ("HeadraceParseYoloX", ""),
        "Python, examples/yolox": (
            "NvDsInferParseYoloX",
            f"custom-lib-path={ROOT}/examples/yolox/yolox_parser.py",
        ),
        "C++, examples/yolox": ("NvDsInferParseYoloX", f"custom-lib-path={_built_library()}"),
    }
    found: dict[int, dict[str, float]] = {batch: {} for batch in BATCHES}
    for name, (parser, library) in own.items():
        for batch in BATCHES:
            costs = _costs(parser, library, side, scenes, batch, only="plain")
            found[batch][f"select, parse, cluster, attach: {name}"] = costs["plain"]
    _show("Parsers of YOLOX-nano", found)


def _whole_run() -> dict[str, float]:
    """A run of YOLOX-nano on a video, frame by frame, against a bare loop that decodes it.

    Each has an engine that takes no time: its outputs were recorded. So the difference is all that
    a run costs beside decoding and the engine, scaling and hand-overs among threads included. The
    example's parser is in Python; another run has the built-in one.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        cfg, video = setup(Path(name))

        def bare() -> int:
            with av.open(str(video)) as container:
                stream = container.streams.video[0]
                stream.thread_type = "AUTO"
                return sum(1 for _ in container.decode(stream))

        work = {"bare decoding": bare, "a whole run": _run_of(cfg, video, stack)}
        if cfg.parse_bbox_func_name == "NvDsInferParseYoloX":
            builtin = cfg.with_overrides(
                parse_bbox_func_name="HeadraceParseYoloX", custom_lib_path=None
            )
            work["a whole run, built-in parser"] = _run_of(builtin, video, stack)
        spent: dict[str, list[float]] = {title: [] for title in work}
        for _ in range(TURNS):
            for title, do in work.items():
                start = process_time()
                frames = do()
                spent[title].append((process_time() - start) / frames * 1e6)
    costs = {title: statistics.median(times) for title, times in spent.items()}
    decoding, *runs = spent.items()
    for title, times in runs:
        own = statistics.median(a - b for a, b in zip(times, decoding[1], strict=True))
        costs[f"  own cost of {title}"] = own
    return costs


def _run_of(cfg: ModelConfig, video: Path, stack: ExitStack) -> Callable[[], int]:
    """A run to JSON Lines whose engine gives recorded outputs; returns its number of frames."""
    inferencer = stack.enter_context(Inferencer.from_config(cfg, threads=1))
    session, recorded = inferencer.session, []
    run = session.run
    with patch.object(
        session, "run", lambda *a, **k: recorded.append(run(*a, **k)) or recorded[-1]
    ):
        Pipeline(open_source(str(video)), inferencer, [], limit=SCENES).run()
    outputs = cycle(recorded)
    stack.enter_context(patch.object(session, "run", lambda *a, **k: next(outputs)))
    lines = f"jsonl:{cfg.path.parent / 'out.jsonl'}"
    return lambda: Pipeline(open_source(str(video)), inferencer, [open_sink(lines)]).run().frames


def _built_library() -> Path:
    """The C++ parser of the example, compiled once."""
    from headrace.custom.compile.build_library import compile_library

    folder = Path(tempfile.gettempdir()) / "headrace-own-cost"
    folder.mkdir(exist_ok=True)
    target = folder / "libyolox.so"
    if not target.exists():
        compile_library([ROOT / "examples" / "yolox" / "nvdsparsebbox_yolox.cpp"], target)
    return target


def _show(title: str, costs: dict[int, dict[str, float]]) -> None:
    table = Table(title=f"{title}: µs of CPU per frame", title_justify="left")
    table.add_column("what")
    for batch in costs:
        table.add_column(f"batch {batch}", justify="right")
    for name in next(iter(costs.values())):
        table.add_row(name, *(f"{column[name]:.1f}" for column in costs.values()))
    Console().print(table)


def _costs(
    parser: str, library: str, side: int, scenes: Sequence[np.ndarray], batch: int, only: str = ""
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_model(folder / "model.onnx", side, scenes[0].shape)
        text = CONFIG.format(batch=batch, parser=parser, library=library, root=ROOT)
        (folder / "config.txt").write_text(text)
        with (
            Inferencer.from_config(folder / "config.txt", threads=1, device=DEVICE) as inferencer,
            _without_engine(inferencer, side, scenes, batch),
        ):
            return _measured(inferencer, batch, folder, only)


def _measured(inferencer: Inferencer, batch: int, folder: Path, only: str) -> dict[str, float]:
    image = Frame.from_array(np.zeros((SIZE[1], SIZE[0], 3), np.uint8))
    frames = [
        Frame(image.planes, image.format, *SIZE, pts_ns=n * 40_000_000, frame=n)
        for n in range(PIPELINE_FRAMES)
    ]
    model = inferencer.model
    watch, post = model.watch, model.postprocessor
    numbers = iter(range(1 << 30))
    objects = 0

    def run(*, watched: bool = False, tracked: bool = False, written: bool = False) -> None:
        nonlocal objects
        model.watch = watch if watched else None
        tracker = open_tracker("iou") if tracked else None
        sink = open_sink(f"jsonl:{folder / 'out.jsonl'}") if written else None
        for start in range(0, FRAMES, batch):
            some = Batch.of(frames[start : start + batch], buffer=next(numbers))
            inferencer.process(some)
            if tracker is not None:
                for frame, meta in some:
                    tracker.update(frame, meta)
            if sink is not None:
                sink.write_batch(some.frames, some.metas)
        objects = sum(len(meta.objects) for meta in some.metas) // len(some)
        if sink is not None:
            sink.close()

    def nothing() -> None:
        for start in range(0, FRAMES, batch):
            some = Batch.of(frames[start : start + batch])
            for _ in some:
                pass

    def pipeline() -> None:
        model.watch = watch
        sink = open_sink(f"jsonl:{folder / 'out.jsonl'}")
        Pipeline(ArraySource(frames), [inferencer, open_tracker("iou")], [sink]).run()

    def untallied() -> None:
        with patch.object(post._tally, "visible", False):
            run()

    work: dict[str, Callable[[], None]] = {"plain": run}
    if not only:
        work |= {
            "nothing": nothing,
            "untallied": untallied,
            "track": lambda: run(tracked=True),
            "lines": lambda: run(written=True),
            "all": lambda: run(watched=True, tracked=True, written=True),
            "pipeline": pipeline,
        }
    looks = _watch_cost(model, run)
    spent: dict[str, list[float]] = {name: [] for name in work}
    times = inferencer.times
    steps = {name: [] for name in ("parse_s", "cluster_s", "attach_s", "select_s")}
    for _ in range(TURNS):
        for name, do in work.items():
            before = {key: getattr(times, key) for key in steps}
            start = process_time()
            do()
            count = PIPELINE_FRAMES if name == "pipeline" else FRAMES
            spent[name].append((process_time() - start) / count * 1e6)
            if name == "plain":
                for key, found in steps.items():
                    found.append((getattr(times, key) - before[key]) / FRAMES * 1e6)

    def more(name: str, than: str = "plain") -> float:
        pairs = zip(spent[name], spent[than], strict=True)
        return statistics.median(a - b for a, b in pairs)

    least = {name: statistics.median(found) for name, found in spent.items()}
    if only:
        return {only: least[only]}
    return {
        "objects of a frame": objects,
        **{f"  {k.removesuffix('_s')} (own clock)": statistics.median(v) for k, v in steps.items()},
        "select, parse, cluster, attach, record": least["plain"],
        "  of these, scores below the thresholds": -more("untallied"),
        "  of these, making the batch": least["nothing"],
        "+ plausibility watch (own clock)": looks,
        "+ tracker iou": more("track"),
        "+ JSON Lines": more("lines"),
        "all of them": least["all"],
        "all of them, in a pipeline with its threads": least["pipeline"],
    }


def _watch_cost(model: Any, run: Callable[..., None]) -> float:
    """Microseconds per frame that the watch takes in the first 1,000 frames."""
    watch, spent = model.watch, 0.0

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal spent
            start = perf_counter()
            found = method(*args)
            spent += perf_counter() - start
            return found

        return call

    with ExitStack() as stack:
        for name in ("due", "look", "boxes", "after_run"):
            stack.enter_context(patch.object(watch, name, timed(getattr(watch, name))))
        for _ in range(1000 // FRAMES + 1):
            run(watched=True)
    return spent / ((1000 // FRAMES + 1) * FRAMES) * 1e6


@contextmanager
def _without_engine(
    inferencer: Inferencer, side: int, scenes: Sequence[np.ndarray], batch: int
) -> Iterator[None]:
    """Meanwhile the engine gives recorded outputs, and nothing is scaled."""
    recorded = [
        np.stack([scenes[(start + i) % len(scenes)] for i in range(batch)])
        for start in range(0, _RUNS * batch, batch)
    ]
    on_gpu = inferencer.model.gpu_scaler is not None
    ready = cycle([(array, CudaTensor.of(array) if on_gpu else array) for array in recorded])
    transform = fit(Rect(0, 0, *SIZE), side, side, maintain_aspect_ratio=True)
    zeros = np.zeros((batch, 3, side, side), np.float32)
    tensor = CudaTensor.of(zeros) if on_gpu else zeros

    def scale(items: Items, *_: Any) -> Any:
        items.transforms = [transform] * len(items)
        return [] if on_gpu else (zeros[: len(items)], [])

    def run(inputs: Outputs, *, to_host: bool = True) -> Any:
        array, there = next(ready)
        count = next(iter(inputs.values())).shape[0]
        return {"output": array[:count] if to_host else there}

    with (
        patch.object(runners, "pieces_of" if on_gpu else "scale", scale),
        patch.object(inferencer.model.runner, "_scaler", lambda *_: tensor, create=not on_gpu),
        patch.object(inferencer.session, "run", run),
    ):
        yield


def _write_model(path: Path, side: int, shape: tuple[int, ...]) -> None:
    """A model of this output, which nobody runs more than once."""
    zeros = np.zeros((1, *shape), np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["input"], ["mean"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Squeeze", ["mean", "axis"], ["each"]),
        helper.make_node("Mul", ["each", "zeros"], ["output"]),
    ]
    initial = [
        helper.make_tensor("zeros", TensorProto.FLOAT, zeros.shape, zeros.tobytes(), raw=True),
        helper.make_tensor("axis", TensorProto.INT64, [1], [3]),
    ]
    given = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, side, side])
    found = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", *shape])
    graph = helper.make_graph(nodes, "recorded", [given], [found], initial)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def _scenes(side: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Outputs of `SCENES` images in a row, in which 20 objects move."""
    rng = np.random.default_rng(0)
    columns = shape[0] == 84  # YOLOv8: class scores without objectness, channel by channel
    count = max(shape)
    centre = rng.uniform(0.1, 0.9, (OBJECTS, 2)) * side
    size = rng.uniform(0.05, 0.2, (OBJECTS, 2)) * side
    step = rng.normal(0, 2, (OBJECTS, 2))
    classes = rng.integers(0, 80, OBJECTS)
    rows_of = rng.choice(count, OBJECTS * EACH, replace=False).reshape(OBJECTS, EACH)
    scenes = []
    for number in range(SCENES):
        swing = number if number < SCENES // 2 else SCENES - number  # and back again
        place = np.repeat(centre * (1, 9 / 16) + step * swing, EACH, axis=0) + rng.normal(
            0, 1, (120, 2)
        )
        boxes = np.concatenate([place, np.repeat(size, EACH, axis=0)], axis=1)
        table = rng.uniform(0, 0.05, (count, shape[0] + shape[1] - count)).astype(np.float32)
        rows = rows_of.ravel()
        if columns:
            table[rows, :4] = boxes
        else:
            table[rows, :4] = _encoded(boxes, rows, side)
            table[rows, 4] = 1
        first = 4 if columns else 5
        table[rows, first + np.repeat(classes, EACH)] = rng.uniform(0.5, 0.9, OBJECTS * EACH)
        scenes.append(np.ascontiguousarray(table.T) if columns else table)
    return scenes


def _encoded(boxes: np.ndarray, rows: np.ndarray, side: int) -> np.ndarray:
    """Centre boxes as a YOLOX grid gives them."""
    cells, strides = [], []
    for stride in (8, 16, 32):
        y, x = np.mgrid[: side // stride, : side // stride]
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        strides.append(np.full(x.size, stride))
    cell, stride = np.concatenate(cells)[rows], np.concatenate(strides)[rows, None]
    return np.concatenate([boxes[:, :2] / stride - cell, np.log(boxes[:, 2:] / stride)], axis=1)
