"""Engines in a precision: what is built for what is asked, what makes it stale, what is told."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace.config import ModelConfig
from headrace.config.enums import NetworkMode
from headrace.engine import machine
from headrace.engine.backends import installed_backends
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plan import MODEL_BLOB
from headrace.engine.precision import CalibrationTable, capability, export, rules
from headrace.engine.precision import lower as lowering
from headrace.engine.precision.capability import choose
from headrace.engine.precision.rules import PrecisionRules
from headrace.engine.tactic import Tactic
from headrace.engine.tuning.tune import TuneOptions, Version, tune
from headrace.errors import ConfigError, EngineError
from headrace.infer.model import load_or_build
from headrace.network.tensor_spec import TensorSpec
from tests.engine.precision.graphs import layer_table, network_of, ranges_of, run, small_net, sqnr
from tests.engine.precision.graphs import model as graph_of

IMAGE = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)
SCALES = {n: r / 127 for n, r in ranges_of(small_net(), {"image": IMAGE}).items()}
FAST = frozenset({"tensorrt"})


@pytest.fixture
def config(tmp_path):
    """Configs of the small network with a calibration table beside it."""
    onnx.save(small_net(), tmp_path / "net.onnx")
    CalibrationTable.of(SCALES).save(tmp_path / "net.calib")

    def make(mode=NetworkMode.INT8, *, table=True, **values):
        calib = tmp_path / "net.calib" if table else None
        return ModelConfig(
            onnx_file=tmp_path / "net.onnx", network_mode=mode, int8_calib_file=calib,
            batch_size=2, **values,
        )  # fmt: skip

    return make


@pytest.fixture
def processor(monkeypatch):
    """Sets the instructions of the CPU."""

    def have(*flags):
        monkeypatch.setattr(machine, "cpu_flags", lambda: frozenset(flags))
        machine.exact_int8.cache_clear()

    yield have
    machine.exact_int8.cache_clear()


def words(plan, level=None):
    return "\n".join(str(n) for n in plan.decisions if level in (None, n.level))


def outputs_of(plan):
    with plan.open_session(threads=1) as session:
        return session.run({"image": IMAGE})


def layers_of(plan):
    model = onnx.load_from_string(plan.blobs[MODEL_BLOB])
    return {name: precision for name, _, precision in layer_table(model)}


@pytest.mark.parametrize(
    ("asked", "runtime", "table", "built", "level"),
    [
        ("fp32", "plain", False, "fp32", None),
        ("fp16", "plain", False, "fp32", "info"),
        ("fp16", "tensorrt", False, "fp16", None),
        ("int8", "plain", True, "int8", None),
        ("int8", "plain", False, "fp32", "warning"),
        ("int8", "tensorrt", False, "fp16", "warning"),
        ("best", "plain", True, "int8", "info"),
        ("best", "plain", False, "fp32", "warning"),
        ("best", "tensorrt", True, "best", None),
        ("best", "tensorrt", False, "fp16", "warning"),
    ],
)
def test_the_chain_of_fall_backs(monkeypatch, asked, runtime, table, built, level):
    monkeypatch.setattr(capability, "fast_fp16", lambda name: name in FAST)
    got, notice = choose(asked, [runtime], no_table=None if table else "there is none")
    assert got == built
    assert (notice.level if notice else None) == level
    if level == "warning":
        assert "there is none" in notice.sentence


@pytest.mark.parametrize("asked", ["fp16", "bf16", "best", "int8"])
def test_a_required_precision_is_built_whether_it_is_faster_or_not(monkeypatch, asked):
    monkeypatch.setattr(capability, "fast_fp16", lambda name: False)
    assert choose(asked, ["plain"], required=True) == (asked, None)


def test_a_calibration_table_becomes_scales_in_the_engine(config):
    plan = load_or_build(config())
    assert plan.path.name == "net.onnx_b2_gpu0_int8.engine"
    assert plan.header.precision == "int8"
    assert "3 of 3 layers with weights compute in INT8" in words(plan, "info")
    assert not words(plan, "warning")
    model = onnx.load_from_string(plan.blobs[MODEL_BLOB])
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    scale = next(n.input[1] for n in model.graph.node if n.op_type == "QuantizeLinear")
    assert stored[scale] == np.float32(SCALES["image"])
    reference = run(small_net().SerializeToString(), {"image": IMAGE})
    noise = [sqnr(a, b) for a, b in zip(reference, outputs_of(plan).values(), strict=True)]
    assert min(noise) > 20
    assert max(noise) < 60  # it is quantised
    assert "loaded" in words(load_or_build(config()))


def test_reports_of_tensors_without_scales_and_scales_without_tensors(config, tmp_path):
    CalibrationTable.of({**SCALES, "row": 0.0, "theirs": 1.0}).save(tmp_path / "net.calib")
    for _ in range(2):  # built, then loaded
        told = words(load_or_build(config()), "warning")
        assert "no scale for 1 tensor(s) of the graph: 'row'" in told
        assert "calibrated tensors are not in the graph: 'theirs'" in told


def test_what_makes_an_int8_engine_stale(config, tmp_path):
    load_or_build(config())
    table = tmp_path / "net.calib"
    table.write_bytes(table.read_bytes())
    assert "loaded" in words(load_or_build(config()))
    CalibrationTable.of({n: s * 2 for n, s in SCALES.items()}).save(table)
    assert "engine not used: int8-calib-file changed" in words(load_or_build(config()))
    named = config(model_engine_file=tmp_path / "net.onnx_b2_gpu0_int8.engine")
    CalibrationTable.of(SCALES).save(table)
    assert "engine not used: int8-calib-file changed" in words(load_or_build(named), "warning")
    pinned = config(layer_device_precision=("conv1:fp32:gpu",))
    plan = load_or_build(pinned)
    assert "engine not used: layer-device-precision= ≠ conv1:fp32" in words(plan)
    assert "2 of 3 layers with weights" in words(plan)
    assert "loaded" in words(load_or_build(pinned))
    # an engine in FP32 knows nothing of the table
    load_or_build(config(NetworkMode.FP32))
    table.unlink()
    assert "loaded" in words(load_or_build(config(NetworkMode.FP32)))


def test_without_its_table_int8_falls_back_once_and_says_why(config, tmp_path):
    (tmp_path / "net.calib").unlink()
    for _ in range(2):
        plan = load_or_build(config())
        assert plan.path.name.endswith("_fp32.engine")
        told = words(plan, "warning")
        assert told.count("\n") == 0
        assert "network-mode=1" in told
        assert "there is no file net.calib" in told
    (tmp_path / "net.calib").write_text("TRT-1-EntropyCalibration2\nimage: zz\n")
    with pytest.raises(EngineError, match=r"net\.calib:2"):
        load_or_build(config())
    assert load_or_build(config(NetworkMode.FP16)).header.precision == "fp32"  # never read


def test_a_table_of_another_model_is_a_warning_and_fp32(config, tmp_path):
    CalibrationTable.of({"data": 0.1}).save(tmp_path / "net.calib")
    for _ in range(2):
        plan = load_or_build(config())
        assert plan.header.precision == "fp32"
        assert plan.path.name.endswith("_int8.engine")  # as the original names it
        assert "INT8 cannot be built: no layer can be quantised" in words(plan, "warning")
    a, b = outputs_of(plan), run(small_net().SerializeToString(), {"image": IMAGE})
    np.testing.assert_allclose(a["scores"], b[0], rtol=1e-5, atol=1e-6)


def test_a_runtime_that_cannot_is_a_warning_and_fp32(config):
    plan = load_or_build(config(), precision="bf16", backend="onnxruntime")
    assert plan.header.precision == "fp32"
    assert "BF16 cannot be built: node 'conv1'" in words(plan, "warning")
    assert "BF16; " not in words(plan)


@pytest.mark.parametrize("precision", ["fp16", "best"])
def test_a_required_precision_is_in_the_graph(config, precision):
    plan = load_or_build(config(NetworkMode.FP32), precision=precision)
    assert plan.header.precision == precision
    assert plan.path.name.endswith(f"_{precision}.engine")
    assert {a.dtype for a in outputs_of(plan).values()} == {np.dtype(np.float32)}
    again = load_or_build(config(NetworkMode.FP32), precision=precision)
    assert "loaded" in words(again)
    named = load_or_build(config(NetworkMode.FP32, model_engine_file=plan.path))
    assert named.header.precision == precision
    assert f"the engine was built for {precision}" in words(named)


def test_pinned_layers(config):
    pins = ("conv1:int8:gpu", "product:fp16:dla", "relu:int8:gpu", "gone:fp32:gpu")
    plan = load_or_build(config(NetworkMode.FP32, layer_device_precision=pins), precision="fp32")
    table = layers_of(plan)
    assert table["conv1"] == "int8"
    assert table["product"] == "fp16"
    assert {table["relu"], table["add"], table["resize"]} == {"fp32"}
    told = words(plan, "warning")
    assert "'gone'" in told
    assert "pinned to int8, but without weights of their own: 'relu'" in told
    assert "there is no DLA here for product" in words(plan, "info")
    # by network-mode alone FP16 that is not faster is FP32
    plan = load_or_build(config(layer_device_precision=("conv1:fp16:gpu",)))
    table = layers_of(plan)
    assert (table["conv1"], table["product"]) == ("fp32", "int8")
    assert "FP32 for conv1" in words(plan, "info")


def test_int8_pins_without_a_table_are_told(config):
    pins = ("conv1:int8:gpu",)
    cfg = config(NetworkMode.FP32, table=False, layer_device_precision=pins)
    plan = load_or_build(cfg)
    assert plan.header.precision == "fp32"
    assert "int8 needs a calibration table: int8-calib-file is not given" in words(plan, "warning")


def test_types_of_outputs(config, tmp_path):
    reference = run(small_net().SerializeToString(), {"image": IMAGE})
    formats = ("scores:fp16:chw", "map:int8:chw32")
    plan = load_or_build(config(NetworkMode.FP32, output_io_formats=formats))
    assert [s.dtype for s in plan.outputs] == [np.float16, np.int8]
    assert plan.header.precision == "fp32"  # what is computed in
    assert "linear (chw) here, not packed: map (chw32)" in words(plan, "info")
    got = outputs_of(plan)
    np.testing.assert_allclose(got["scores"], reference[0], rtol=2e-3, atol=1e-3)
    scale = SCALES["map"]
    assert abs(got["map"] * scale - reference[1]).max() <= scale * 0.51
    plain = load_or_build(config(NetworkMode.FP32))
    assert "output-io-formats=map:int8;scores:fp16 ≠ " in words(plain)
    formats = ("scores:int32:chw", "map:int8:chw")
    bare = load_or_build(config(NetworkMode.FP32, table=False, output_io_formats=formats))
    assert [s.dtype for s in bare.outputs] == [np.int32, np.float32]
    assert "map has no scale for int8" in words(bare, "warning")
    with pytest.raises(EngineError, match="no output boxes"):
        load_or_build(config(output_io_formats=("boxes:fp32:chw",)))
    for bad in ("scores", "scores:fp64:chw", "scores:fp16:hwc", ":fp16:chw"):
        with pytest.raises(ConfigError, match="layer:type:format"):
            load_or_build(config(output_io_formats=(bad,)))


def test_weights_have_seven_bits_where_eight_would_overflow(config, processor):
    if "openvino" not in installed_backends():
        pytest.skip("openvino is not installed")
    processor("avx2")
    plan = load_or_build(config(), backend="openvino")
    assert plan.header.rules.weight_bits == 7
    model = onnx.load_from_string(plan.blobs[MODEL_BLOB])
    stored = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer]
    assert max(abs(a.astype(int)).max() for a in stored if a.dtype == np.int8 and a.ndim) == 64
    reference = run(small_net().SerializeToString(), {"image": IMAGE})
    assert sqnr(reference[0], outputs_of(plan)["scores"]) > 20
    processor("avx2", "avx512_vnni")
    assert "loaded" in words(load_or_build(config(), backend="openvino"))
    exact = load_or_build(config(), backend="openvino", rebuild=True)
    assert exact.header.rules.weight_bits == 8
    processor("avx2")
    again = load_or_build(config(), backend="openvino")
    assert "its INT8 weights overflow on a CPU without VNNI" in words(again)


def test_int8_runs_on_the_runtime_it_was_made_for(config, tmp_path):
    plan = load_or_build(config(), backend="onnxruntime")
    with pytest.raises(EngineError, match="made for onnxruntime, not for openvino"):
        plan.open_session(tactic=Tactic("openvino"))
    if "openvino" in installed_backends():
        own = export(network_of(small_net()), "int8", SCALES)
        plan = build(own.network, BuildOptions(runtime="openvino"))
        assert "--backend onnxruntime computes the model's own" in words(plan, "warning")
        assert not words(build(own.network), "warning")


def test_a_build_of_int8_reports_its_speed_beside_fp32(config):
    plan = load_or_build(config(), backend="onnxruntime")
    (speed,) = (n for n in plan.decisions if n.code in ("int8-speed", "int8-slower"))
    assert speed.data["int8"] == speed.data["fp32"] == "onnxruntime"
    assert (speed.code == "int8-slower") == ("network-mode=0" in str(speed))
    assert plan.header.tuning is None  # --tune still has all ways to compare


def test_a_model_with_pairs_of_its_own_says_so(tmp_path):
    made = onnx.load_from_string(export(network_of(small_net()), "int8", SCALES).to_bytes())
    onnx.save(made, tmp_path / "q.onnx")
    CalibrationTable.of(SCALES).save(tmp_path / "t.calib")
    plan = load_or_build(ModelConfig(onnx_file=tmp_path / "q.onnx", batch_size=2))
    assert plan.header.precision == "int8"
    assert plan.path.name.endswith("_fp32.engine")  # nothing was asked for
    cfg = ModelConfig(
        onnx_file=tmp_path / "q.onnx", batch_size=2, network_mode=NetworkMode.INT8,
        int8_calib_file=tmp_path / "t.calib",
    )  # fmt: skip
    plan = load_or_build(cfg)
    assert "scales are in the model" in words(plan, "info")
    assert plan.path.name.endswith("_int8.engine")
    model = onnx.load_from_string(plan.blobs[MODEL_BLOB])
    assert sum(n.op_type == "QuantizeLinear" for n in model.graph.node) == 3


class TestTuning:
    @pytest.fixture(autouse=True)
    def cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HEADRACE_TIMING_CACHE", str(tmp_path / "timings"))

    def options(self):
        tactics = [Tactic("onnxruntime", 1, 1)]
        return TuneOptions(budget_s=30, tactics=tactics, runtimes=["onnxruntime"])

    @pytest.mark.slow
    def test_best_tries_each_precision(self, config):
        plan = load_or_build(config(NetworkMode.BEST), tuning=self.options())
        assert plan.path.name.endswith("_best.engine")
        assert [t.precision for t in plan.header.tactics] == ["fp32", "int8"]
        assert {t.outcome for t in plan.header.tactics} <= {"measured", "ok"}
        assert plan.header.precision == plan.tactic.precision
        assert f" in {plan.tactic.precision}, " in words(plan)
        again = load_or_build(config(NetworkMode.BEST), tuning=self.options(), rebuild=True)
        assert "known from the timing cache" in words(again)
        assert again.header.precision == plan.header.precision
        assert "loaded" in words(load_or_build(config(NetworkMode.BEST), tuning=self.options()))

    @pytest.mark.slow
    def test_each_precision_is_compared_with_itself(self, monkeypatch):
        """A graph that claims to be INT8 and is not like FP32 at all is right all the same if it
        is computed as it stands; a runtime that saturates is wrong."""
        other = small_net(seed=3).SerializeToString()
        specs = [TensorSpec("image", np.dtype(np.float32), (None, 3, 8, 8))]
        for precision, outcome in (("int8", "measured"), ("fp32", "wrong")):
            tuned = tune(
                small_net().SerializeToString(),
                specs,
                {"image": IMAGE},
                items=2,
                versions=[Version(precision, other)],
                options=self.options(),
            )
            assert [t.outcome for t in tuned.records] == [outcome]


def test_openvino_says_how_many_layers_it_computes_in_fp16(config):
    if "openvino" not in installed_backends():
        pytest.skip("openvino is not installed")
    plan = load_or_build(config(NetworkMode.FP32), precision="fp16", backend="openvino")
    told = [f"{n}" for n in plan.decisions if n.code == "layers-precision"]
    if capability.fast_fp16("openvino"):
        assert "openvino computes" in told[-1]
        halves = int(told[-1].split("computes ")[1].split()[0])
        assert halves > 0
    else:
        assert "openvino computes them in FP32 here and rounds nothing" in told[0]


def test_openvino_without_fp16_rounds_nothing_and_says_so(config, monkeypatch):
    monkeypatch.setattr(lowering, "fast_fp16", lambda name: False)
    lowered = lowering.lower(network_of(small_net()), "fp16", PrecisionRules(), ["openvino"])
    assert "openvino computes them in FP32 here and rounds nothing" in f"{lowered.notices[0]}"
    assert "--backend onnxruntime rounds" in f"{lowered.notices[0]}"


def test_each_runtime_gets_the_fp16_that_it_computes(config):
    groups = lowering.tuned_precisions("fp16", PrecisionRules(), ["onnxruntime", "openvino"])
    assert groups == [("fp16", ("onnxruntime",)), ("fp16", ("openvino",))]


def test_build_by_code_takes_scales(monkeypatch):
    network = network_of(small_net())
    table = CalibrationTable.of(SCALES)
    plan = build(network, BuildOptions(precision="int8", rules=PrecisionRules(table=table)))
    assert plan.header.precision == "int8"
    plan = build(network, BuildOptions(precision="fp16", exact=True))
    assert plan.header.precision == "fp16"
    assert (
        network.to_proto().SerializeToString()
        == network_of(small_net()).to_proto().SerializeToString()
    )


def test_layers_and_their_precision():
    made = export(network_of(small_net()), "best", SCALES, keep=["product"])
    table = {n: p for n, _, p in layer_table(made.network.to_proto())}
    assert table["conv1"] == "int8"
    assert table["add"] == "fp16"
    assert table["product"] == "fp32"
    odd = helper.make_model(
        helper.make_graph(
            [helper.make_node("ArgMax", ["x"], ["y"], "top")],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
            [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        )
    )
    assert [tuple(row) for row in layer_table(odd)] == [("top", "ArgMax", "int64")]


def test_rules_of_a_plan_are_short(config):
    many = tuple(f"layer{i}:fp32:gpu" for i in range(2000))
    made = rules.PrecisionRules(pins=dict.fromkeys(many, "fp32")).record("int8")
    assert len(made.layers) < 200


def test_openvino_gets_activations_around_128(config, processor):
    """It cuts off signed ones that come out of a Concat: values are the same either way."""
    if "openvino" not in installed_backends():
        pytest.skip("openvino is not installed")
    processor("avx2", "avx512_vnni")  # weights of 8 bits in both
    model = onnx.load_from_string(load_or_build(config(), backend="openvino").blobs[MODEL_BLOB])
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    zeros = {stored[n.input[2]].item() for n in model.graph.node if n.op_type == "QuantizeLinear"}
    assert zeros == {128}
    onnx.checker.check_model(model, full_check=True)
    signed = export(network_of(small_net()), "int8", SCALES).to_bytes()
    for a, b in zip(
        run(signed, {"image": IMAGE}),
        run(model.SerializeToString(), {"image": IMAGE}),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_openvino_computes_int8_behind_a_concat_as_it_stands():
    if "openvino" not in installed_backends():
        pytest.skip("openvino is not installed")
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Concat", ["image", "image"], ["both"], "concat", axis=1),
        helper.make_node("Conv", ["both", "w"], ["y"], "conv", pads=[1, 1, 1, 1]),
    ]
    weights = {"w": rng.normal(0, 1, (8, 6, 3, 3)).astype(np.float32)}
    proto = graph_of(nodes, {"image": ["n", 3, 8, 8]}, {"y": ["n", 8, 8, 8]}, weights)
    table = CalibrationTable.of({"both": 1 / 127})
    plans = [
        build(
            network_of(proto),
            BuildOptions(
                precision="int8", rules=PrecisionRules(table=table), runtime=runtime, max_batch=2
            ),
        )
        for runtime in ("onnxruntime", "openvino")
    ]
    a, b = (outputs_of(plan)["y"] for plan in plans)
    assert sqnr(a, b) > 25
