"""INT8 is timed beside FP32, and built for the runtime that takes least time for it."""

import dataclasses
import subprocess
import sys
from importlib.metadata import version

import msgspec
import numpy as np
import pytest

from headrace.engine import BuildOptions, build
from headrace.engine.backends import GPU_RUNTIMES, installed_backends
from headrace.engine.machine import cpu_flags
from headrace.engine.plan import MODEL_BLOB, Plan
from headrace.engine.precision import CalibrationTable
from headrace.engine.precision.rules import PrecisionRules
from headrace.engine.tactic import Tactic, candidates, with_and_without_tiles
from headrace.engine.tuning import int8_speed
from tests.engine.precision.graphs import network_of, ranges_of, small_net

IMAGE = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)
SCALES = {n: r / 127 for n, r in ranges_of(small_net(), {"image": IMAGE}).items()}
RULES = PrecisionRules(table=CalibrationTable.of(SCALES))


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_TIMING_CACHE", str(tmp_path / "timings"))


def built(**options):
    options = {"precision": "int8", "rules": RULES, "time_int8": True} | options
    return build(network_of(small_net()), BuildOptions(max_batch=2, **options))


def speeds(plan):
    return [n for n in plan.decisions if n.code in ("int8-speed", "int8-slower")]


def test_what_the_time_did_not_suffice_for_is_said(monkeypatch):
    def short_of_time(*given, **options):
        tuned = tune(*given, **options)
        last = msgspec.structs.replace(tuned.records[-1], outcome="untried", cpu_ms=None)
        return dataclasses.replace(tuned, records=(*tuned.records[:-1], last))

    tune = int8_speed.tune
    monkeypatch.setattr(int8_speed, "tune", short_of_time)
    (notice,) = speeds(built())
    (untried,) = notice.data["untried"]
    assert f"the time was up before {untried}" in notice.sentence


@pytest.mark.slow
def test_the_runtime_with_the_least_time_is_built_for(tmp_path):
    plan = built()
    chosen, records = plan.tactic, plan.header.tactics
    assert chosen.precision == plan.header.precision == "int8"
    timed = [r for r in records if r.cpu_ms and r.outcome == "ok"]
    assert chosen.cpu_ms == min(r.cpu_ms for r in timed if r.precision == "int8")
    runtimes = {r for r in installed_backends() if r not in GPU_RUNTIMES}
    assert {r.runtime for r in records} == runtimes
    assert not [r for r in records if r.precision == "fp32" and not r.amx]  # no tiles in FP32
    (notice,) = speeds(plan)
    least = min(r.cpu_ms for r in timed if r.precision == "fp32")
    assert (notice.data["int8_ms"], notice.data["fp32_ms"]) == (chosen.cpu_ms, least)
    assert notice.code == ("int8-speed" if chosen.cpu_ms <= least else "int8-slower")
    path = tmp_path / "small.engine"
    plan.write(path)
    again = Plan.load(path)
    assert again.tactic.tactic == chosen.tactic
    assert speeds(again) == [notice]
    plain = built(precision="fp32", time_int8=False)
    outputs = [p.open_session(threads=1).run({"image": IMAGE}) for p in (again, plain)]
    for name, exact in outputs[1].items():
        noise = np.square(outputs[0][name] - exact).mean() / np.square(exact).mean()
        assert noise < 0.01, name


def test_a_runtime_that_is_named_stays(tmp_path):
    plan = built(runtime="onnxruntime")
    assert {r.runtime for r in plan.header.tactics} == {"onnxruntime"}
    assert speeds(plan)


@pytest.mark.parametrize(
    "options",
    [{"precision": "fp32"}, {"tactic": Tactic("onnxruntime", 1, 1)}, {"time_int8": False}],
    ids=["fp32", "tactic", "not asked for"],
)
def test_nothing_is_timed(options):
    assert not speeds(built(**options))


def test_tiles_are_left_out_where_the_processor_has_them():
    later = "openvino" in installed_backends() and version("openvino") >= "2026.4"
    with_tiles = "amx_int8" in cpu_flags() and later
    for tactics in (
        with_and_without_tiles(["openvino"]),
        candidates(["openvino"], 4, "latency"),
        candidates(["openvino"], 4, "throughput"),
    ):
        assert any(not t.amx for t in tactics) == with_tiles
    assert all(t.amx for t in with_and_without_tiles(["onnxruntime"]))
    assert Tactic.parse("openvino:threads=2,amx=0") == Tactic("openvino", 2, amx=False)
    assert str(Tactic("openvino", amx=False)) == "openvino:amx=0"


PROGRAM = """
import logging, os, sys
import openvino
from headrace.engine.backends import RunnerOptions, get_backend

logging.basicConfig(format="%(message)s")
first = sys.argv[1] == "True"
backend, model = get_backend("openvino"), sys.stdin.buffer.read()
assert "INT8" in backend.capabilities()  # asked before, it settles nothing
for amx in (first, first, not first, not first):
    backend.open(model, RunnerOptions(amx=amx)).close()
print(sorted(k for k in os.environ if k.startswith("ONEDNN")))
core = openvino.Core()
graph = core.compile_model(core.read_model(model), "CPU").get_runtime_model()
kinds = [op.get_rt_info()["primitiveType"].astype(str) for op in graph.get_ordered_ops()]
print(any("amx" in kind for kind in kinds))
"""


@pytest.mark.parametrize("first", [True, False])
def test_the_first_model_of_a_process_decides_about_tiles(first):
    if Tactic("openvino", amx=False) not in with_and_without_tiles(["openvino"]):
        pytest.skip("needs OpenVINO from 2026.4 on and a processor with AMX")
    model = built(runtime="openvino", time_int8=False).blobs[MODEL_BLOB]
    command = [sys.executable, "-c", PROGRAM, str(first)]
    done = subprocess.run(command, input=bytes(model), capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ["[]", str(first)]
    said = "an engine for openvino" + (":amx=0 runs with" if first else " runs without")
    assert done.stderr.decode().count(f"{said} AMX") == 1
