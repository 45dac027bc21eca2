"""Tuned engines against the runtimes themselves, each as its own makers measure throughput.

Raw ONNX Runtime: the better of one session with all cores, and a session of one thread per core.
Raw OpenVINO: its throughput mode with a queue of asynchronous requests. All run in turns in one
process; the reference is the best of them. Ours is the plan that `headrace build --tune` keeps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import openvino.properties.hint as hints

from benchmarks.common import Row, data_dir
from benchmarks.networks import resnet50, yolo11n
from headrace.engine.builder import BuildOptions, build
from headrace.engine.machine import usable_cores
from headrace.engine.tuning.tune import TuneOptions
from headrace.engine.tuning.worker import measure
from headrace.network.onnx_file import network_from_onnx

WINDOW_S = 1.0
ROUNDS = 7
TUNE_S = 30.0

Run = Callable[[], float]
"""Runs for a window; items per second."""


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = {
            "ResNet-50 shape, 224": resnet50(folder / "resnet50.onnx"),
            "YOLO11n shape, 640": yolo11n(folder / "yolo11n.onnx"),
        }
        if data := data_dir():
            models["YOLOX-nano"] = data / "models" / "yolox_nano.onnx"
            models["RFB-320"] = data / "models" / "version-RFB-320.onnx"
        for title, path in models.items():
            yield _row(title, path, folder)


def _row(title: str, path: Path, folder: Path) -> Row:
    network = network_from_onnx(path)
    tuning = TuneOptions(budget_s=TUNE_S, cache=folder / "cache")
    plan = build(network, BuildOptions(tuning=tuning))
    assert plan.tactic is not None
    shape = [d if isinstance(d, int) else 1 for d in plan.inputs[0].shape]
    image = np.random.default_rng(0).random(shape, np.float32)
    # what the runtimes are given is what a careful user gives them: weights are no inputs
    model = network.to_proto()
    for axis, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        axis.dim_value = size
    with plan.open_session() as session:
        name = session.inputs[0].name
        streams = session.options.streams

        def ours() -> float:
            runs = measure(
                lambda: session.run({name: image}),
                streams=streams, window_s=WINDOW_S, at_least=3,
            )  # fmt: skip
            return sum(len(mine) / sum(mine) for mine in runs)

        runners: dict[str, Run] = {"headrace": ours, **_raw(model, name, image)}
        rates: dict[str, list[float]] = {key: [] for key in runners}
        keys = list(runners)
        for number in range(ROUNDS + 1):
            shift = number % len(keys)
            for key in keys[shift:] + keys[:shift]:
                rate = runners[key]()
                if number:  # the first round warms up
                    rates[key].append(rate)
    ms = {key: 1e3 / median(found) for key, found in rates.items()}
    best = min((key for key in ms if key != "headrace"), key=ms.__getitem__)
    others = ", ".join(f"{key} {value:.2f}" for key, value in ms.items() if key != "headrace")
    print(f"{title}: {plan.tactic.tactic}; ms per item: {others}")
    return Row(f"{title}, {plan.tactic.runtime} against raw {best}", ms["headrace"], ms[best],
               ms[best] / ms["headrace"])  # fmt: skip


def _raw(model: onnx.ModelProto, name: str, image: Any) -> dict[str, Run]:
    data = model.SerializeToString()
    cores = usable_cores()
    return {
        "onnxruntime, all cores": _onnxruntime(data, name, image, threads=cores, streams=1),
        "onnxruntime, one thread each": _onnxruntime(data, name, image, threads=1, streams=cores),
        "openvino": _openvino(data, name, image),
    }


def _onnxruntime(data: bytes, name: str, image: Any, *, threads: int, streams: int) -> Run:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def run() -> float:
        runs = measure(
            lambda: session.run(None, {name: image}),
            streams=streams, window_s=WINDOW_S, at_least=3,
        )  # fmt: skip
        return sum(len(mine) / sum(mine) for mine in runs)

    return run


def _openvino(data: bytes, name: str, image: Any) -> Run:
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(data), "CPU", {hints.performance_mode(): hints.PerformanceMode.THROUGHPUT}
    )
    queue = ov.AsyncInferQueue(compiled)

    def run() -> float:
        begun = perf_counter()
        count = 0
        while count < 3 or perf_counter() - begun < WINDOW_S:
            queue.start_async({name: image}, share_inputs=True)
            count += 1
        queue.wait_all()
        return count / (perf_counter() - begun)

    return run
