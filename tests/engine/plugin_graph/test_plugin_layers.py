"""Plans of networks with plugins: built, saved, loaded, run, refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from headrace.engine import Plan
from headrace.engine.builder import BuildOptions, build
from headrace.errors import EngineError, PluginError
from headrace.plugins import PluginRegistry, Tracer
from tests.plugins.models import FLOAT, conv_plugin_conv, model, network, registry
from tests.plugins.samples import PLUGINS, Watched

pytestmark = pytest.mark.usefixtures("watched_anew")
RUNTIMES = ["onnxruntime", "openvino"]
X = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
EXPLICIT = [kind for kind in PLUGINS if kind != "V2"]


def run(plan: Plan, x: Any) -> Any:
    with plan.open_session() as session:
        return session.run({"x": x})["y"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", EXPLICIT)
@pytest.mark.parametrize("batch", ["N", 2])
@pytest.mark.sampled
def test_a_plugin_in_the_middle(tmp_path: Path, runtime: str, kind: str, batch: Any) -> None:
    with_it, without = conv_plugin_conv(PLUGINS[kind].__name__, batch, factor=3.0)
    options = BuildOptions(max_batch=4 if batch == "N" else 2, runtime=runtime)
    known = registry()
    plan = build(
        network(with_it, tmp_path),
        BuildOptions(max_batch=options.max_batch, runtime=runtime, registry=known),
    )
    reference = build(network(without, tmp_path), options)
    plan.registry = known
    path = tmp_path / "plan.engine"
    plan.save(path)
    loaded = Plan.load(path)
    loaded.registry = known
    for each in (plan, loaded):
        with each.open_session() as session, reference.open_session() as expected:
            for n in {options.max_batch, 2, 1, 3} - ({3} if batch == 2 else set()):
                got = session.run({"x": X[:n]})["y"]
                want = expected.run({"x": X[:n]})["y"]
                np.testing.assert_allclose(got, 3 * want, rtol=1e-4, atol=1e-4)
    (record,) = plan.header.plugins
    assert (record.type, record.version, record.generation) == (PLUGINS[kind].__name__, "1", kind)
    assert Watched.made == Watched.destroyed
    assert Watched.twice == 0


def test_the_life_in_a_plan_is_that_of_the_driver(tmp_path: Path) -> None:
    known = registry()
    with Tracer() as tracer:
        plan = build(network(conv_plugin_conv()[0], tmp_path), BuildOptions(registry=known))
        plan.registry = known
        run(plan, X[:1])
    phases = list(dict.fromkeys(c.phase for c in tracer.calls if c.phase != "destroy"))
    assert phases == ["parse", "build", "save", "load", "run"]
    assert {c.layer for c in tracer.calls} == {"scale"}


def test_a_plan_without_its_creators_names_them(tmp_path: Path) -> None:
    known = registry()
    plan = build(network(conv_plugin_conv()[0], tmp_path), BuildOptions(registry=known))
    plan.save(tmp_path / "p.engine")
    loaded = Plan.load(tmp_path / "p.engine")
    loaded.registry = PluginRegistry()
    with pytest.raises(PluginError) as caught:
        loaded.open_session()
    assert "1 plugin(s) that are not registered: ScaleDynamic version 1" in str(caught.value)
    assert "custom-lib-path" in str(caught.value)


LIBRARY = "from tests.plugins.samples import ScaleDynamic, SecondCreator\n\n\n" + (
    "def get_plugin_creators():\n    return [SecondCreator(ScaleDynamic)]\n"
)
LOADER = """
import sys, numpy as np
from headrace.engine import Plan
from headrace.plugins import get_plugin_registry
if len(sys.argv) > 2:
    get_plugin_registry().load_library(sys.argv[2])
with Plan.load(sys.argv[1]).open_session() as session:
    print(float(session.run({"x": np.ones((1, 3, 8, 8), np.float32)})["y"].sum()))
"""


@pytest.mark.slow
def test_one_process_saves_and_another_loads(tmp_path: Path) -> None:
    known = registry()
    plan = build(network(conv_plugin_conv()[0], tmp_path), BuildOptions(registry=known))
    plan.registry = known
    path, library = tmp_path / "p.engine", tmp_path / "library.py"
    plan.save(path)
    library.write_text(LIBRARY)

    def other(*arguments: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LOADER, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    good = other(path, library)
    assert good.returncode == 0, good.stderr
    expected = float(run(plan, np.ones((1, 3, 8, 8), np.float32)).sum())
    assert float(good.stdout) == pytest.approx(expected, rel=1e-5)
    bad = other(path)
    assert bad.returncode != 0
    assert "ScaleDynamic version 1" in bad.stderr


def test_plugins_one_after_another_and_side_by_side(tmp_path: Path) -> None:
    node = helper.make_node
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("ScaleV3", ["r"], ["s1"], factor=2.0),
        node("ScaleDynamic", ["s1"], ["s2"], factor=3.0),
        node("ScaleV2Ext", ["x"], ["s3"], factor=5.0),
        node("Add", ["s2", "s3"], ["sum"]),
        node("ScaleV3", ["sum"], ["y"], factor=0.5),
        node("Identity", ["s1"], ["z"]),
    ]
    info = helper.make_tensor_value_info
    shape = ["N", 3, 8, 8]
    made = model(
        nodes, [info("x", FLOAT, shape)], [info(n, FLOAT, shape) for n in ("y", "s2", "z")]
    )
    known = registry()
    plan = build(network(made, tmp_path), BuildOptions(max_batch=4, registry=known))
    plan.registry = known
    with plan.open_session() as session:
        for n in (4, 2):
            out = session.run({"x": X[:n]})
            relu = np.maximum(X[:n], 0)
            np.testing.assert_allclose(out["z"], 2 * relu, rtol=1e-6)
            np.testing.assert_allclose(out["s2"], 6 * relu, rtol=1e-6)
            np.testing.assert_allclose(out["y"], 0.5 * (6 * relu + 5 * X[:n]), rtol=1e-6)
    names = [r.node for r in plan.header.plugins]
    assert len(set(names)) == 4


def test_outputs_of_a_run_survive_the_next(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("ScaleDynamic", ["x"], ["y"], factor=2.0)],
        [helper.make_tensor_value_info("x", FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", FLOAT, ["N", 3, 8, 8])],
    )
    known = registry()
    plan = build(network(made, tmp_path), BuildOptions(max_batch=2, registry=known))
    plan.registry = known
    with plan.open_session() as session:
        first = session.run({"x": X[:2]})["y"]
        kept = first.copy()
        session.run({"x": X[2:4]})
        np.testing.assert_array_equal(first, kept)


def test_several_threads_have_contexts_of_their_own(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    known = registry()
    plan = build(
        network(conv_plugin_conv(factor=2.0)[0], tmp_path),
        BuildOptions(max_batch=4, registry=known),
    )
    plan.registry = known
    with plan.open_session() as session:
        alone = [session.run({"x": X[i : i + 1]})["y"] for i in range(4)]
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(session.run, {"x": X[i % 4 : i % 4 + 1]}) for i in range(80)]
            for i, job in enumerate(jobs):
                np.testing.assert_array_equal(job.result()["y"], alone[i % 4])
    assert Watched.attached == Watched.detached
    assert Watched.made == Watched.destroyed


def test_a_session_nobody_closes_ends_its_plugins(tmp_path: Path) -> None:
    import gc

    known = registry()
    plan = build(network(conv_plugin_conv()[0], tmp_path), BuildOptions(registry=known))
    assert Watched.made > Watched.destroyed  # kept ready for the first session
    del plan
    gc.collect()
    assert Watched.made == Watched.destroyed


def test_a_failing_enqueue_names_plugin_and_layer(tmp_path: Path, capsys: Any) -> None:
    from tests.plugins.samples import Fault

    known = registry()
    plan = build(network(conv_plugin_conv()[0], tmp_path), BuildOptions(registry=known))
    plan.registry = known
    Watched.fault = Fault("enqueue", RuntimeError("no luck"))
    with plan.open_session() as session:
        with pytest.raises(PluginError) as caught:
            session.run({"x": X[:1]})
        assert "plugin ScaleDynamic version 1, layer 'scale'" in str(caught.value)
        assert "enqueue raised RuntimeError: no luck" in str(caught.value)
        Watched.fault = None
        session.run({"x": X[:1]})  # the session lives on
    assert "no luck" not in capsys.readouterr().err  # the error says it


def test_an_operator_nobody_knows(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("YoloLayer_TRT", plugin_version="7", anchors=[1, 2], scale=0.5)
    with pytest.raises(EngineError) as caught:
        build(network(made, tmp_path), BuildOptions(registry=registry()))
    text = str(caught.value)
    assert "YoloLayer_TRT (node 'scale', version 7, fields: " in text
    assert "anchors (INTS), scale (FLOAT)" in text
    assert "headrace init --plugin YoloLayer_TRT" in text


def test_a_wrong_version_is_told(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("ScaleDynamic", plugin_version="2")
    from headrace.plugins import get_plugin_registry

    (creator,) = registry("V2DynamicExt").all_creators
    get_plugin_registry().register_creator(creator)
    try:
        with pytest.raises(EngineError, match="registered as version 1, namespace ''"):
            build(network(made, tmp_path))
    finally:
        get_plugin_registry().deregister_creator(creator)


def test_the_domain_of_a_node_may_be_its_namespace(tmp_path: Path) -> None:
    from tests.plugins.samples import creator_for

    known = PluginRegistry()
    known.register_creator(creator_for(PLUGINS["V3"]), "mine")
    made, _ = conv_plugin_conv("ScaleV3", domain="mine")
    made.opset_import.append(helper.make_opsetid("mine", 1))
    plan = build(network(made, tmp_path), BuildOptions(registry=known))
    assert plan.header.plugins[0].namespace == "mine"
    plan.registry = known
    run(plan, X[:1])


def test_the_domain_of_a_built_in_operator_is_not_looked_at(tmp_path: Path) -> None:
    made, _ = conv_plugin_conv("Relu", domain="odd")
    made.opset_import.append(helper.make_opsetid("odd", 1))
    plan = build(network(made, tmp_path), BuildOptions(registry=PluginRegistry()))
    assert plan.header.plugins == ()
    assert any("odd::Relu is taken for ONNX's own" in n.sentence for n in plan.decisions)
    run(plan, X[:1])


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_tuning_works_with_plugins(tmp_path: Path, runtime: str) -> None:
    from headrace.engine.tactic import Tactic
    from headrace.engine.tuning.tune import TuneOptions

    known = registry()
    made, _ = conv_plugin_conv(factor=2.0)
    tactics = [Tactic(runtime, threads=1)]
    tuning = TuneOptions(budget_s=60, cache=tmp_path / "cache", tactics=tactics)
    plan = build(network(made, tmp_path), BuildOptions(max_batch=2, tuning=tuning, registry=known))
    assert plan.tactic is not None
    assert plan.tactic.latency_ms is not None, [str(n) for n in plan.decisions]
    plan.registry = known
    run(plan, X[:2])
    assert Watched.made == Watched.destroyed
