import os
import shutil
import struct

import numpy as np
import pytest

from headrace.config import ModelConfig, NetworkMode, TensorOrder
from headrace.engine.builder import BuildOptions, build
from headrace.errors import ConfigError, EngineError, ModelError
from headrace.infer.model import engine_path, load_or_build
from headrace.network import network_from_onnx
from tests.engine.plan_bytes import build_header, reseal
from tests.network.onnx_models import external_model, image_model, save


def said(plan, level=None):
    return "\n".join(str(n) for n in plan.decisions if level in (None, n.level))


def works(plan):
    x = np.ones((1, 3, 4, 6), np.float32)
    with plan.open_session(threads=1) as session:
        return bool((session.run({"x": x})["doubled"] == 2).all())


def stamp(path):
    return path.stat().st_mtime_ns, path.stat().st_ino


def test_names_are_the_originals(tmp_path):
    path = engine_path(tmp_path / "yolo.onnx", 4, 1, "fp32")
    assert path == tmp_path / "yolo.onnx_b4_gpu1_fp32.engine"


def test_built_once_then_loaded(config, model_path):
    plan = load_or_build(config(batch_size=2, gpu_id=1))
    path = model_path.with_name("m.onnx_b2_gpu1_fp32.engine")
    assert plan.path == path
    assert "built from m.onnx" in said(plan)
    before = stamp(path)
    again = load_or_build(config(batch_size=2, gpu_id=1))
    assert said(again) == f"{path}: loaded"
    assert stamp(path) == before
    assert works(plan)
    assert works(again)
    assert sorted(os.listdir(path.parent)) == ["m.onnx", path.name]


@pytest.mark.slow
def test_a_loaded_plan_imports_neither_onnx_nor_the_graph_library(config, tmp_path):
    import subprocess
    import sys

    path = load_or_build(config()).path
    code = (
        "import sys; from headrace.config import ModelConfig; from headrace.infer.model import "
        "load_or_build;"
        f"load_or_build(ModelConfig(onnx_file={str(path.with_name('m.onnx'))!r})).open_session();"
        "print([m for m in ('onnx', 'onnx_ir') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"


def test_rebuild_builds(config):
    before = stamp(load_or_build(config()).path)
    plan = load_or_build(config(), rebuild=True)
    assert stamp(plan.path) != before
    assert "built" in said(plan)


def test_threads_become_the_plans(config):
    assert load_or_build(config(), threads=1).threads == 1
    assert load_or_build(config(), threads=2).threads == 2


def test_the_named_engine_comes_first(config, tmp_path):
    load_or_build(config(batch_size=4)).save(tmp_path / "mine.engine")
    plan = load_or_build(config(batch_size=4, model_engine_file=tmp_path / "mine.engine"))
    assert plan.path == tmp_path / "mine.engine"


def test_a_named_engine_of_a_network_by_code_is_not_compared_with_the_model(
    config, model_path, tmp_path
):
    network = network_from_onnx(model_path)
    network.path = None
    made = build(network, BuildOptions(max_batch=4))
    made.save(tmp_path / "mine.engine")
    plan = load_or_build(config(batch_size=4, model_engine_file=tmp_path / "mine.engine"))
    assert plan.path == tmp_path / "mine.engine"
    assert f"built by code: it is not compared with {model_path.name}" in said(plan, "info")
    # it is the user who says that it fits: nobody else takes it for the model's
    usual = engine_path(model_path, 4, 0, "fp32")
    made.save(usual)
    assert load_or_build(config(batch_size=4)).header.model.name == model_path.name


def test_a_larger_engine_serves(config, tmp_path):
    load_or_build(config(batch_size=4)).save(tmp_path / "mine.engine")
    plan = load_or_build(config(batch_size=2, model_engine_file=tmp_path / "mine.engine"))
    assert plan.header.max_batch == 4


def test_a_missing_named_engine_is_no_warning(config, tmp_path):
    plan = load_or_build(config(model_engine_file=tmp_path / "mine.engine"))
    assert "there is no such file" in said(plan, "info")
    assert said(plan, "warning") == ""
    assert not (tmp_path / "mine.engine").exists()


def rewritten(path, **changes):
    data = path.read_bytes()
    path.write_bytes(reseal(data, build_header(data) | changes))


def stale_batch(path):
    rewritten(path, max_batch=1)


def stale_runtime(path):
    rewritten(path, runtime={"name": "onnxruntime", "version": "0.1"})


def stale_backend(path):
    rewritten(path, runtime={"name": "other", "version": "1"})


def stale_precision(path):
    rewritten(path, precision="fp16", rules={"asked": "fp16"})


def stale_model(path):
    save(image_model(scale=3.0), path.with_name("m.onnx"))


def stale_model_of_same_size_and_time(path):
    model = path.with_name("m.onnx")
    status = model.stat()
    save(image_model(scale=3.0), model)
    assert model.stat().st_size == status.st_size
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))


def stale_format(path):
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, 2)
    path.write_bytes(data)


def truncated(path):
    os.truncate(path, path.stat().st_size - 1)


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (stale_batch, "batch 1 ≠ 4"),
        (stale_runtime, "onnxruntime 0.1 ≠ "),
        (stale_backend, "built for other"),
        (stale_model, "model file changed"),
        (stale_model_of_same_size_and_time, "model file changed"),
        (stale_format, "headrace plan format 2 ≠ 1"),
        (truncated, "damaged: truncated"),
        (flipped, "damaged: blob 'model' does not match its sha256"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_what_does_not_fit_is_rebuilt_and_said(config, spoil, reason, named):
    path = load_or_build(config(batch_size=4)).path
    spoil(path)
    values = {"model_engine_file": path} if named else {}
    plan = load_or_build(config(batch_size=4, **values))
    assert f"{path}: engine not used: {reason}" in said(plan, "warning" if named else "info")
    assert "built from" in said(plan)
    assert plan.header.max_batch == 4
    assert "loaded" in said(load_or_build(config(batch_size=4, **values)))


def test_an_engine_of_another_precision_is_used_only_if_it_is_named(config):
    path = load_or_build(config()).path
    stale_precision(path)
    named = load_or_build(config(model_engine_file=path))
    assert "loaded" in said(named)
    assert "the engine was built for fp16: it is used as it is" in said(named, "info")
    assert not [n for n in named.decisions if n.level == "warning"]
    demanded = load_or_build(config(model_engine_file=path), precision="fp32")
    assert f"{path}: engine not used: fp16 ≠ fp32" in said(demanded, "warning")
    stale_precision(path)
    assert f"{path}: engine not used: fp16 ≠ fp32" in said(load_or_build(config()), "info")


def test_changed_external_data_is_noticed(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.zeros(72, np.float32).tobytes())
    cfg = ModelConfig(onnx_file=save(external_model("w.bin"), tmp_path / "m.onnx"))
    load_or_build(cfg)
    assert "loaded" in said(load_or_build(cfg))
    (tmp_path / "w.bin").write_bytes(np.ones(72, np.float32).tobytes())
    plan = load_or_build(cfg)
    assert "external data 'w.bin' changed" in said(plan)
    x = np.ones((1, 3, 4, 6), np.float32)
    assert (plan.open_session(threads=1).run({"x": x})["y"] == 2).all()
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelError, match=r"w\.bin"):
        load_or_build(cfg)


def test_a_plan_cannot_make_us_read_elsewhere(config, tmp_path):
    path = load_or_build(config()).path
    model = build_header(path.read_bytes())["model"]
    os.mkfifo(tmp_path / "pipe")
    for name in ("/etc/passwd", "../x", "pipe"):
        external = [{"name": name, "size_bytes": 1, "sha256": "0" * 64}]
        rewritten(path, model=model | {"external": external})
        assert "engine not used" in said(load_or_build(config()))


def test_infer_dims_of_another_size(tmp_path):
    model = save(image_model(("n", 3, "h", "w")), tmp_path / "m.onnx")
    load_or_build(ModelConfig(onnx_file=model, infer_dims=(3, 4, 6)))
    plan = load_or_build(ModelConfig(onnx_file=model, infer_dims=(3, 8, 6)))
    assert "infer-dims 3;4;6 ≠ 3;8;6" in said(plan)
    assert plan.inputs[0].shape == (None, 3, 8, 6)
    assert "loaded" in said(load_or_build(ModelConfig(onnx_file=model, infer_dims=(3, 8, 6))))


def test_infer_dims_of_an_nhwc_engine(tmp_path):
    model = save(image_model(("n", 4, 6, 3)), tmp_path / "m.onnx")
    values = {"infer_dims": (3, 4, 6), "network_input_order": TensorOrder.NHWC}
    load_or_build(ModelConfig(onnx_file=model, **values))
    assert "loaded" in said(load_or_build(ModelConfig(onnx_file=model, **values)))


def test_a_moved_model_keeps_its_engine(config, tmp_path):
    path = load_or_build(config()).path
    (tmp_path / "there").mkdir()
    for file in (path, path.with_name("m.onnx")):
        shutil.move(file, tmp_path / "there" / file.name)
    plan = load_or_build(ModelConfig(onnx_file=tmp_path / "there" / "m.onnx"))
    assert "loaded" in said(plan)


def test_an_engine_alone_is_enough(config, model_path):
    path = load_or_build(config()).path
    model_path.unlink()
    assert works(load_or_build(ModelConfig(model_engine_file=path)))
    plan = load_or_build(ModelConfig(model_engine_file=path, onnx_file=model_path))
    assert "not there to compare" in said(plan)
    with pytest.raises(EngineError, match="batch 1 ≠ 8") as caught:
        load_or_build(ModelConfig(model_engine_file=path, batch_size=8))
    assert "onnx-file=" in str(caught.value)


def test_tensorrt_engine_with_a_model_is_a_warning(data_dir, config, tmp_path):
    shutil.copyfile(data_dir / "models" / "lenet5.engine", tmp_path / "trt.engine")
    plan = load_or_build(config(model_engine_file=tmp_path / "trt.engine"))
    assert "TensorRT engine" in said(plan, "warning")
    assert plan.path is not None
    assert plan.path.name == "m.onnx_b1_gpu0_fp32.engine"
    assert works(plan)


def test_tensorrt_engine_alone_is_refused(data_dir):
    cfg = ModelConfig(model_engine_file=data_dir / "models" / "lenet5.engine")
    with pytest.raises(EngineError, match="TensorRT engine") as caught:
        load_or_build(cfg)
    assert "onnx-file=" in str(caught.value)


def test_a_foreign_engine_at_our_name_is_left_alone(data_dir, config, model_path):
    usual = engine_path(model_path, 1, 0, "fp32")
    shutil.copyfile(data_dir / "models" / "lenet5.engine", usual)
    before = usual.read_bytes()
    cfg = config(model_engine_file=usual)
    plan = load_or_build(cfg)
    beside = model_path.with_name("m.onnx_b1_cpu_fp32.engine")
    assert plan.path == beside
    assert "not overwritten" in said(plan, "warning")
    assert beside.name in said(plan)
    assert usual.read_bytes() == before
    again = load_or_build(cfg)
    assert again.path == beside
    assert "loaded" in said(again)


def test_two_foreign_files_keep_the_engine_in_memory(config, model_path):
    for name in ("gpu0", "cpu"):
        model_path.with_name(f"m.onnx_b1_{name}_fp32.engine").write_bytes(b"precious")
    plan = load_or_build(config())
    assert plan.path is None
    assert "kept in memory" in said(plan, "warning")
    assert works(plan)


def test_a_folder_at_our_name_is_left_alone(config, model_path):
    engine_path(model_path, 1, 0, "fp32").mkdir()
    assert load_or_build(config()).path == model_path.with_name("m.onnx_b1_cpu_fp32.engine")


def test_an_unwritable_folder_keeps_the_engine_in_memory(config, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headrace.engine.plan.write_atomically", full)
    plan = load_or_build(config())
    assert plan.path is None
    assert "No space left on device; built at each start" in said(plan, "warning")
    assert works(plan)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(config, model_path):
    model_path.parent.chmod(0o555)
    try:
        plan = load_or_build(config())
    finally:
        model_path.parent.chmod(0o755)
    assert plan.path is None
    assert "Permission denied" in said(plan, "warning")


@pytest.mark.parametrize(
    ("mode", "level"),
    [(NetworkMode.INT8, "warning"), (NetworkMode.FP16, "info"), (NetworkMode.BEST, "warning")],
)
def test_precision_falls_back_with_one_notice(config, mode, level):
    for _ in range(2):  # built, then loaded
        plan = load_or_build(config(network_mode=mode))
        assert plan.path is not None
        assert plan.path.name.endswith("_fp32.engine")
        assert [n.level for n in plan.decisions if "FP32 is built" in n.sentence] == [level]


def test_fixed_batch_is_said_again_when_loaded(tmp_path):
    cfg = ModelConfig(onnx_file=save(image_model((1, 3, 4, 6)), tmp_path / "m.onnx"), batch_size=4)
    for _ in range(2):
        assert "batch 4 runs as 4 runs of 1" in said(load_or_build(cfg))


def test_outputs_the_config_names_and_the_model_lacks(config):
    plan = load_or_build(config(output_blob_names=("doubled", "boxes")))
    assert "no output boxes; it has doubled, mean" in said(plan, "warning")
    assert "doubled, boxes" not in said(plan)


def test_dla_is_a_warning(config):
    assert "enable-dla" in said(load_or_build(config(enable_dla=True)), "warning")


def test_no_model_at_all_lists_what_is_given(tmp_path):
    with pytest.raises(EngineError, match="neither a model"):
        load_or_build(ModelConfig())
    with pytest.raises(EngineError, match=r"model-file=.*m\.caffemodel") as caught:
        load_or_build(ModelConfig(model_file=tmp_path / "m.caffemodel"))
    assert "proto-file" in str(caught.value)
    with pytest.raises(EngineError, match=r"(?s)tlt-encoded-model=.*encrypted.*export it to ONNX"):
        load_or_build(ModelConfig(tlt_encoded_model=tmp_path / "m.etlt", tlt_model_key="k"))


def test_a_config_that_does_not_fit_is_refused_before_and_after_the_build(config, model_path):
    with pytest.raises(ConfigError, match="offsets"):
        load_or_build(config(offsets=(1.0,)))
    assert os.listdir(model_path.parent) == ["m.onnx"]
    load_or_build(config())
    with pytest.raises(ConfigError, match="offsets"):
        load_or_build(config(offsets=(1.0,)))
    assert load_or_build(config(offsets=(1.0,), input_tensor_from_meta=True))
