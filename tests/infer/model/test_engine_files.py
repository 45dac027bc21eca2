"""Engines of one model for several configs and ways of running, side by side."""

import os
import struct
import sys
import types

import numpy as np
import pytest

from headrace._core.formats.tensorrt import built_by, is_tensorrt_file, without_wrapper
from headrace.config import ModelConfig
from headrace.config.enums import TensorOrder
from headrace.engine import Plan
from headrace.engine.backends import BACKENDS
from headrace.engine.tactic import Tactic
from headrace.engine.tuning.tune import TuneOptions
from headrace.errors import EngineError
from headrace.infer.model import load_or_build
from headrace.network.tensor_spec import TensorSpec
from tests.engine.plan_bytes import build_header, reseal
from tests.network.onnx_models import image_model, save

USUAL = "m.onnx_b1_gpu0_fp32.engine"


def said(plan):
    return "\n".join(map(str, plan.decisions))


def built(plan):
    return "built from" in said(plan)


def engines(folder):
    return sorted(p.name for p in folder.glob("*.engine"))


@pytest.fixture
def free_model(tmp_path):
    return save(image_model(("n", 3, "h", "w")), tmp_path / "m.onnx")


def test_configs_of_other_sizes_keep_an_engine_each(free_model, tmp_path):
    small, large = (
        ModelConfig(onnx_file=free_model, infer_dims=dims) for dims in ((3, 4, 6), (3, 8, 6))
    )
    first = load_or_build(small)
    assert first.path.name == USUAL  # as the original names it
    second = load_or_build(large)
    assert built(second)
    assert second.path.name.startswith("m.onnx_b1_gpu0_fp32_")
    for _ in range(2):
        for cfg, path in ((small, first.path), (large, second.path)):
            plan = load_or_build(cfg)
            assert not built(plan)
            assert plan.path == path
            assert "not used" not in said(plan)
    assert len(engines(tmp_path)) == 2
    save(image_model(("n", 3, "h", "w"), scale=3.0), free_model)
    for cfg in (large, small, large, small):  # each replaces its own stale one, once
        load_or_build(cfg)
    assert len(engines(tmp_path)) == 2
    assert not built(load_or_build(large))


def test_axis_orders_and_outputs_tell_configs_apart(tmp_path):
    path = save(image_model(("n", "a", "b", "c")), tmp_path / "m.onnx")
    nchw = ModelConfig(onnx_file=path, infer_dims=(3, 4, 6))
    nhwc = nchw.with_overrides(network_input_order=TensorOrder.NHWC)
    typed = nchw.with_overrides(output_io_formats=("mean:fp16:chw",))
    for cfg in (nchw, nhwc, typed):
        assert built(load_or_build(cfg))
    for cfg in (nchw, nhwc, typed) * 2:
        assert not built(load_or_build(cfg))
    assert len(engines(tmp_path)) == 3


def test_the_way_chosen_last_has_the_usual_name_and_the_others_are_kept(config, tmp_path):
    one, two = Tactic("onnxruntime", 1, 1), Tactic("onnxruntime", 1, 2)
    assert load_or_build(config(), tactic=one).path.name == USUAL
    plan = load_or_build(config(), tactic=two)
    assert plan.path.name == USUAL
    assert "built from m.onnx; the engine before is kept as m.onnx_b1_gpu0_fp32_" in said(plan)
    assert said(plan).count("runs as onnxruntime:threads=1,streams=1") == 1
    assert load_or_build(config()).tactic.tactic == two
    for tactic in (one, two, one):
        plan = load_or_build(config(), tactic=tactic)
        assert not built(plan)
        assert plan.path.name == USUAL
        assert load_or_build(config()).tactic.tactic == tactic
    assert len(engines(tmp_path)) == 2
    for name in engines(tmp_path):
        Plan.load(tmp_path / name)


def test_ways_of_running_of_a_further_config(free_model, tmp_path):
    """The same for the config whose engine has a key."""
    load_or_build(ModelConfig(onnx_file=free_model, infer_dims=(3, 4, 6)))
    cfg = ModelConfig(onnx_file=free_model, infer_dims=(3, 8, 6))
    one, two = Tactic("onnxruntime", 1, 1), Tactic("onnxruntime", 1, 2)
    assert all(built(load_or_build(cfg, tactic=tactic)) for tactic in (one, two))
    for tactic in (one, two, one):
        assert not built(load_or_build(cfg, tactic=tactic))
        plan = load_or_build(cfg)
        assert plan.tactic.tactic == tactic
        assert plan.inputs[0].shape[2] == 8
    assert len(engines(tmp_path)) == 3


def test_a_folder_that_cannot_be_written_still_serves_what_is_there(config, monkeypatch):
    one, two = Tactic("onnxruntime", 1, 1), Tactic("onnxruntime", 1, 2)
    for tactic in (one, two):
        load_or_build(config(), tactic=tactic)

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr("headrace.infer.model.engine_files.os.replace", refused)
    plan = load_or_build(config(), tactic=one)
    assert not built(plan)
    assert plan.tactic.tactic == one


def rewritten(path, **changes):
    data = path.read_bytes()
    path.write_bytes(reseal(data, build_header(data) | changes))


@pytest.mark.parametrize("how", ["format", "field"])
def test_the_engine_of_a_newer_headrace_is_left_alone(config, tmp_path, how):
    path = load_or_build(config()).path
    if how == "format":
        data = bytearray(path.read_bytes())
        struct.pack_into("<I", data, 8, 99)
        path.write_bytes(data)
    else:
        rewritten(path, headrace="99.0", invented=1)
    before = path.read_bytes()
    plan = load_or_build(config())
    assert built(plan)
    assert "newer headrace wrote it" in said(plan) or "headrace 99.0 wrote it" in said(plan)
    assert plan.path != path
    again = load_or_build(config())
    assert again.path == plan.path
    assert not built(again)
    assert path.read_bytes() == before


def test_a_tuned_engine_outlives_its_runtime(config):
    tuning = TuneOptions(
        budget_s=5, tactics=[Tactic("onnxruntime", 1, 1)], runtimes=["onnxruntime"]
    )
    path = load_or_build(config(), tuning=tuning).path
    header = build_header(path.read_bytes())
    rewritten(path, runtime={"name": "onnxruntime", "version": "0.1"})
    plan = load_or_build(config())
    assert not built(plan)
    assert "tuned with onnxruntime 0.1, here is" in said(plan)
    rewritten(path, tuning=header["tuning"] | {"machine": "Abacus 3000"})
    plan = load_or_build(config())
    assert "tuned on Abacus 3000, here is" in said(plan)
    assert "headrace build --tune measures anew" in said(plan)


# Engines of TensorRT's.


class Runner:
    """What the real backend makes of an engine."""

    device = "cpu"
    max_batch = 4
    inputs = (TensorSpec("x", np.dtype("float32"), (None, 3, 4, 6)),)
    outputs = (TensorSpec("doubled", np.dtype("float32"), (None, 3, 4, 6)),)

    def run(self, feeds, *, to_host=True):
        return [feeds["x"] * 2]

    def close(self):
        pass


class Backend:
    name = "tensorrt"
    opened: list = []  # noqa: RUF012

    def version(self):
        return "tensorrt 8.6.1"

    def why_not(self):
        return None

    def compile(self, model, options):
        raise AssertionError

    def open(self, model, options, compiled=None):
        self.opened.append(compiled)
        return Runner()


@pytest.fixture
def tensorrt(monkeypatch):
    module = types.ModuleType("fake_tensorrt_backend")
    module.backend = Backend()
    monkeypatch.setitem(sys.modules, "fake_tensorrt_backend", module)
    monkeypatch.setitem(BACKENDS, "tensorrt", "fake_tensorrt_backend")
    return module.backend


ENGINE = b"ftrt" + bytes(20) + bytes([8, 6, 1, 6]) + b"code" * 20


def test_tensorrt_runs_its_own_engine(config, tensorrt, tmp_path):
    path = tmp_path / "m.onnx_b4_gpu0_fp16.engine"
    path.write_bytes(ENGINE)
    plan = load_or_build(ModelConfig(model_engine_file=path, batch_size=4))
    assert plan.header.runtime.name == "tensorrt"
    assert plan.header.precision == "fp16"
    assert plan.header.max_batch == 4
    with plan.open_session() as session:
        out = session.run({"x": np.ones((2, 3, 4, 6), np.float32)})
    assert (out["doubled"] == 2).all()
    assert tensorrt.opened[-1] == ENGINE
    # with a model beside it too: nothing tells whether it is of that model, as in the original
    plan = load_or_build(config(model_engine_file=path, batch_size=4))
    assert plan.header.runtime.name == "tensorrt"
    plan = load_or_build(config(model_engine_file=path, batch_size=8))
    assert "batch 4 ≠ 8" in said(plan)
    assert built(plan)
    assert path.read_bytes() == ENGINE


def test_without_tensorrt_the_model_is_built_or_the_way_out_told(config, tmp_path):
    path = tmp_path / "a.engine"
    path.write_bytes(ENGINE)
    plan = load_or_build(config(model_engine_file=path))
    assert built(plan)
    warning = next(n for n in plan.decisions if n.level == "warning")
    assert "built by TensorRT 8.6.1.6; it cannot be run here: " in warning.sentence
    with pytest.raises(EngineError, match=r"built by TensorRT 8\.6\.1\.6") as caught:
        load_or_build(ModelConfig(model_engine_file=path))
    assert "onnx-file=" in str(caught.value)


def test_metadata_in_front_of_an_engine_is_taken_off(tmp_path):
    text = b'{"stride": 32}'
    wrapped = struct.pack("<I", len(text)) + text + ENGINE
    assert without_wrapper(wrapped) == ENGINE
    assert without_wrapper(ENGINE) == ENGINE
    assert without_wrapper(b"\xff\xff\xff\xff{" + ENGINE) == b"\xff\xff\xff\xff{" + ENGINE
    path = tmp_path / "a.engine"
    for data, expected in ((wrapped, True), (ENGINE, True), (b"vtrt123", True), (b"{}", False)):
        path.write_bytes(data)
        assert is_tensorrt_file(path) == expected
    assert built_by(b"vtrt") == "TensorRT-RTX"
    assert not is_tensorrt_file(tmp_path / "none")
    os.mkdir(tmp_path / "folder")
    assert not is_tensorrt_file(tmp_path / "folder")
