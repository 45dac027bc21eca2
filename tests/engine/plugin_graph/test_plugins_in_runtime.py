"""Graphs with plugins, called back by the runtime or split: results, calls and errors are alike."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from headrace._core import _native
from headrace.engine.backends import RunnerOptions, get_backend
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plugin_graph.opening import (
    load_plugins,
    must_split,
    open_plugin_graph,
    split_at,
)
from headrace.engine.plugin_graph.plugins_in_runtime import (
    CallbackRunner,
    PluginCallbacks,
    element_types,
)
from headrace.engine.plugin_graph.split_runner import SplitRunner
from headrace.errors import EngineError, PluginError
from headrace.plugins import DataType, DimsExprs, Tracer, array_at
from tests.engine.plugin_graph.test_split import Base, InPlace, Nonzero, ToShape, built
from tests.plugins.models import FLOAT, conv_plugin_conv, model, network, registry
from tests.plugins.samples import Fault, Watched
from tests.profiles import slow

pytestmark = pytest.mark.usefixtures("watched_anew")
CALLS_BACK = {"onnxruntime": True, "openvino": False}
RUNTIMES = list(CALLS_BACK)
RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 3, 8, 8)).astype(np.float32)
info, node = helper.make_tensor_value_info, helper.make_node


def opened(plan: Any, runtime: str, *, pieces: bool = False, **options: Any) -> Any:
    """A runner of a plan as the runtime has it, or split in any case."""
    records = plan.header.plugins
    plugins = load_plugins(records, plan.blobs, plan.registry, "here")
    options = {"threads": 1, "max_batch": 4, **options}
    runner = open_plugin_graph(
        get_backend(runtime), plan.blobs["model"], RunnerOptions(**options), records, plugins,
        pieces=pieces,
    )  # fmt: skip
    calls_back = CALLS_BACK[runtime] and not pieces
    assert isinstance(runner, CallbackRunner if calls_back else SplitRunner)
    return runner


def same(plan: Any, runtime: str, feeds: Any, **options: Any) -> list[Any]:
    """Outputs of a runtime, after they were found to be those of ONNX Runtime's pieces."""
    with (
        closing(opened(plan, runtime, **options)) as whole,
        closing(opened(plan, "onnxruntime", pieces=True, **options)) as pieces,
    ):
        assert [s.name for s in whole.inputs] == [s.name for s in pieces.inputs]
        assert [s.name for s in whole.outputs] == [s.name for s in pieces.outputs]
        for _ in range(2):
            got, want = whole.run(feeds), pieces.run(feeds)
            for a, b in zip(got, want, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    return list(got)


def nothing_left(*plans: Any) -> None:
    """What plans keep ready for their first session apart."""
    for plan in plans:
        plan.open_session().close()
    assert Watched.made == Watched.destroyed
    assert Watched.twice == 0


def branches(batch: Any = "N") -> Any:
    """Convolutions, five plugins beside and behind each other, tensors that pass by them."""
    shape = [batch, 4, 8, 8]
    weights = {
        "w1": RNG.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "w2": RNG.standard_normal((4, 8, 3, 3)).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["r"]),
        node("ScaleV3", ["r"], ["s1"], name="late", factor=2.0),
        node("ScaleDynamic", ["a"], ["s2"], name="early", factor=3.0),
        node("ScaleDynamic", ["a"], ["s3"], name="twin", factor=3.0),
        node("Concat", ["s1", "r"], ["c"], axis=1),
        node("Conv", ["c", "w2"], ["d"], pads=[1] * 4),
        node("ScaleV2Ext", ["d"], ["s4"], name="behind", factor=0.5),
        node("Sum", ["s4", "s2", "s3", "r"], ["e"]),
        node("ScaleV3", ["e"], ["s5"], name="last", factor=-1.0),
        node("Relu", ["s5"], ["y"]),
    ]
    outputs = [info("y", FLOAT, shape), info("s2", FLOAT, shape), info("r", FLOAT, shape)]
    return model(nodes, [info("x", FLOAT, [batch, 3, 8, 8])], outputs, weights)


def plan_of(made: Any, folder: Path, **options: Any) -> Any:
    known = registry()
    plan = build(network(made, folder), BuildOptions(registry=known, **options))
    plan.registry = known
    return plan


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("optimization", ["none", "all"])
@pytest.mark.sampled
def test_every_batch_gives_what_the_pieces_give(
    tmp_path: Path, runtime: str, optimization: Any
) -> None:
    plan = plan_of(branches(), tmp_path, max_batch=4, runtime=runtime)
    for most in (4, None):
        for size in (4, 1, 3):
            same(plan, runtime, {"x": X[:size]}, max_batch=most, optimization=optimization)
    fixed = plan_of(branches(2), tmp_path, max_batch=2, runtime=runtime)
    same(fixed, runtime, {"x": X[:2]})
    same(fixed, runtime, {"x": X[:2]}, batched=False)
    nothing_left(plan, fixed)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_plugins_are_called_as_the_cut_calls_them(tmp_path: Path, runtime: str) -> None:
    plan = plan_of(branches(), tmp_path, max_batch=4, runtime=runtime)
    seen = []
    for pieces in (False, True):
        with Tracer() as tracer:
            runner = opened(plan, runtime, pieces=pieces)
            for size in (4, 4, 2):
                runner.run({"x": X[:size]})
            runner.close()
        seen.append([(c.phase, c.layer, c.cls, c.method, c.error) for c in tracer.calls])
    assert seen[0] == seen[1]
    assert {layer for _, layer, *_ in seen[0]} == {"late", "early", "twin", "behind", "last"}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_sessions_choose_it_where_a_cut_would_make_two_pieces(tmp_path: Path, runtime: str) -> None:
    middle = plan_of(conv_plugin_conv()[0], tmp_path, runtime=runtime)
    with middle.open_session() as session:
        kind = CallbackRunner if CALLS_BACK[runtime] else SplitRunner
        assert isinstance(session.runner, kind)
    shape = ["N", 3, 8, 8]
    last = [node("Relu", ["x"], ["a"]), node("ScaleV3", ["a"], ["y"])]
    made = model(last, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    with plan_of(made, tmp_path, runtime=runtime).open_session() as session:
        assert isinstance(session.runner, SplitRunner)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_a_plugin_raises_arrives_as_it_is(
    tmp_path: Path, runtime: str, error: type[BaseException], monkeypatch: Any
) -> None:
    from tests.plugins.samples import ScaleDynamic

    plan = plan_of(conv_plugin_conv()[0], tmp_path, runtime=runtime)
    found: list[BaseException] = []
    for pieces in (False, True):
        runner = opened(plan, runtime, pieces=pieces)
        good = runner.run({"x": X[:1]})[0]
        with monkeypatch.context() as patch:
            patch.setattr(ScaleDynamic, "enqueue", _raising(error))
            with pytest.raises(BaseException, match="no luck") as caught:
                runner.run({"x": X[:1]})
        found.append(caught.value)
        np.testing.assert_array_equal(runner.run({"x": X[:1]})[0], good)  # it lives on
        runner.close()
    assert type(found[0]) is type(found[1])
    assert str(found[0]) == str(found[1])
    if error is RuntimeError:
        assert isinstance(found[0], PluginError)
        assert isinstance(found[0].__cause__, RuntimeError)
    nothing_left(plan)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_failed_run_spoils_no_later_session(
    tmp_path: Path, runtime: str, monkeypatch: Any
) -> None:
    """OpenVINO crashed in the sessions after one in which an operator had thrown."""

    class Fails(Slow):
        fails = False

        def enqueue(self, *args: Any) -> None:
            if Fails.fails:
                raise RuntimeError("no luck")
            super().enqueue(*args)

    plan = built(Fails, middle(), tmp_path, max_batch=4, runtime=runtime)
    for turn in range(6):
        Fails.fails = turn % 2 == 0
        with closing(opened(plan, runtime)) as runner:
            if not Fails.fails:
                np.testing.assert_allclose(runner.run({"x": X[:2]})[0], -(1 - X[:2]) - X[:2])
                continue
            with pytest.raises(PluginError, match="no luck"):
                runner.run({"x": X[:2]})


def _raising(error: type[BaseException]) -> Any:
    def enqueue(*_: Any) -> None:
        raise error("no luck")

    return enqueue


def test_what_cannot_be_attached_fails_before_the_first_run(tmp_path: Path) -> None:
    plan = plan_of(conv_plugin_conv()[0], tmp_path)
    Watched.fault = Fault("attach_to_context", RuntimeError("no room"))
    with pytest.raises(PluginError, match="attach_to_context raised RuntimeError: no room"):
        opened(plan, "onnxruntime")
    Watched.fault = None
    del plan
    gc.collect()
    assert Watched.made == Watched.destroyed


class Slow(Base):
    """y = x + 1, in two steps with others let in between; notices a context used twice at once."""

    mixed = False

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        if getattr(self, "busy", False):
            type(self).mixed = True
        self.busy = True
        threading.Event().wait(0.002)
        x = array_at(inputs[0], ins[0].dims, np.float32)
        array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = x + 1
        self.busy = False


def middle(kind: int = FLOAT, out: Any = ("N", 3, 8, 8), **attributes: Any) -> Any:
    """y = P(-x) + -x."""
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("P", ["n"], ["p"], **attributes),
        node("Neg", ["p"], ["q"]),
        node("Add", ["q", "n"], ["y"]),
    ]
    return model(nodes, [info("x", kind, ["N", 3, 8, 8])], [info("y", kind, out)])


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("threads", [slow(1), 2])
def test_runs_at_once_do_not_mix(tmp_path: Path, runtime: str, threads: int) -> None:
    Slow.mixed = False
    plan = built(Slow, middle(), tmp_path, max_batch=4, runtime=runtime)
    runners = [opened(plan, runtime, threads=threads, streams=2) for _ in range(2)]
    with ThreadPoolExecutor(6) as pool:
        feeds = [{"x": X[i % 4 : i % 4 + 1] * (i + 1)} for i in range(48)]
        jobs = [pool.submit(runners[i % 2].run, f) for i, f in enumerate(feeds)]
        for job, each in zip(jobs, feeds, strict=True):
            np.testing.assert_allclose(job.result()[0], -(1 - each["x"]) - each["x"], atol=1e-4)
    for runner in runners:
        runner.close()
        with pytest.raises(EngineError, match="the session is closed"):
            runner.run(feeds[0])
    assert not Slow.mixed


def test_closing_waits_for_runs_under_way(tmp_path: Path) -> None:
    plan = built(Slow, middle(), tmp_path)
    runner = opened(plan, "onnxruntime")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(runner.run, {"x": X[:1]})
        threading.Event().wait(0.001)
        runner.close()
    if job.exception() is None:  # it began before
        assert job.result()[0].shape == (1, 3, 8, 8)
    else:
        assert "closed" in str(job.exception())


class InHalf(Base):
    types = (DataType.HALF,)


class Pair(Base):
    """(x, 2 x); the first may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.num_outputs = 2

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0]] * 2

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, make: Any) -> Any:
        return [inputs[0], DimsExprs(list(inputs[0]))]

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        x = array_at(inputs[0], ins[0].dims, np.float32)
        for factor, (desc, at) in enumerate(zip(outs, outputs, strict=True), start=1):
            array_at(at, desc.dims, np.float32, writable=True)[...] = factor * x


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("cls", [InPlace, InHalf])
def test_plugins_with_wishes(tmp_path: Path, runtime: str, cls: Any) -> None:
    plan = built(cls, middle(), tmp_path, max_batch=4, runtime=runtime)
    x = np.round(X * 8) / 8
    (y,) = same(plan, runtime, {"x": x})
    np.testing.assert_array_equal(y, x if cls is InPlace else np.zeros_like(x))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("names", [["p", "q"], ["", "q"]])
def test_outputs_may_be_left_out(tmp_path: Path, runtime: str, names: list[str]) -> None:
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("P", ["n"], names),
        node("Add", [names[0] or "n", "q"], ["y"]),
    ]
    shape = ["N", 3, 8, 8]
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    plan = built(Pair, made, tmp_path, max_batch=4, runtime=runtime)
    (y,) = same(plan, runtime, {"x": X})
    np.testing.assert_allclose(y, -3 * X, rtol=1e-6)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (1,), ()])
def test_weights_are_inputs_like_others(
    tmp_path: Path, runtime: str, shape: tuple[int, ...]
) -> None:
    seen = set()

    class Adds(Base):
        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
            seen.add(tuple(ins[1].dims))
            a, b = (array_at(p, d.dims, np.float32) for p, d in zip(inputs, ins, strict=True))
            array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = a + b

    nodes = [node("Neg", ["x"], ["n"]), node("P", ["n", "w"], ["p"]), node("Neg", ["p"], ["y"])]
    images = ["N", 3, 8, 8]
    weights = {"w": np.full(shape, 3, np.float32)}
    made = model(nodes, [info("x", FLOAT, images)], [info("y", FLOAT, images)], weights)
    (y,) = same(built(Adds, made, tmp_path, max_batch=4, runtime=runtime), runtime, {"x": X})
    np.testing.assert_allclose(y, X - 3, rtol=1e-5)
    assert seen == {shape}


def _decided(cls: Any) -> tuple[Any, Any]:
    """A plugin whose shapes depend on data, between two nodes."""
    if cls is Nonzero:
        nodes = [node("Neg", ["x"], ["n"]), node("P", ["n"], ["p", "count"])]
        weights: dict[str, Any] = {}
    else:
        mark = {"tensorrt_plugin_shape_input_indices": [-1]}
        nodes = [node("Shape", ["x"], ["all"]), node("Gather", ["all", "at"], ["s"]),
                 node("Neg", ["x"], ["n"]), node("P", ["n", "s"], ["p"], **mark)]  # fmt: skip
        weights = {"at": np.array([0, 2, 3], np.int64)}
    nodes.append(node("Add", ["p", "p"], ["y"]))
    shape = [1, 3, 4, 4]
    return model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, None)], weights), X[
        :1, :, :4, :4
    ]


@pytest.mark.parametrize("cls", [Nonzero, ToShape])
def test_onnxruntime_takes_shapes_that_depend_on_data(tmp_path: Path, cls: Any) -> None:
    made, x = _decided(cls)
    plan = built(cls, made, tmp_path)
    (y,) = same(plan, "onnxruntime", {"x": np.ascontiguousarray(x)}, batched=False)
    if cls is Nonzero:
        assert y.shape == (1, (x < 0).sum())


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64])
def test_onnxruntime_takes_all_types(tmp_path: Path, kind: int) -> None:
    class Typed(Base):
        types = (DataType.of(helper.tensor_dtype_to_np_dtype(kind)),)

    plan = built(Typed, middle(kind), tmp_path, max_batch=4)
    x = np.round(X * 8).astype(helper.tensor_dtype_to_np_dtype(kind))
    same(plan, "onnxruntime", {"x": x})


@pytest.mark.parametrize("cls", [Nonzero, ToShape, Base])
def test_openvino_gets_pieces_of_every_graph(tmp_path: Path, cls: Any) -> None:
    made, x = _decided(cls) if cls is not Base else (middle(TensorProto.FLOAT16), X[:1])
    kinds = {"types": (DataType.HALF,)} if cls is Base else {}
    plan = built(type(cls.__name__, (cls,), kinds), made, tmp_path, runtime="openvino")
    assert not any("split at its plugins" in n.sentence for n in plan.decisions)
    with plan.open_session() as session:
        assert isinstance(session.runner, SplitRunner)
        session.run({"x": np.ascontiguousarray(x)})


class _Calls:
    """A runtime that calls plugins back, of one type only."""

    def open(self, *_: Any) -> Any:
        raise AssertionError("the decision opens nothing")

    name = version = why_not = open_with_callbacks = open

    def callback_types(self) -> frozenset[int]:
        return frozenset([FLOAT])

    def why_no_callbacks(self) -> str | None:
        return None


@pytest.mark.parametrize(
    ("change", "must", "reason"),
    [
        ({}, False, None),
        ({"p": TensorProto.BFLOAT16}, True, "plugin 'node_of_p' takes or gives an unusual type"),
        ({"n": 0}, True, "a value at plugin 'node_of_p' is of unknown type"),
        ({"headrace.run.3": FLOAT}, True, "a value of the graph is called 'headrace.run.3'"),
    ],
)
def test_one_decision_before_anything_is_split(
    tmp_path: Path, change: dict[str, int], must: bool, reason: str | None
) -> None:
    plan = built(Base, middle(), tmp_path, max_batch=4)
    records = plan.header.plugins
    split = split_at(plan.blobs["model"], records)
    types = element_types(split.proto) | change
    backend: Any = _Calls()
    assert must_split(backend, split, types, records, []) == (must, reason)


def test_a_runtime_that_takes_no_operators_gets_pieces(tmp_path: Path, monkeypatch: Any) -> None:
    def refuses(*_: Any) -> None:
        raise RuntimeError("built without operators from outside")

    options = onnxruntime.SessionOptions
    monkeypatch.setattr(options, "register_custom_ops_library", refuses)
    plan = plan_of(conv_plugin_conv()[0], tmp_path)
    assert any("built without operators from outside" in n.sentence for n in plan.decisions)
    with plan.open_session() as session:
        assert isinstance(session.runner, SplitRunner)
        session.run({"x": X[:1]})
    assert Watched.made == Watched.destroyed


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_graph_that_has_the_name_of_the_run_id_is_split(tmp_path: Path, runtime: str) -> None:
    made = middle()
    for each in made.graph.node:
        each.input[:] = ["headrace.run" if name == "x" else name for name in each.input]
    made.graph.input[0].name = "headrace.run"
    plan = built(Slow, made, tmp_path, max_batch=4, runtime=runtime)
    with plan.open_session(threads=1) as session:
        assert isinstance(session.runner, SplitRunner)
        got = session.run({"headrace.run": X[:1]})["y"]
    np.testing.assert_allclose(got, -(1 - X[:1]) - X[:1], atol=1e-5)


def test_onnxruntime_finds_operators_only_while_they_are_offered() -> None:
    settings = onnxruntime.SessionOptions()
    with pytest.raises(Exception, match="headrace offers no operators now"):
        settings.register_custom_ops_library(_native.__file__)
    offered = _native.OrtOperators(lambda index, call: True, "d", [("Op", [6], [6], False)])

    def ask() -> None:
        settings.register_custom_ops_library(_native.__file__)

    offered.register_with(ask)
    with pytest.raises(Exception, match="headrace offers no operators now"):
        offered.register_with(ask)  # they are another session's already


def test_a_call_is_over_when_it_is_over() -> None:
    kept = []
    operators = _native.OrtOperators(
        lambda index, call: kept.append(call) is None, "d", [("Op", [6], [6], True)]
    )
    settings = onnxruntime.SessionOptions()
    operators.register_with(lambda: settings.register_custom_ops_library(_native.__file__))
    number = helper.make_tensor_value_info("n", TensorProto.INT32, [1])
    made = model(
        [node("Op", ["n"], ["m"], domain="d")], [number], [info("m", TensorProto.INT32, [1])]
    )
    made.opset_import.append(helper.make_opsetid("d", 1))
    session = onnxruntime.InferenceSession(made.SerializeToString(), settings)
    (out,) = session.run(None, {"n": np.array([7], np.int32)})
    assert out.tolist() == [7]
    assert kept[0].run_id == 7
    for late in (kept[0].inputs, lambda: kept[0].output(0, [1])):
        with pytest.raises(RuntimeError, match="computed already"):
            late()


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nothing_of_a_closed_session_is_left(tmp_path: Path, runtime: str) -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(o, (PluginCallbacks, CallbackRunner)) for o in gc.get_objects())

    plan = plan_of(branches(), tmp_path, max_batch=4, runtime=runtime)
    plan.open_session().close()
    before = alive()
    for _ in range(3):
        runner = opened(plan, runtime)
        runner.run({"x": X[:2]})
        runner.close()
        del runner
    assert alive() == before
    assert Watched.made == Watched.destroyed
