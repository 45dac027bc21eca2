"""The command from end to end: what scripts parse."""

import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace import trt
from headrace.cli.trtexec import run_trtexec
from headrace.engine import Plan
from tests.network.onnx_models import image_model, save

QUICK = ["--warmUp=5", "--duration=0", "--iterations=25"]
LINE = re.compile(r"^\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[([IWEV])\] (.*)$")


class Said:
    """Exit status, and lines without their prefix."""

    def __init__(self, status, captured):
        self.status = status
        self.raw = captured.out.splitlines()
        self.info = [m[2] for line in self.raw if (m := LINE.match(line))]
        self.errors = [m[2] for line in captured.err.splitlines() if (m := LINE.match(line))]

    def number(self, pattern):
        (found,) = [float(m[1]) for line in self.info if (m := re.fullmatch(pattern, line))]
        return found


@pytest.fixture
def run(capsys):
    def go(*words):
        capsys.readouterr()
        return Said(run_trtexec([str(w) for w in words]), capsys.readouterr())

    return go


def test_a_run_from_model_to_report(run, model_path, tmp_path):
    said = run(f"--onnx={model_path}", f"--saveEngine={tmp_path / 'e.engine'}", *QUICK)
    assert said.status == 0
    assert said.raw[0].startswith("&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx")
    assert said.raw[-1].startswith("&&&& PASSED TensorRT.trtexec [TensorRT v8601] # trtexec --onnx")
    order = [
        "=== Model Options ===", "Format: ONNX", "=== Build Options ===", "Precision: FP32",
        "=== System Options ===", "=== Inference Options ===", "Duration: 0s (+ 5ms warm up)",
        "=== Reporting Options ===", "=== Device Information ===", "Loading standard plugins",
        "Start parsing network model.", "Using random values for input x",
        "Input binding for x with dimensions 1x3x4x6 is created.",
        "Output binding for doubled with dimensions 1x3x4x6 is created.", "Starting inference",
        "=== Trace details ===", "Trace averages of 10 runs:", "=== Performance summary ===",
    ]  # fmt: skip
    at = [said.info.index(line) for line in order]
    assert at == sorted(at)
    wall = said.number(r"Total Host Walltime: (\S+) s")
    assert said.number(r"Throughput: (\S+) qps") == pytest.approx(25 / wall, rel=1e-4)
    assert said.number(r"Timing trace has (\d+) queries over \S+ s") == 25
    assert sum(line.startswith("Average on 10 runs - GPU latency: ") for line in said.info) == 2
    names = ["Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"]
    number = r"\d[\d.e+-]*"
    pattern = rf"min = {number} ms, max = {number} ms, mean = {number} ms, median = {number} ms" + (
        "".join(rf", percentile\({p}%\) = {number} ms" for p in (90, 95, 99))
    )
    found = [line.split(": ")[0] for line in said.info if re.search(pattern + "$", line)]
    assert found == names
    assert any("no shapes were provided" in line for line in said.errors)
    assert Plan.load(tmp_path / "e.engine").inputs[0].shape == (1, 3, 4, 6)


def test_what_is_measured_is_real(run, model_path, tmp_path, monkeypatch):
    """An engine that takes 5 ms is reported to take 5 ms."""
    import time

    from headrace.engine.backends.onnxruntime import OnnxRuntimeRunner

    real = OnnxRuntimeRunner.run

    def slow(self, feeds, *, to_host=True):
        time.sleep(0.005)
        return real(self, feeds, to_host=to_host)

    monkeypatch.setattr(OnnxRuntimeRunner, "run", slow)
    run(f"--onnx={model_path}", f"--exportTimes={tmp_path / 't.json'}", "--infStreams=2", *QUICK)
    rows = json.loads((tmp_path / "t.json").read_text())
    assert len(rows) == 50  # of each stream, as many as asked for
    assert list(rows[0]) == [
        "startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs", "endComputeMs",
        "startD2hMs", "endD2hMs", "h2dMs", "computeMs", "d2hMs", "latencyMs",
    ]  # fmt: skip
    assert 5 <= np.median([r["computeMs"] for r in rows]) < 9
    for row in rows:
        assert row["latencyMs"] == pytest.approx(row["h2dMs"] + row["computeMs"] + row["d2hMs"])
        assert 0 <= row["startH2dMs"] <= row["startEnqMs"] <= row["startComputeMs"]
        assert row["endComputeMs"] == row["startD2hMs"]


def test_inputs_from_files_and_outputs_to_files(run, model_path, tmp_path):
    x = np.arange(2 * 72, dtype=np.float32).reshape(2, 3, 4, 6)
    x.tofile(tmp_path / "x.bin")
    said = run(
        f"--onnx={model_path}", "--shapes=x:2x3x4x6", f"--loadInputs=x:{tmp_path / 'x.bin'}",
        f"--exportOutput={tmp_path / 'o.json'}", "--dumpOutput", *QUICK,
    )  # fmt: skip
    assert said.status == 0
    rows = {r["name"]: r for r in json.loads((tmp_path / "o.json").read_text())}
    assert rows["doubled"]["dimensions"] == "2x3x4x6"
    np.testing.assert_allclose(rows["doubled"]["values"], x.ravel() * 2)
    assert "doubled: (2x3x4x6)" in said.info
    said = run(f"--onnx={model_path}", f"--loadInputs=x:{tmp_path / 'x.bin'}", *QUICK)
    assert said.status == 1
    assert any("576 bytes" in line for line in said.errors)


def test_layers_and_their_times(run, model_path, tmp_path):
    said = run(
        f"--onnx={model_path}", "--dumpProfile", f"--exportProfile={tmp_path / 'p.json'}",
        f"--exportLayerInfo={tmp_path / 'l.json'}", "--profilingVerbosity=detailed", *QUICK,
    )  # fmt: skip
    assert said.status == 0
    assert "=== Profile (25 iterations ) ===" in said.info
    first, *rows = json.loads((tmp_path / "p.json").read_text())
    assert first == {"count": 25}
    assert sum(r["percentage"] for r in rows) == pytest.approx(100, abs=0.1)
    assert all(r["averageMs"] * 25 == pytest.approx(r["timeMs"]) for r in rows)
    layers = json.loads((tmp_path / "l.json").read_text())
    assert layers["Bindings"][0] == "x"
    assert {layer["LayerType"] for layer in layers["Layers"]} >= {"Mul"}
    assert all(layer["Precision"] == "fp32" for layer in layers["Layers"][:1])


def test_an_engine_is_saved_and_loaded(run, model_path, tmp_path):
    engine = tmp_path / "e.engine"
    said = run(
        f"--onnx={model_path}", "--minShapes=x:1x3x4x6", "--optShapes=x:2x3x4x6",
        "--maxShapes=x:4x3x4x6", f"--saveEngine={engine}", "--skipInference",
    )  # fmt: skip
    assert said.status == 0
    assert said.info[-1] == "Skipped inference phase since --skipInference is added."
    plan = Plan.load(engine)
    assert plan.header.max_batch == 4
    assert not isinstance(plan.inputs[0].shape[0], int)
    said = run(f"--loadEngine={engine}", "--shapes=x:3x3x4x6", *QUICK)
    assert said.status == 0
    assert "Input binding for x with dimensions 3x3x4x6 is created." in said.info
    said = run(f"--loadEngine={engine}", "--shapes=x:5x3x4x6", *QUICK)
    assert said.status == 1
    assert any("the engine takes 1 to 4" in line for line in said.errors)
    assert (
        "Plan was created with headrace"
        in run(f"--loadEngine={engine}", "--getPlanVersionOnly").raw[1]
    )


@pytest.mark.parametrize(
    ("word", "can"),
    [("--refit", True), ("--stripAllWeights", True), ("--weightless", False), ("--fp16", False)],
)
def test_engines_are_refittable_where_asked(run, model_path, tmp_path, word, can):
    engine = tmp_path / "e.engine"
    said = run(f"--onnx={model_path}", word, f"--saveEngine={engine}", "--skipInference")
    assert said.status == 0
    assert f"Refit: {'Enabled' if can else 'Disabled'}" in said.info
    runtime = trt.Runtime(trt.Logger())
    assert runtime.deserialize_cuda_engine(engine.read_bytes()).refittable == can
    version = run(f"--loadEngine={engine}", "--verbose", "--getPlanVersionOnly")
    assert "Plan was created with headrace" in "".join(version.raw)


def test_several_dynamic_inputs_of_integers(run, tmp_path):
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "length"])
    mask = helper.make_tensor_value_info("mask", TensorProto.INT64, ["n", "length"])
    out = helper.make_tensor_value_info("out", TensorProto.INT64, ["n", "length"])
    graph = helper.make_graph([helper.make_node("Add", ["ids", "mask"], ["out"])], "g",
                              [ids, mask], [out])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "ids.onnx")
    said = run(f"--onnx={tmp_path / 'ids.onnx'}", "--shapes=ids:2x7,mask:2x7", *QUICK)
    assert said.status == 0
    assert "Output binding for out with dimensions 2x7 is created." in said.info


def test_a_model_without_a_batch(run, tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [])
    graph = helper.make_graph([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], "g",
                              [x], [y])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "sum.onnx")
    said = run(f"--onnx={tmp_path / 'sum.onnx'}", "--shapes=x:5", "--dumpOutput", *QUICK)
    assert said.status == 0, said.errors
    assert "Input binding for x with dimensions 5 is created." in said.info


@pytest.mark.slow
def test_a_calibration_table_makes_int8(run, data_dir, tmp_path):
    from headrace.engine.precision.cache import CalibrationTable

    path = data_dir / "models" / "version-RFB-320.onnx"
    names = [o for n in onnx.load(path).graph.node for o in n.output] + ["input"]
    CalibrationTable.of(dict.fromkeys(names, 0.05)).save(tmp_path / "table.txt")
    said = run(
        f"--onnx={path}", "--int8", f"--calib={tmp_path / 'table.txt'}", "--skipInference",
        f"--exportLayerInfo={tmp_path / 'l.json'}", "--profilingVerbosity=detailed",
    )  # fmt: skip
    assert said.status == 0, said.errors
    assert "Precision: FP32+INT8" in said.info
    rows = json.loads((tmp_path / "l.json").read_text())["Layers"]
    assert {r["Precision"] for r in rows if r["LayerType"] == "Conv"} == {"int8"}


def test_types_of_outputs(run, model_path, tmp_path):
    engine = tmp_path / "e.engine"
    said = run(f"--onnx={model_path}", "--outputIOFormats=fp16:chw,fp32:chw",
               f"--saveEngine={engine}", *QUICK)  # fmt: skip
    assert said.status == 0, said.errors
    types = {spec.name: spec.dtype for spec in Plan.load(engine).outputs}
    assert types == {"doubled": np.float16, "mean": np.float32}
    bad = run(f"--onnx={model_path}", "--outputIOFormats=fp16:hwc8", *QUICK)
    assert bad.status == 1


def test_precisions_of_layers_by_patterns(run, tmp_path):
    from onnx import TensorProto, helper

    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy"]
    names = ["block.0", "block.1", "head"]
    values = ["x", "a", "b", "y"]
    nodes = [helper.make_node("Sigmoid", [i], [o], name=n)
             for n, i, o in zip(names, values, values[1:], strict=False)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    path = tmp_path / "m.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )

    def said(spec):
        done = run(f"--onnx={path}", "--skipInference", f"--layerPrecisions={spec}")
        return done.status, "\n".join([*done.info, *done.errors])

    def halves(spec):
        status, text = said(spec)
        assert status == 0, text
        return [int(n) for n in re.findall(r"(\d+) nodes? (?:is|are) FP16", text)]

    assert halves("head:fp16") == [1]
    assert halves("block*:fp16") == [2]
    assert halves("'block.*':fp16,block.1:fp32") == [1]
    assert halves("*.1:fp16,head:int32") == [1]
    assert run(f"--onnx={path}", "--skipInference", "--fp16").status == said("*:fp16")[0] == 0
    assert "FP16 is not computed faster here" in said("*:fp16")[1] or halves("*:fp16") == [3]
    for spec, words in (("*:fp64", "has the item '*:fp64'"), ("nothing*:fp16", "is called like")):
        status, text = said(spec)
        assert status == 1
        assert words in text


@pytest.mark.parametrize(
    ("words", "said_why"),
    [
        (["--shapes=y:1x3x4x6"], "Cannot find input tensor with name 'y'"),
        (["--shapes=x:1x3x5x6"], "does not take the shape 1x3x5x6"),
        (["--plugins=none.so"], "none.so"),
        (["--saveEngine=/nowhere/e.engine"], "/nowhere"),
    ],
)
def test_failures_fail(run, model_path, words, said_why):
    said = run(f"--onnx={model_path}", *words, *QUICK)
    assert said.status == 1
    assert said.raw[-1].startswith("&&&& FAILED TensorRT.trtexec")
    assert any(said_why in line for line in said.errors)


def test_a_model_that_cannot_be_read(run, tmp_path):
    said = run(f"--onnx={tmp_path / 'none.onnx'}")
    assert said.status == 1
    assert said.errors[-1] == "Engine set up failed"


def test_a_static_model_does_not_take_other_shapes(run, tmp_path):
    path = save(image_model((1, 3, 4, 6)), tmp_path / "s.onnx")
    assert run(f"--onnx={path}", "--shapes=x:1x3x4x6", *QUICK).status == 0
    said = run(f"--onnx={path}", "--shapes=x:2x3x4x6", *QUICK)
    assert said.status == 1
    assert any("is static" in line for line in said.errors)


def test_help_and_nothing(run):
    for words in ([], ["--help"], ["-h"]):
        said = run(*words)
        assert said.status == 0
        assert said.raw[-1].startswith("&&&& PASSED")
        assert any("--onnx=FILE" in line for line in said.raw)


def test_an_unknown_option_prints_the_help_and_fails(run):
    said = run("--nosuch=1")
    assert (said.status, said.errors) == (1, ["Unknown option: --nosuch 1"])
    assert any("--onnx=FILE" in line for line in said.raw)
    assert said.raw[-1].startswith("&&&& FAILED")


def test_what_has_no_effect_is_named_once(run, model_path):
    said = run(f"--onnx={model_path}", "--useCudaGraph", "--useCudaGraph", *QUICK)
    assert sum("--useCudaGraph" in line for line in said.errors) == 1


def test_caffe_and_uff(run, data_dir):
    models = data_dir / "models"
    said = run(
        f"--deploy={models / 'RFB-320.prototxt'}", f"--model={models / 'RFB-320.caffemodel'}",
        "--batch=2", *QUICK,
    )  # fmt: skip
    assert said.status == 0, said.errors
    assert "Batch: 2" in said.info
    assert said.number(r"Timing trace has (\d+) queries over \S+ s") == 50
    said = run(f"--uff={models / 'lenet5.uff'}", "--uffInput=input_1,1,28,28", *QUICK)
    assert said.status == 0, said.errors


@pytest.mark.slow
def test_tuning_keeps_its_times_in_the_file(run, model_path, tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.cli.trtexec.engine.LEVEL_BUDGETS_S", (0, 5))
    cache = tmp_path / "times.cache"
    words = [f"--onnx={model_path}", f"--timingCacheFile={cache}", "--backend=onnxruntime",
             "--builderOptimizationLevel=1", "--skipInference"]  # fmt: skip
    assert run(*words).status == 0
    before = cache.read_bytes()
    said = run(*words)
    assert any("known from the timing cache" in line for line in said.info)
    assert cache.read_bytes()[:2] == before[:2] == b"PK"
    cache.write_bytes(b"precious")
    said = run(*words)
    assert any("neither read nor written" in line for line in said.errors)
    assert cache.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "option", ["saveEngine", "exportTimes", "exportOutput", "exportProfile", "exportLayerInfo"]
)
def test_reports_replace_reports_alone(run, model_path, tmp_path, option):
    """What cannot be meant is refused before anything is built."""
    (tmp_path / "notes.txt").write_text("precious")
    for victim in (model_path, tmp_path / "notes.txt"):
        before = victim.read_bytes()
        said = run(f"--onnx={model_path}", f"--{option}={victim}", "--skipInference")
        assert said.status == 1
        assert any("is not overwritten" in line for line in said.errors)
        assert victim.read_bytes() == before
    said = run(f"--onnx={model_path}", f"--{option}={tmp_path}/no/file")
    assert said.status == 1
    assert "Start parsing network model." not in said.info
    assert "no such folder" in said.errors[0]


def test_two_reports_do_not_share_a_file(run, model_path, tmp_path):
    file = tmp_path / "x.json"
    said = run(f"--onnx={model_path}", f"--exportTimes={file}", f"--exportOutput={file}", *QUICK)
    assert said.status == 1
    assert "--exportTimes and --exportOutput write the same file" in said.errors[0]
    assert not file.exists()


def test_a_report_is_not_written_through_a_link(run, model_path, tmp_path):
    (tmp_path / "real.json").write_text("[]")
    (tmp_path / "link.json").symlink_to("real.json")
    said = run(f"--onnx={model_path}", f"--exportTimes={tmp_path / 'link.json'}", *QUICK)
    assert said.status == 1
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "[]"


@pytest.mark.parametrize(
    "words",
    [
        ("--uff=m.uff", "--uffInput=in,\N{SUPERSCRIPT TWO},1,1"),
        ("--onnx=m.onnx", "--precisionConstraints=perhaps"),
        ("--onnx=m.onnx", "--profilingVerbosity=loud"),
    ],
)
def test_values_that_are_none(run, words):
    said = run(*words)
    assert said.status == 1
    assert words[1] in said.errors[0]
