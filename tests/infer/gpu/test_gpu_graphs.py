"""Runs as CUDA graphs, over fixed addresses; driver and runtime are stand-ins."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime as ort
import pytest

import headrace
from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import decoder_begins, decoder_ends
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.config import ModelConfig
from headrace.engine.backends import RunnerOptions
from headrace.engine.backends import onnxruntime_cuda as ort_cuda
from headrace.engine.tactic import Tactic, candidates
from headrace.infer.model.planning import load_or_build
from tests.infer.gpu.test_gpu_runs import Binding, Session, boxes, frames, gpu
from tests.infer.gpu.test_scaler import on_gpu
from tests.pipeline.fakes import FakeSource

__all__ = ["gpu"]
Config = Callable[..., Path]
TACTIC = "onnxruntime-cuda:threads=1,streams=1,graph=1"


class GraphBinding(Binding):
    """Reads and writes the addresses that it is told, at each run."""

    def bind_input(
        self, name: str, device: str, number: int, dtype: Any, shape: Any, address: int
    ) -> None:
        assert device == "cuda"
        memory = (ctypes.c_ubyte * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
        self.feeds[name] = np.frombuffer(memory, dtype).reshape(shape)


class GraphSession(Session):
    """Notes the graph of each run, and its thread."""

    runs: ClassVar[list[tuple[str, int]]] = []
    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, model: bytes, settings: Any, providers: Any) -> None:
        super().__init__(model, settings, providers)
        GraphSession.settings = providers[0][1]

    def io_binding(self) -> GraphBinding:
        return GraphBinding(self, self.log)

    def run_with_iobinding(self, binding: Any, run_options: Any) -> None:
        graph = run_options.get_run_config_entry("gpu_graph_id")
        GraphSession.runs.append((graph, threading.get_ident()))
        super().run_with_iobinding(binding, run_options)


class Value(CudaTensor):
    """An `OrtValue` in the GPU's memory."""

    def data_ptr(self) -> int:
        return self.pointer


@pytest.fixture
def graphs(gpu: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A GPU whose runtime has graphs; the graph and thread of each run."""
    monkeypatch.setattr(ort_cuda.ort, "InferenceSession", GraphSession)
    monkeypatch.setattr(
        ort_cuda.ort.OrtValue,
        "ortvalue_from_shape_and_type",
        lambda shape, dtype, device, number: Value(shape, np.dtype(dtype)),
        raising=False,
    )
    monkeypatch.setattr(GraphSession, "runs", [])
    return GraphSession.runs


def runner_of(config: Path) -> ort_cuda.CudaRunner:
    model = (config.parent / "mean.onnx").read_bytes()
    return ort_cuda.CudaRunner(model, RunnerOptions(graph=True))


def images(seed: int, rows: int = 2) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((rows, 3, 32, 32), np.float32)


@pytest.mark.parametrize("place", [np.asarray, CudaTensor.of])
@pytest.mark.parametrize("to_host", [True, False])
def test_each_run_gives_outputs_of_its_own(
    graphs: list[tuple[str, int]],
    mean_config: Config,
    place: Callable[..., Any],
    to_host: bool,
) -> None:
    config = mean_config()
    plain = ort.InferenceSession(config.parent / "mean.onnx", providers=["CPUExecutionProvider"])
    runner = runner_of(config)
    assert GraphSession.settings["enable_cuda_graph"] == "1"
    given = [runner.run({"image": place(images(i))}, to_host=to_host) for i in range(4)]
    for i, outputs in enumerate(given):
        expected = plain.run(None, {"image": images(i)})
        for ours, theirs in zip(outputs, expected, strict=True):
            assert isinstance(ours, np.ndarray) == to_host
            found = ours if to_host else ours._value.numpy()
            np.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-6)
    assert {graph for graph, _ in graphs} == {"1"}
    assert len(graphs) == 3 + 4  # the first ones are captured


def test_other_shapes_and_other_threads_run_without_a_graph(
    graphs: list[tuple[str, int]], mean_config: Config
) -> None:
    config = mean_config()
    plain = ort.InferenceSession(config.parent / "mean.onnx", providers=["CPUExecutionProvider"])
    runner = runner_of(config)
    runner.run({"image": images(0)})
    graphs.clear()
    found: list[Any] = []
    for _ in range(2):  # the second has the number that the first had
        thread = threading.Thread(target=lambda: found.append(runner.run({"image": images(1)})))
        thread.start()
        thread.join()
    found.append(runner.run({"image": images(2, rows=5)}))
    assert [graph for graph, _ in graphs] == ["-1"] * 3
    for outputs, x in zip(found, (images(1), images(1), images(2, rows=5)), strict=True):
        np.testing.assert_allclose(outputs[0], plain.run(None, {"image": x})[0], rtol=1e-5)
    runner.run({"image": images(3)})
    assert graphs[-1][0] == "1"


def test_a_thread_with_the_number_of_another_has_no_graph(
    graphs: list[tuple[str, int]], mean_config: Config
) -> None:
    runner = runner_of(mean_config())
    for _ in range(3):
        thread = threading.Thread(target=lambda: runner.run({"image": images(0)}))
        thread.start()
        thread.join()
    assert [graph for graph, _ in graphs] == ["1"] * 4 + ["-1"] * 2


@pytest.mark.parametrize("forgotten", [False, True])
def test_nothing_is_captured_beside_decoders(
    graphs: list[tuple[str, int]], mean_config: Config, forgotten: bool
) -> None:
    runner = runner_of(mean_config())
    video = FakeSource(1)
    decoder_begins(video)
    runner.run({"image": images(0)})
    assert [graph for graph, _ in graphs] == ["-1"]
    if not forgotten:
        decoder_ends(video)
    del video
    runner.run({"image": images(0)})
    assert graphs[-1][0] == "1"


def test_outputs_of_unknown_shape_are_refused(
    graphs: list[tuple[str, int]], mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(mean_config())
    monkeypatch.setattr(runner, "_shapes", lambda feeds: [None])
    with pytest.raises(EngineError, match="needs outputs of known shapes; 'mean' has none") as told:
        runner.run({"image": images(0)})
    assert "graph=1" in str(told.value)


def test_an_engine_of_this_tactic_gives_the_boxes_of_the_cpu(
    graphs: list[tuple[str, int]], mean_config: Config
) -> None:
    config = mean_config(batch_size=4)
    some = frames(8)
    known, _ = boxes(config, some, "cpu")
    load_or_build(ModelConfig.load(config), tactic=Tactic.parse(TACTIC))
    graphs.clear()
    assert boxes(config, [on_gpu(f) for f in some], "cuda")[0] == known
    assert {graph for graph, _ in graphs} == {"1"}


@pytest.mark.parametrize(("streams", "told"), [(1, 0), (2, 1)])
def test_more_runs_at_once_go_without_it_and_say_so(
    graphs: list[tuple[str, int]], mean_config: Config, streams: int, told: int
) -> None:
    config = mean_config(batch_size=4)
    load_or_build(ModelConfig.load(config), tactic=Tactic.parse("onnxruntime-cuda:graph=1"))
    with headrace.Inferencer.from_config(config, device="cuda", streams=streams) as model:
        assert model.session.options.graph == (streams == 1)
        assert sum("CUDA graph is not used" in str(n) for n in model.notices) == told


@pytest.mark.parametrize(("live", "warm"), [(True, 0), (False, 0), (False, 1)])
def test_graphs_are_captured_before_a_source_is_read(
    graphs: list[tuple[str, int]],
    mean_config: Config,
    monkeypatch: pytest.MonkeyPatch,
    live: bool,
    warm: int,
) -> None:
    config = mean_config(batch_size=4, warmup_engine=warm)
    load_or_build(ModelConfig.load(config), tactic=Tactic.parse(TACTIC))
    with headrace.Inferencer.from_config(config, device="cuda", streams=None) as model:
        assert model.streams == 1
        graphs.clear()
        sources = [FakeSource(6, source_id=n, live=live, delay_s=0.01) for n in range(4)]
        pipeline = headrace.Pipeline(sources, model)
        before: list[int] = []
        start = pipeline._mux.start

        def noted() -> None:
            before.append(len(graphs))
            start()

        monkeypatch.setattr(pipeline._mux, "start", noted)
        pipeline.run()
    assert before == [3 + 1]
    assert {graph for graph, _ in graphs} == {"1"}
    assert len({thread for _, thread in graphs}) == 1


def test_tactics_say_it() -> None:
    tactic = Tactic.parse(TACTIC)
    assert tactic.graph
    assert str(tactic) == TACTIC
    assert tactic.run_options().graph
    with pytest.raises(EngineError) as refused:
        Tactic.parse("onnxruntime-cuda:streams=2,graph=1")
    assert str(refused.value).splitlines() == [
        "tactic 'onnxruntime-cuda:streams=2,graph=1': graph=1 on onnxruntime-cuda with streams=2",
        "  expected onnxruntime-cuda with streams=1: a CUDA graph is one run at a time",
        "  write onnxruntime-cuda:streams=1,graph=1, or leave graph=1 out",
    ]
    for wrong in ("onnxruntime", "openvino"):
        with pytest.raises(EngineError, match=f"graph=1 on {wrong} .*\n  expected onnxr"):
            Tactic.parse(f"{wrong}:graph=1")
    for objective in ("latency", "throughput"):
        tried = candidates(["onnxruntime", "onnxruntime-cuda"], 4, objective)
        assert [t.runtime for t in tried[:2]] == ["onnxruntime", "onnxruntime-cuda"]
        graphs = [str(t) for t in tried if t.graph]
        assert graphs == ["onnxruntime-cuda:threads=4,streams=1,graph=1"]
        on_gpu = [(t.streams, t.graph) for t in tried if t.runtime == "onnxruntime-cuda"]
        if objective == "latency":  # each takes seconds: those that differ in threads are not tried
            assert on_gpu == [(1, False), (1, True)]
            assert str(tried[2]) == graphs[0]
        else:
            assert on_gpu == [(4, False), (2, False), (1, False), (1, True)]
    assert not any(t.graph for t in candidates(["onnxruntime"], 4, "latency"))


def test_a_model_that_is_opened_beside_decoders_goes_without_it_and_says_so(
    graphs: list[tuple[str, int]], mean_config: Config
) -> None:
    config = mean_config(batch_size=4)
    load_or_build(ModelConfig.load(config), tactic=Tactic.parse(TACTIC))
    decoder = threading.Event()
    graphs.clear()
    decoder_begins(decoder)
    try:
        _, notices = boxes(config, [on_gpu(f) for f in frames(4)], "cuda")
    finally:
        decoder_ends(decoder)
    assert {graph for graph, _ in graphs} == {"-1"}
    assert sum("CUDA graph is not used as long as videos are decoded" in n for n in notices) == 1
