"""Tuning: only right results win, the budget is kept, and known answers are not measured again."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.engine import BuildOptions, Plan, build
from headrace.engine.backends import BACKENDS, GPU_RUNTIMES, installed_backends
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.machine import Machine
from headrace.engine.plan_header import TacticRecord
from headrace.engine.precision.capability import fast_bf16
from headrace.engine.tactic import Tactic, candidates
from headrace.engine.tuning import tune as module
from headrace.engine.tuning.output_difference import difference, noise_db
from headrace.engine.tuning.tune import TuneOptions, Version, tune
from headrace.engine.tuning.tuned import Tuning
from headrace.errors import EngineError
from headrace.infer.model import load_or_build
from headrace.infer.model.image_input import image_range
from headrace.network import network_from_onnx
from headrace.network.tensor_spec import TensorSpec
from tests.profiles import slow

ROOT = Path(__file__).parents[3]
FAKES = [
    "slow",
    "quick",
    "wrong",
    "nan",
    "crash",
    "quits",
    "hang",
    "later_crash",
    "raises",
    "noisy",
    "lucky",
]


@pytest.fixture(autouse=True)
def fakes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("HEADRACE_TIMING_CACHE", str(tmp_path / "timings"))
    monkeypatch.setattr(module, "_TRIAL_WINDOW_S", 0.02)
    monkeypatch.setattr(module, "_ROUND_WINDOW_S", 0.03)
    for name in FAKES:
        monkeypatch.setitem(BACKENDS, name, f"tests.engine.fakes.{name}")


@pytest.fixture
def network(model_path):
    return network_from_onnx(model_path)


def tuned(network, *runtimes, budget_s=20.0, **options):
    tactics = [Tactic(name, 1, 1) for name in runtimes]
    tuning = TuneOptions(budget_s=budget_s, tactics=tactics, **options)
    return build(network, BuildOptions(max_batch=2, tuning=tuning))


@pytest.fixture
def impatient(monkeypatch):
    """Fakes load at once: what is silent for a second has hung."""
    monkeypatch.setattr(module, "_LEAST_TIMEOUT_S", 3.0)


def outcomes(plan):
    return {t.runtime: t.outcome for t in plan.header.tactics}


def test_the_quickest_right_one_wins(network):
    plan = tuned(network, "slow", "wrong", "quick", "nan")
    assert plan.header.runtime.name == "quick"
    assert plan.header.tuning.cached is False
    tries = {t.runtime: t for t in plan.header.tactics}
    assert tries["wrong"].outcome == tries["nan"].outcome == "wrong"
    assert "'doubled'" in tries["wrong"].note
    assert [name for name, t in tries.items() if t.chosen] == ["quick"]
    assert tries["quick"].outcome == "measured"
    assert 5 <= tries["quick"].latency_ms < 20 <= tries["slow"].latency_ms
    assert tries["quick"].items_per_s == pytest.approx(2e3 / tries["quick"].latency_ms, rel=0.3)
    assert any("skipped, wrong" in str(n) for n in plan.decisions)
    with plan.open_session() as session:
        x = np.ones((1, 3, 4, 6), np.float32)
        assert (session.run({"x": x})["doubled"] == 2).all()


@pytest.mark.slow
def test_single_lucky_runs_do_not_win(network):
    for order in (("lucky", "quick"), ("quick", "lucky")):
        assert tuned(network, *order, use_cache=False).header.runtime.name == "quick"


def test_what_crashes_or_fails_is_reported_and_skipped(network):
    plan = tuned(network, "crash", "quits", "raises", "quick", "slow")
    assert plan.header.runtime.name == "quick"
    notes = {t.runtime: (t.outcome, t.note) for t in plan.header.tactics}
    assert notes["crash"] == ("crashed", "was killed by SIGSEGV")
    assert notes["quits"] == ("crashed", "ended with exit status 3")
    assert notes["raises"] == ("failed", "node 'double': no kernel for Mul")
    said = [str(n) for n in plan.decisions]
    assert any(
        "crash:threads=1,streams=1 skipped, crashed: was killed by SIGSEGV" in s for s in said
    )


@pytest.mark.slow
def test_what_hangs_does_not_take_the_budget(network, impatient):
    start = time.monotonic()
    plan = tuned(network, "quick", "hang", "slow", budget_s=15.0)
    assert time.monotonic() - start < 17
    assert plan.header.runtime.name == "quick"
    assert outcomes(plan)["hang"] == "hung"
    assert outcomes(plan)["slow"] in ("ok", "measured")


@pytest.mark.slow
def test_what_dies_while_the_best_are_compared_does_not_win(network):
    plan = tuned(network, "quick", "later_crash")
    assert plan.header.runtime.name == "quick"
    assert outcomes(plan)["later_crash"] == "crashed"


def test_a_runtime_that_prints_does_no_harm(network, capfd):
    assert outcomes(tuned(network, "noisy"))["noisy"] == "measured"
    assert "hello" not in capfd.readouterr().out


def test_if_nothing_is_right_the_default_is_used_and_said(network):
    plan = tuned(network, "wrong", "crash")
    assert plan.header.runtime.name == "onnxruntime"
    assert plan.header.tuning is None
    assert plan.decisions[0].level == "warning"
    assert "not tuned" in plan.decisions[0].sentence


@pytest.mark.slow
@pytest.mark.parametrize("budget_s", [0.001, 3.0])
def test_the_budget_is_kept(network, budget_s):
    start = time.monotonic()
    plan = tuned(network, "slow", "quick", "hang", "noisy", budget_s=budget_s)
    assert time.monotonic() - start < budget_s + 2
    if plan.header.tuning is None:
        assert "not tuned" in plan.decisions[0].sentence
    else:
        assert plan.header.runtime.name in ("slow", "quick", "noisy")


@pytest.mark.slow
def test_what_there_was_no_time_for_is_said(network):
    plan = tuned(network, "quick", "hang", "slow", budget_s=2.5)
    assert outcomes(plan)["slow"] == "untried"
    assert any("not tried for lack of time" in n.sentence for n in plan.decisions)


@pytest.mark.slow
def test_latency_and_throughput_are_different_questions(network):
    """Eight runs at once of a runtime that sleeps: eight times the items, the same time each."""
    tactics = [Tactic("slow", 1, 8), Tactic("quick", 1, 1)]
    for objective, best in (("throughput", "slow"), ("latency", "quick")):
        tuning = TuneOptions(budget_s=20, tactics=tactics, objective=objective)
        plan = build(network, BuildOptions(max_batch=1, tuning=tuning))
        assert (plan.header.tuning.objective, plan.tactic.runtime) == (objective, best)


@pytest.mark.slow
def test_progress_rises_to_its_end_and_may_interrupt(network):
    told = []
    tuning = TuneOptions(budget_s=20, tactics=[Tactic("quick", 1, 1), Tactic("slow", 1, 1)])
    progress = lambda *step: told.append(step)  # noqa: E731
    build(network, BuildOptions(tuning=tuning, progress=progress))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert all(done <= total for done, total, _ in told)
    assert any("quick" in text for _, _, text in told)

    def stop(done, total, text):
        if done > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(network, BuildOptions(max_batch=2, tuning=tuning, progress=stop))


# The timing cache.


def test_the_next_build_measures_nothing(network):
    first = tuned(network, "slow", "quick")
    start = time.monotonic()
    second = tuned(network, "slow", "quick")
    assert time.monotonic() - start < 1
    assert second.header.tuning.cached
    assert second.header.tactics == first.header.tactics
    assert any("known from the timing cache" in n.sentence for n in second.decisions)


@pytest.mark.slow
def test_unless_it_is_told_to(network):
    tuned(network, "quick")
    assert not tuned(network, "quick", use_cache=False).header.tuning.cached


def questions(tmp_path):
    return [json.loads(p.read_text())["question"] for p in (tmp_path / "timings").glob("*.json")]


@pytest.mark.slow
def test_another_model_batch_runtime_version_or_machine_is_measured_again(
    network, tmp_path, monkeypatch
):
    from tests.network.onnx_models import image_model, save

    tuned(network, "quick")
    other = network_from_onnx(save(image_model(scale=3.0), tmp_path / "o.onnx"))
    assert not tuned(other, "quick").header.tuning.cached
    tuning = TuneOptions(budget_s=9, tactics=[Tactic("quick", 1, 1)])
    assert not build(network, BuildOptions(max_batch=4, tuning=tuning)).header.tuning.cached
    assert not tuned(network, "quick", objective="latency").header.tuning.cached
    from tests.engine.fakes import quick

    with monkeypatch.context() as patched:
        patched.setattr(quick.backend, "_version", "2")
        assert not tuned(network, "quick").header.tuning.cached
    machine = module.this_machine()
    monkeypatch.setattr(
        module, "this_machine", lambda: type(machine)(machine.cpu, machine.cores + 1)
    )
    assert not tuned(network, "quick").header.tuning.cached
    assert len(questions(tmp_path)) == 6


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: p.write_bytes(p.read_bytes()[:-40]),
        lambda p: p.write_text(p.read_text().replace('"chosen": true', '"chosen": false')),
        slow(lambda p: p.write_bytes(b"")),
        slow(lambda p: p.write_text("[]")),
        slow(lambda p: p.write_text(p.read_text().replace('"items": "2"', '"items": "3"'))),
        slow(lambda p: (p.unlink(), p.mkdir())),
    ],
)
@pytest.mark.slow
def test_a_damaged_entry_is_measured_again(network, tmp_path, spoil):
    tuned(network, "quick")
    (entry,) = (tmp_path / "timings").glob("*.json")
    spoil(entry)
    assert not tuned(network, "quick").header.tuning.cached


def test_no_cache_folder_is_no_error(network, tmp_path):
    (tmp_path / "file").write_text("")
    plan = tuned(network, "quick", cache=tmp_path / "file" / "timings")
    assert plan.header.runtime.name == "quick"


@pytest.mark.slow
def test_an_answer_for_lack_of_time_serves_no_larger_budget(network, impatient):
    short = tuned(network, "quick", "hang", "slow", budget_s=2.0)
    assert outcomes(short)["slow"] == "untried"
    assert tuned(network, "quick", "hang", "slow", budget_s=2.0).header.tuning.cached
    assert not tuned(network, "quick", "hang", "slow", budget_s=15).header.tuning.cached


@pytest.mark.slow
def test_two_processes_tune_once(model_path, tmp_path):
    code = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from headrace.engine import BuildOptions, build
        from headrace.engine.backends import BACKENDS
        from headrace.engine.tactic import Tactic
        from headrace.engine.tuning.tune import TuneOptions
        from headrace.network import network_from_onnx
        for name in ("slow", "quick"):
            BACKENDS[name] = f"tests.engine.fakes.{{name}}"
        options = TuneOptions(tactics=[Tactic("slow", 1, 1), Tactic("quick", 1, 1)], budget_s=20)
        plan = build(network_from_onnx({str(model_path)!r}), BuildOptions(tuning=options))
        print(plan.header.runtime.name, plan.header.tuning.cached)
    """)
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=60)[0].split()[-2:] for process in running)
    assert said == [["quick", "False"], ["quick", "True"]]


@pytest.mark.slow
def test_a_killed_tuner_leaves_no_process_and_no_lock(model_path, tmp_path):
    code = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(ROOT)!r})
        from headrace.engine import BuildOptions, build
        from headrace.engine.backends import BACKENDS
        from headrace.engine.tactic import Tactic
        from headrace.engine.tuning.tune import TuneOptions
        from headrace.network import network_from_onnx
        BACKENDS["hang"] = "tests.engine.fakes.hang"
        options = TuneOptions(tactics=[Tactic("hang", 1, 1)], budget_s=300)
        say = lambda done, total, text: print(text, flush=True)
        build(network_from_onnx({str(model_path)!r}), BuildOptions(tuning=options, progress=say))
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "hang" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("this kernel does not list children")
    (child,) = children.read_text().split()
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()
    tuned_after = tuned(network_from_onnx(model_path), "quick", cache=tmp_path / "timings")
    assert tuned_after.header.runtime.name == "quick"


# Plans.


def test_a_tuned_plan_is_kept_and_run_as_tuned(config, model_path):
    cfg = config()
    tuning = TuneOptions(budget_s=10, tactics=[Tactic("quick", 1, 2)])
    built = load_or_build(cfg, tuning=tuning)
    loaded = Plan.load(built.path)
    assert loaded.header.tactics == built.header.tactics
    for plan in (built, loaded, load_or_build(cfg), load_or_build(cfg, tuning=tuning)):
        assert (plan.run_options().threads, plan.run_options().streams) == (1, 2)
        assert plan.run_options(threads=3).streams == 1
    assert any(n.code == "engine-loaded" for n in load_or_build(cfg, tuning=tuning).decisions)


@pytest.mark.slow
def test_an_untuned_plan_is_tuned_when_asked(config):
    cfg = config()
    load_or_build(cfg)
    tuning = TuneOptions(budget_s=10, tactics=[Tactic("quick", 1, 1)])
    plan = load_or_build(cfg, tuning=tuning)
    assert plan.header.runtime.name == "quick"
    assert "engine not used: not tuned" in str(plan.decisions[0])
    other = load_or_build(
        cfg, tuning=TuneOptions(budget_s=10, tactics=tuning.tactics, objective="latency")
    )
    assert "tuned for throughput, not latency" in str(other.decisions[0])


def test_a_plan_tuned_on_other_cores_shares_as_it_likes(config, monkeypatch):
    from headrace.engine import plan as module
    from headrace.infer.model import engine_search as search

    cfg = config()
    load_or_build(cfg, tuning=TuneOptions(budget_s=10, tactics=[Tactic("quick", 1, 2)]))
    monkeypatch.setattr(module, "usable_cores", lambda: 96)
    monkeypatch.setattr(search, "usable_cores", lambda: 96)
    plan = load_or_build(cfg)
    assert plan.run_options().threads is None
    assert any("here are 96" in n.sentence for n in plan.decisions)


def test_a_pinned_tactic_is_kept(config):
    cfg = config()
    tactic = Tactic.parse("onnxruntime:threads=1,streams=2,optimization=basic")
    plan = load_or_build(cfg, tactic=tactic)
    options = plan.run_options()
    assert (options.threads, options.streams, options.optimization) == (1, 2, "basic")
    assert load_or_build(cfg, tactic=tactic).decisions[0].code == "engine-loaded"
    assert load_or_build(cfg).run_options() == options
    again = load_or_build(cfg, tactic=Tactic("onnxruntime", 2, 1))
    assert "runs as onnxruntime:threads=1" in str(again.decisions[0])
    with pytest.raises(EngineError, match="not one of openvino"):
        load_or_build(cfg, tactic=tactic, backend="openvino")
    with pytest.raises(EngineError, match="nothing to tune"):
        load_or_build(cfg, tactic=tactic, tuning=TuneOptions())


@pytest.mark.slow
def test_all_real_runtimes_take_part(network):
    real = [n for n in installed_backends() if n not in FAKES]
    plan = build(network, BuildOptions(tuning=TuneOptions(budget_s=60, runtimes=real)))
    assert {t.runtime for t in plan.header.tactics} == set(real)
    assert {t.outcome for t in plan.header.tactics} <= {"ok", "measured"}


# Tactics as text.


@given(
    runtimes=st.lists(st.sampled_from(["onnxruntime", "openvino", *GPU_RUNTIMES]), unique=True),
    cores=st.integers(1, 5000),
    objective=st.sampled_from(["throughput", "latency"]),
)
@example(runtimes=["onnxruntime-cuda", "onnxruntime"], cores=2000, objective="latency")
def test_every_candidate_reads_back(runtimes, cores, objective):
    tactics = candidates(runtimes, cores, objective)
    assert len(set(tactics)) == len(tactics) <= 29
    assert {tactic.runtime for tactic in tactics} == set(runtimes)
    for tactic in tactics:
        assert Tactic.parse(str(tactic)) == tactic
        assert tactic.threads * tactic.streams <= cores or tactic.runtime in GPU_RUNTIMES
        assert objective == "throughput" or tactic.streams == 1


@pytest.mark.parametrize(
    "text",
    [
        "tvm", "onnxruntime:", "onnxruntime:threads=0", "onnxruntime:threads=2000",
        "onnxruntime:threads", "onnxruntime:speed=9", "onnxruntime:optimization=most",
        "onnxruntime:spinning=2", "onnxruntime:threads=²", "onnxruntime:amx=0",
        "openvino:amx=2",
    ],
)  # fmt: skip
def test_tactics_that_are_none(text):
    if text == "onnxruntime:":
        assert Tactic.parse(text) == Tactic()
        return
    with pytest.raises(EngineError, match="tactic"):
        Tactic.parse(text)


# What counts as the same result.


def test_rounding_is_the_same_result():
    reference = {"y": np.linspace(-100, 100, 1000, dtype=np.float32)}
    assert difference({"y": reference["y"] * np.float32(1 + 5e-4)}, reference)[1] is None
    error, wrong = difference({"y": reference["y"] + np.float32(0.05)}, reference)
    assert error == pytest.approx(5e-4, rel=0.01)
    assert wrong is not None


def test_noise_of_a_tenth_of_the_signal_is_at_twenty_decibels() -> None:
    signal = np.array([1, -1, 1, -1], np.float32)
    assert noise_db(signal * np.float32(1.1), signal) == pytest.approx(20, abs=1e-4)
    assert noise_db(signal * 3, signal) == pytest.approx(-6.02, abs=0.01)
    assert noise_db(signal, signal) == 300


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        ({}, {"y": np.zeros(3, np.float32)}),
        ({"y": np.zeros(4, np.float32)}, {"y": np.zeros(3, np.float32)}),
        ({"y": np.zeros(3, np.float16)}, {"y": np.zeros(3, np.float32)}),
        ({"y": np.array([np.nan], np.float32)}, {"y": np.array([1], np.float32)}),
        ({"y": np.array([1], np.float32)}, {"y": np.array([np.inf], np.float32)}),
        ({"y": np.array([-np.inf], np.float32)}, {"y": np.array([np.inf], np.float32)}),
        ({"y": np.array([1, 2])}, {"y": np.array([1, 3])}),
        ({"y": np.array([True])}, {"y": np.array([False])}),
    ],
)
def test_what_is_not_the_same_result(ours, reference):
    assert difference(ours, reference)[1] is not None


@pytest.mark.parametrize(
    "array",
    [
        np.array([np.nan, np.inf, 1], np.float32), np.zeros((0, 4), np.float32),
        np.zeros(3, np.float32), np.arange(2000), np.array([True]), np.float32(3),
    ],
)  # fmt: skip
def test_equal_is_the_same_result(array):
    assert difference({"y": np.asarray(array)}, {"y": np.asarray(array)}) == (0.0, None)


def test_inputs_have_the_declared_shapes_types_and_range():
    specs = [
        TensorSpec("x", np.dtype(np.float32), (None, 3, 4, 6)),
        TensorSpec("scale", np.dtype(np.float32), (None, 2)),
        TensorSpec("n", np.dtype(np.int64), (1,)),
    ]
    feeds = sample_inputs(specs, 5, low=-2, high=2)
    assert [a.shape for a in feeds.values()] == [(5, 3, 4, 6), (5, 2), (1,)]
    assert [a.dtype for a in feeds.values()] == [s.dtype for s in specs]
    assert -2 <= feeds["x"].min() < -1.5
    assert 1.5 < feeds["x"].max() <= 2
    for kind in (np.uint8, np.int8, np.uint64, np.float16):
        pixels = sample_inputs([TensorSpec("x", np.dtype(kind), (1, 3, 16, 16))], 1, high=255)["x"]
        assert pixels.dtype == kind
        assert pixels.max() > 100
    tokens = sample_inputs([TensorSpec("x", np.dtype(np.int64), (1, 500))], 1)["x"]
    assert set(tokens.ravel()) == {1}  # an index of any table


def test_range_of_pixels_is_what_preprocessing_makes(config):
    assert image_range(config()) == (0, 255)
    low, high = image_range(config(net_scale_factor=0.0078125, offsets=(127, 127, 120)))
    assert (low, high) == (pytest.approx(-127 / 128), pytest.approx(135 / 128))
    assert image_range(config(net_scale_factor=-1.0, offsets=(127, 127, 127))) == (0, 255)


def test_tuning_needs_a_runtime(network):
    with pytest.raises(EngineError, match="no runtime is called 'tvm'"):
        tune(b"", [], {}, items=1, options=TuneOptions(tactics=[Tactic("tvm")]))


def offer_of(model_path, *runtimes, offered, objective="throughput", cache=None):
    """Tune an FP32 graph, with the same graph for one runtime as an offered BF16."""
    network = network_from_onnx(model_path)
    model = model_path.read_bytes()
    versions = [Version("fp32", model), Version("bf16", model, (offered,), offered=True)]
    options = TuneOptions(
        budget_s=20, tactics=[Tactic(name, 1, 1) for name in runtimes], objective=objective
    )
    feeds = sample_inputs(network.inputs, 1, low=0, high=1)
    tuning = tune(model, network.inputs, feeds, items=1, versions=versions, options=options)
    return tuning, tuning.notices(options.objective)


@pytest.mark.parametrize("objective", ["throughput", slow("latency")])
def test_an_offered_precision_is_reported_and_never_chosen(model_path, objective):
    for _ in range(2):  # measured, then known
        tuning, notices = offer_of(
            model_path, "slow", "quick", offered="quick", objective=objective
        )
        chosen = next(t for t in tuning.records if t.chosen)
        assert chosen.precision == "fp32"
        assert tuning.version == 0
        assert {t.precision for t in tuning.records} == {"fp32", "bf16"}
    tuning, notices = offer_of(model_path, "slow", offered="slow", objective=objective)
    assert next(t for t in tuning.records if t.chosen).precision == "fp32"
    # as fast as what is chosen: no reason to offer it, but for a lucky measurement
    assert [n.data["factor"] < 2 for n in notices if n.code == "bf16-offered"] in ([], [True])


def test_an_offer_names_its_gain_and_its_tactic():
    records = (
        TacticRecord(runtime="onnxruntime", precision="fp32", load_s=1.0, latency_ms=30.0,
                     items_per_s=40.0, outcome="measured", chosen=True),
        TacticRecord(runtime="openvino", threads=1, streams=2, precision="bf16", load_s=1.0,
                     latency_ms=20.0, items_per_s=68.0, outcome="measured", chosen=False),
        TacticRecord(runtime="openvino", threads=2, streams=1, precision="bf16", load_s=1.0,
                     latency_ms=10.0, items_per_s=60.0, outcome="wrong", chosen=False),
    )  # fmt: skip
    tuning = Tuning(Tactic(), records, Machine("chip", 2), 1.0, False)
    for objective, factor in (("throughput", 1.7), ("latency", 1.5)):
        (offer,) = [n for n in tuning.notices(objective) if n.code == "bf16-offered"]
        assert offer.data == {"factor": factor, "tactic": "openvino:threads=1,streams=2"}
        assert offer.sentence.startswith(f"bf16 would be {factor} times as fast: ")
    slower = Tuning(Tactic(), (records[0], records[1].changed(items_per_s=41.0)),
                    Machine("chip", 2), 1.0, False)  # fmt: skip
    assert not [n for n in slower.notices("throughput") if n.code == "bf16-offered"]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "codes"), [(0.05, []), (0.6, ["tuning-noise"])])
def test_noise_is_reported_also_of_times_that_were_kept(model_path, monkeypatch, share, codes):
    monkeypatch.setattr(module.ForeignLoad, "share", lambda self, child=None: share)
    for cached in (False, True):
        tuning, notices = offer_of(model_path, "slow", offered="slow")
        assert tuning.cached is cached
        assert [n.code for n in notices if n.code == "tuning-noise"] == codes
    if codes:
        (noise,) = [n for n in notices if n.code == "tuning-noise"]
        assert "60%" in noise.sentence


@pytest.mark.skipif(not fast_bf16("openvino"), reason="no BF16 arithmetic here")
def test_bf16_is_measured_where_the_processor_has_it(network):
    tuning = TuneOptions(budget_s=20, runtimes=["onnxruntime", "openvino"])
    plan = build(network, BuildOptions(tuning=tuning))
    assert plan.header.precision == "fp32"
    ran = {t.runtime for t in plan.header.tactics if t.precision == "bf16"}
    assert ran == {"openvino"}
    exact = TuneOptions(budget_s=20, runtimes=["onnxruntime"])
    assert {t.precision for t in build(network, BuildOptions(tuning=exact)).header.tactics} == {
        "fp32"
    }
