"""Scripts that others wrote for TensorRT, unmodified, under `headrace exec`.

HEADRACE_TRT_SCRIPTS names a folder with checkouts, which are not part of this repository:

    tensorrt-8.6/, tensorrt-10/    samples/python of NVIDIA/TensorRT, v8.6.1, release/10.16
    YOLOv8-TensorRT/               triple-Mu/YOLOv8-TensorRT
    TensorRT-For-YOLO-Series/      Linaom1214/TensorRT-For-YOLO-Series
    tensorrt-utils/                rmccorm4/tensorrt-utils
    site/                          optional: packages that scripts import (onnx_graphsurgeon,
                                   polygraphy; Pillow 9 for samples of 8.6, NumPy before 2.4 for
                                   EfficientDet)

What scripts would download is made up in `script_data.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.trt import script_data as data

SCRIPTS = os.environ.get("HEADRACE_TRT_SCRIPTS")
pytestmark = pytest.mark.skipif(SCRIPTS is None, reason="HEADRACE_TRT_SCRIPTS is not set")
pillow9 = pytest.mark.skipif(
    not (Path(SCRIPTS or "") / "site" / "PIL").exists(), reason="the sample needs Pillow 9"
)


@pytest.fixture
def sample(tmp_path):
    """Copies a folder of scripts, with its siblings, to a place where they may write."""

    def copy(name: str) -> Path:
        source = Path(SCRIPTS or "") / name
        if not source.exists():
            pytest.skip(f"{name} is not in HEADRACE_TRT_SCRIPTS")
        top = tmp_path / Path(name).parts[0]
        if not top.exists():
            shutil.copytree(Path(SCRIPTS or "") / Path(name).parts[0], top)
        return tmp_path / name

    return copy


def run(
    script: Path, *arguments: str, version: str | None = None, path: str = "",
    options: Sequence[str] = (),
) -> str:  # fmt: skip
    """Run it in its folder; what it printed."""
    release = [*(["--trt-version", version] if version else []), *options]
    site = str(Path(SCRIPTS or "") / "site")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", *release, script.name, *arguments],
        cwd=script.parent, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in (path, site) if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pillow9
def test_onnx_resnet50_of_8(sample, tmp_path):
    script = sample("tensorrt-8.6/introductory_parser_samples/onnx_resnet50.py")
    data.resnet(tmp_path / "data" / "resnet50")
    assert "orrectly recognized" in run(script, "-d", str(tmp_path / "data"), version="8.6")


def test_onnx_resnet50_of_10(sample, tmp_path):
    script = sample("tensorrt-10/introductory_parser_samples/onnx_resnet50.py")
    data.resnet(tmp_path / "data" / "resnet50")
    assert "orrectly recognized" in run(script, "-d", str(tmp_path / "data"), version="10.16")


@pytest.mark.parametrize("release", ["8.6", "10"])
def test_network_api_mnist(sample, release):
    script = sample(f"tensorrt-{release}/network_api_pytorch_mnist/sample.py")
    (script.parent / "model.py").write_text(data.MNIST_MODEL)
    assert "Prediction: " in run(script, version=release)


@pillow9
def test_yolov3(sample):
    script = sample("tensorrt-8.6/yolov3_onnx/onnx_to_tensorrt.py")
    data.yolov3(script.parent / "yolov3.onnx")
    root = script.parent / "root"
    data.image(root / "samples/python/yolov3_onnx/dog.jpg", 320, 240)
    os.environ["TRT_DATA_DIR"] = str(root)
    try:
        said = run(script, version="8.6")
        assert "Completed creating Engine" in said
        assert (script.parent / "dog_bboxes.png").exists()
        assert "Reading engine" in run(script, version="8.6")
    finally:
        del os.environ["TRT_DATA_DIR"]


@pytest.mark.parametrize("precision", ["fp16", "int8", "mixed"])
def test_efficientdet(sample, tmp_path, precision):
    script = sample("tensorrt-8.6/efficientdet/build_engine.py")
    data.efficientdet(tmp_path / "det.onnx")
    for i in range(8):
        data.image(tmp_path / "images" / f"{i}.jpg")
    made = tmp_path / "det.engine"
    args = ["-o", str(tmp_path / "det.onnx"), "-e", str(made), "-d", "1,2,4", "-p", precision]
    if precision != "fp16":
        cache = tmp_path / "calibration.cache"
        args += ["--calib_input", str(tmp_path / "images"), "--calib_cache", str(cache),
                 "--calib_batch_size", "2"]  # fmt: skip
    said = run(script, *args, version="8.6")
    assert made.exists()
    if precision != "fp16":
        assert "Calibrating image 8 / 8" in said
        assert cache.read_text().startswith("TRT-8601-EntropyCalibration2\n")
    infer = script.parent / "infer.py"
    out = tmp_path / "out"
    said = run(infer, "-e", str(made), "-i", str(tmp_path / "images"), "-o", str(out),
               version="8.6")  # fmt: skip
    assert "Finished Processing" in said
    assert len(list(out.glob("*"))) >= 8


def test_progress_monitor(sample, tmp_path):
    script = sample("tensorrt-10/simple_progress_monitor/simple_progress_monitor.py")
    data.resnet(tmp_path / "data" / "resnet50")
    said = run(script, "-d", str(tmp_path / "data"), version="10.16")
    assert "Building Engine" in said
    assert "orrectly recognized" in said


def test_refit_bidaf(sample):
    script = sample("tensorrt-8.6/engine_refit_onnx_bidaf/build_and_refit_engine.py")
    data.bidaf(script.parent)
    (script.parent / "data_processing.py").write_text(BIDAF_WORDS)
    said = run(script, version="8.6")
    assert said.count("Refitting engine") == 2
    assert "Passed" in said


@pytest.fixture
def hardmax(sample):
    """The folder of the sample with a compiled plugin, and how to run what is in it."""
    folder = sample("tensorrt-8.6/onnx_custom_plugin")
    (folder / "hardmax.py").write_text(data.HARDMAX)
    library = folder / "build" / "libcustomHardmaxPlugin.so"
    library.parent.mkdir()
    library.write_bytes(b"made for a GPU")

    def run_it(name: str) -> str:
        words = ["--plugins", f"{library.name}=hardmax.py"]
        return run(folder / name, version="8.6", options=words)

    return folder, run_it


def test_custom_plugin_by_a_twin(hardmax):
    """Its plugin, a library of CUDA kernels, is written in Python once more."""
    folder, run_it = hardmax
    data.bidaf_hardmax(folder / "models" / "bidaf-9-trt.onnx")
    (folder / "wget.py").write_text("")  # imported, for a download that is not needed
    (folder.parent / "engine_refit_onnx_bidaf" / "data_processing.py").write_text(BIDAF_WORDS)
    said = run_it("sample.py")
    assert "Building TensorRT engine" in said
    assert "Model prediction:  lion" in said
    assert "Model prediction:  brown" in said
    assert "Passed" in said
    assert "Loading saved TRT engine" in run_it("sample.py")


def test_custom_plugin_against_numpy(hardmax):
    assert "Passed" in hardmax[1]("test_custom_hardmax_plugin.py")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_python_plugin(sample, tmp_path, precision):
    """A plugin of version 2, run by Polygraphy, which opens libcudart with ctypes."""
    script = sample("tensorrt-10/python_plugin/circ_pad_plugin_torch.py")
    (tmp_path / "torch.py").write_text(data.CPU_TORCH)
    said = run(script, "--precision", precision, version="10.16", path=str(tmp_path))
    assert "Inference result correct!" in said


@pytest.mark.parametrize("kind", ["onnx", "inetdef"])
def test_non_zero_plugin(sample, tmp_path, kind):
    """A plugin of version 3 whose output is as long as the data say."""
    script = sample("tensorrt-10/non_zero_plugin/non_zero_plugin.py")
    (tmp_path / "torch.py").write_text(data.CPU_TORCH)
    said = run(script, "--net_type", kind, version="10.16", path=str(tmp_path))
    assert "Inference result correct!" in said


BIDAF_WORDS = """
import numpy as np
def preprocess(text):
    words = text.replace(".", " .").replace("?", " ?").lower().split()
    chars = np.array([[(list(w) + [""] * 16)[:16]] for w in words]).reshape(-1, 1, 1, 16)
    return np.array(words).reshape(-1, 1), chars
def get_inputs(context, query):
    cw, cc = preprocess(context)
    qw, qc = preprocess(query)
    return [np.zeros(a.size, np.int32) for a in (cw, cc, qw, qc)]
"""


@pytest.mark.parametrize("end2end", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_yolo_series_export(sample, tmp_path, end2end, precision):
    script = sample("TensorRT-For-YOLO-Series/export.py")
    data.yolo_head(tmp_path / "yolo.onnx")
    for i in range(8):
        data.image(tmp_path / "images" / f"{i}.jpg")
    made = tmp_path / "yolo.engine"
    args = ["-o", str(tmp_path / "yolo.onnx"), "-e", str(made), "-p", precision]
    args += ["--calib_input", str(tmp_path / "images"), "--calib_cache", str(tmp_path / "c")]
    said = run(script, *args, *(["--end2end"] if end2end else []))
    assert "Serializing engine" in said
    import headrace.trt as trt

    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(made.read_bytes())
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    assert names == ["images", *(["num", "boxes", "scores", "classes"] if end2end else ["output"])]


def test_yolov8_by_hand(sample, tmp_path):
    script = sample("YOLOv8-TensorRT/build.py")
    data.yolov8_weights(tmp_path / "yolov8n.pkl")
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "torch.py").write_text(data.TORCH)
    said = run(script, "--weights", str(tmp_path / "yolov8n.pkl"), "--input-shape", "1", "3", "64",
               "64", "--fp16", path=str(fake))  # fmt: skip
    assert "Build TensorRT engine finished" in said
    import headrace.trt as trt

    data_ = (tmp_path / "yolov8n.engine").read_bytes()
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(data_)
    assert engine.get_tensor_shape("bboxes") == (1, 100, 4)
    context = engine.create_execution_context()
    x = np.random.default_rng(0).random((1, 3, 64, 64), np.float32)
    out = {}
    context.set_tensor_address("images", x.ctypes.data)
    for i in range(1, engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        kind = trt.nptype(engine.get_tensor_dtype(name))
        out[name] = np.zeros(tuple(engine.get_tensor_shape(name)), kind)
        context.set_tensor_address(name, out[name].ctypes.data)
    assert context.execute_async_v3(0)


def test_list_plugins(sample):
    script = sample("tensorrt-utils/plugins/list_plugins.py")
    assert "'EfficientNMS_TRT'" in run(script)
