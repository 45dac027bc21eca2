"""`headrace show` of models and engines."""

import json
import shutil

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.infer.model import load_or_build
from tests.infer.recognise.models import rows_of
from tests.infer.recognise.test_recognise import yolov8
from tests.network.onnx_models import image_model, save
from tests.network.openvino.models import written


def headrace(*words):
    """`headrace` in this process: it starts faster."""
    from click.testing import CliRunner

    from headrace.cli import main

    done = CliRunner().invoke(main, [str(word) for word in words])
    done.returncode = done.exit_code
    return done


@pytest.fixture
def caffe(tmp_path, data_dir):
    for suffix in ("prototxt", "caffemodel"):
        shutil.copyfile(data_dir / "models" / f"RFB-320.{suffix}", tmp_path / f"RFB-320.{suffix}")
    return tmp_path


def test_an_engine_tells_its_layers_hashes_and_decisions(tmp_path):
    path = save(image_model(), tmp_path / "m.onnx")
    plan = load_or_build(ModelConfig(onnx_file=path, output_io_formats=("mean:fp16:chw",)))
    data = json.loads(headrace("show", plan.path, "--json").stdout)
    assert [layer["operator"] for layer in data["layers"]][:2] == ["Cast", "Mul"]
    double = next(x for x in data["layers"] if x["name"] == "double")
    assert (double["precision"], double["parameters"]) == ("fp32", 1)
    assert double["shape"][1:] == [3, 4, 6]
    assert data["hashes"]["model"] == plan.header.model.sha256
    assert data["hashes"]["blob model"] == plan.header.blobs[0].sha256
    assert data["rules"]["outputs"] == "mean:fp16"
    text = headrace("show", plan.path).stdout
    assert "--layers lists them" in text
    assert "double" not in text.replace("doubled", "")
    assert "average" in headrace("show", plan.path, "--layers").stdout


def test_an_engine_has_a_line_for_each_decision_and_hash(tmp_path):
    path = save(image_model(), tmp_path / "m.onnx")
    plan = load_or_build(ModelConfig(onnx_file=path), precision="fp16")
    lines = headrace("show", plan.path).stdout.splitlines()
    text = "3 nodes are FP16; onnxruntime computes them in FP32 here and rounds each result to FP16"
    assert f"decisions       m.onnx: {text}" in lines
    assert f"hashes          model: {plan.header.model.sha256}" in lines
    assert f"                blob model: {plan.header.blobs[0].sha256}" in lines
    assert "fixed batch     none" in lines


def test_a_caffe_model_by_either_file(caffe):
    for suffix in ("caffemodel", "prototxt"):
        data = json.loads(headrace("show", caffe / f"RFB-320.{suffix}", "--json").stdout)
        assert data["operators"]["Conv"] > 30
        assert data["parameters"] > 250_000
        assert len(data["files"]) == 2


def test_the_partner_is_found_or_asked_for(caffe):
    (caffe / "RFB-320.prototxt").rename(caffe / "deploy.prototxt")
    assert headrace("show", caffe / "RFB-320.caffemodel").returncode == 0
    (caffe / "other.prototxt").write_text("layer {}")
    refused = headrace("show", caffe / "RFB-320.caffemodel")
    assert refused.returncode == 4
    assert "deploy.prototxt, other.prototxt" in refused.stderr
    named = headrace("show", caffe / "RFB-320.caffemodel", "--with", caffe / "deploy.prototxt")
    assert named.returncode == 0


def test_a_uff_model(data_dir):
    shown = headrace("show", data_dir / "models" / "lenet5.uff")
    assert shown.returncode == 0, shown.stderr
    assert "input_1" in shown.stdout


def test_a_darknet_network_is_told_from_a_config(tmp_path):
    text = (
        "# a comment\n[net]\nwidth=8\nheight=8\nchannels=3\n"
        "[convolutional]\nfilters=4\nsize=1\nstride=1\npad=0\nactivation=linear\n"
    )
    (tmp_path / "a.cfg").write_text(text)
    values = np.arange(4 + 12, dtype=np.float32)
    head = np.array([0, 2, 0], np.int32).tobytes() + np.array([0], np.int64).tobytes()
    (tmp_path / "a.weights").write_bytes(head + values.tobytes())
    for name in ("a.cfg", "a.weights"):
        shown = headrace("show", tmp_path / name)
        assert shown.returncode == 0, shown.stderr
        assert "Conv" in shown.stdout
    (tmp_path / "b.cfg").write_text("[property]\nonnx-file=none.onnx\n")
    assert "[property]" in headrace("show", tmp_path / "b.cfg").stdout


def test_an_onnx_model_is_recognised_as_a_run_does_without_saving_an_engine(tmp_path):
    path = yolov8(tmp_path / "m.onnx", names="{0: 'cat', 1: 'dog'}")
    data = json.loads(headrace("show", path, "--json").stdout)
    assert data["as_a_bare_model"].startswith("YOLO detector of Ultralytics")
    assert data["images"] == "64x64 RGB / 255, fitted in, bars around"
    assert data["read_from"].startswith("metadata author: Ultralytics")
    assert "the metadata name 2 classes" in data["warning"]
    assert "built-in parsers that fit" not in data  # the one that reads it is named above
    undecided = rows_of(tmp_path / "p.onnx", np.float32([[0.5, 0.5]]), spread=137)
    assert "how values are scaled is undecided" in headrace("show", undecided).stdout
    assert list(tmp_path.glob("*.engine")) == []


def test_an_openvino_model_and_its_engine_tell_their_own_layers(tmp_path):
    path = written(tmp_path)
    data = json.loads(headrace("show", path, "--json").stdout)
    assert data["operators"] == {"Convolution": 1}
    assert (data["ir_version"], data["parameters"], data["runs_on"]) == (11, 12, "openvino alone")
    (layer,) = data["layers"]
    assert (layer["name"], layer["parameters"], layer["inputs"]) == ("conv", 12, ["images"])
    assert "images float32[?, 3, 8, 8]" in headrace("show", path).stdout
    pytest.importorskip("openvino")
    plan = load_or_build(ModelConfig(onnx_file=path, input_tensor_from_meta=True))
    data = json.loads(headrace("show", plan.path, "--json").stdout)
    assert data["layers"] == [layer]


def test_an_engine_of_tensorrt_tells_names_and_shapes(data_dir):
    path = data_dir / "models" / "lenet5.engine"
    data = json.loads(headrace("show", path, "--json").stdout)
    assert data["shapes_in_it"]["input_1"] == [1, 28, 28]
    assert "input_1 1x28x28" in headrace("show", path).stdout
