"""Configs with the keys of the older formats, down to the engine and to detections."""

import shutil

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError, EngineError
from headrace.infer.inferencer import Inferencer
from headrace.infer.model import load_or_build
from headrace.media import Frame, PixelFormat
from tests.conftest import write_mean_model
from tests.network.caffe.models import caffemodel, layer, text_of
from tests.network.darknet.models import Darknet, header, net
from tests.network.uff.models import node, source, uff

X = np.random.default_rng(0).normal(size=(3, 3, 6, 7)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(2, 3, 1, 1)).astype(np.float32)
CAFFE = {"model-file": "n.caffemodel", "proto-file": "n.prototxt", "batch-size": 4}
UFF = {"uff-file": "n.uff", "uff-input-blob-name": "x", "output-blob-names": "y"}
YOLO = """[convolutional]
filters=14
size=1
activation=linear
[yolo]
mask=0,1
anchors=4,4, 8,6
classes=2
num=2
"""


@pytest.fixture
def write(tmp_path):
    """Writes a Caffe, a UFF and a Darknet model, then configs beside them."""
    text = layer("Convolution", "convolution_param { num_output: 2 kernel_size: 1 "
                 "bias_term: false }", name="c", top="c")  # fmt: skip
    text += layer("ReLU", bottom="c", top="r", name="r") + layer("TanH", bottom="c", top="t")
    (tmp_path / "n.prototxt").write_text(text_of(text))
    (tmp_path / "n.caffemodel").write_bytes(caffemodel({"c": [W]}))
    nodes = [node("y", "Unary", ["x"], func="neg"), node("m", "MarkOutput", ["y"])]
    (tmp_path / "n.uff").write_bytes(uff(source((-1, -1, -1, -1)), *nodes))
    slow = Darknet(net(YOLO, 3, 6, 8))
    slow.run(np.zeros((1, 3, 6, 8)))
    (tmp_path / "n.cfg").write_text(net(YOLO, 3, 6, 8))
    (tmp_path / "n.weights").write_bytes(header() + slow.flat_numbers().tobytes())
    (tmp_path / "labels.txt").write_text("one\ntwo\n")

    def config(keys=CAFFE, **more):
        lines = {"labelfile-path": "labels.txt", "num-detected-classes": 2, **keys}
        lines |= {k.replace("_", "-"): v for k, v in more.items()}
        path = tmp_path / "config.txt"
        path.write_text("[property]\n" + "".join(f"{k}={v}\n" for k, v in lines.items()))
        return ModelConfig.load(path)

    return config


def said(plan):
    return [str(d) for d in plan.decisions]


def run(plan, x=X):
    with plan.open_session() as session:
        return session.run({session.inputs[0].name: x})


def test_caffe_is_built_named_and_found_again(write, tmp_path):
    plan = load_or_build(write(output_blob_names="t;r"))
    assert [s.name for s in plan.outputs] == ["t", "r"]
    assert plan.path == tmp_path / "n.caffemodel_b4_gpu0_fp32.engine"
    np.testing.assert_allclose(
        run(plan)["t"], np.tanh(np.einsum("oc,nchw->nohw", W[:, :, 0, 0], X)), atol=1e-5
    )
    again = load_or_build(write(output_blob_names="t;r"))
    assert any("loaded" in text for text in said(again))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder, keys: keys.update(output_blob_names="r"), "output-blob-names=t ≠"),
        (lambda folder, keys: keys.update(infer_dims="3;12;14"), "infer-dims"),
        (lambda folder, keys: folder.joinpath("n.prototxt").open("a").write("\n#"),
         "proto-file changed"),
        (lambda folder, keys: folder.joinpath("n.caffemodel").write_bytes(
            caffemodel({"c": [W * 2]})), "model file changed"),
    ],
)  # fmt: skip
def test_an_engine_is_built_anew_when_anything_that_went_in_changed(write, tmp_path, change, words):
    load_or_build(write(output_blob_names="t"))
    keys = {"output_blob_names": "t"}
    change(tmp_path, keys)
    plan = load_or_build(write(**keys))
    assert any("engine not used" in text and words in text for text in said(plan))
    assert any("built from n.caffemodel" in text for text in said(plan))
    if "infer_dims" in keys:
        assert plan.inputs[0].shape[1:] == (3, 12, 14)


def test_an_engine_serves_when_the_model_is_gone(write, tmp_path):
    load_or_build(write())
    for name in ("n.caffemodel", "n.prototxt"):
        (tmp_path / name).unlink()
    keys = {"model-engine-file": "n.caffemodel_b4_gpu0_fp32.engine", "batch-size": 4}
    assert run(load_or_build(write(keys)))


def test_uff(write, tmp_path):
    plan = load_or_build(write(UFF, infer_dims="3;6;7"))
    np.testing.assert_array_equal(run(plan, X[:1])["y"], -X[:1])
    assert plan.path == tmp_path / "n.uff_b1_gpu0_fp32.engine"
    plan = load_or_build(write(UFF, uff_input_dims="3;6;7;1"))
    np.testing.assert_array_equal(run(plan, X[:1])["y"], -X[:1].transpose(0, 2, 3, 1))
    assert any("uff-input-order=0 ≠ 1" in text for text in said(plan))
    plan = load_or_build(write(UFF, input_dims="3;6;7;0"))
    np.testing.assert_array_equal(run(plan, X[:1])["y"], -X[:1])


def test_darknet(write, tmp_path, monkeypatch):
    keys = {"model-file": "n.weights", "custom-network-config": "n.cfg"}
    plan = load_or_build(write(keys))
    assert [str(s) for s in plan.outputs] == ["output float32[batch, 96, 6]"]
    assert plan.path == tmp_path / "n.weights_b1_gpu0_fp32.engine"
    assert not [n for n in write(keys).notices if n.level == "warning"]
    # the original looks in the working directory
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "n.cfg").rename(elsewhere / "n.cfg")
    with pytest.raises(ConfigError, match=r"custom-network-config=n\.cfg: there is no such file"):
        write(keys).check_files()
    monkeypatch.chdir(elsewhere)
    write(keys).check_files()
    assert any("loaded" in text for text in said(load_or_build(write(keys))))


def test_darknet_to_detections(write):
    keys = {"model-file": "n.weights", "custom-network-config": "n.cfg", "cluster-mode": 4,
            "parse-bbox-func-name": "NvDsInferParseYolo", "net-scale-factor": 0.0039215697906911373,
            "output-blob-names": "output", "gie-unique-id": 1}  # fmt: skip
    cfg = write(keys)
    pixels = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
    frame = Frame.from_array(pixels, PixelFormat.RGB)
    with Inferencer.from_config(cfg) as model:
        (meta,) = model.process([frame])
    slow = Darknet(net(YOLO, 3, 6, 8))
    slow.run(np.zeros((1, 3, 6, 8)))  # draws the same weights
    slow = Darknet(net(YOLO, 3, 6, 8))
    slow.run(pixels.transpose(2, 0, 1)[None] * np.float32(keys["net-scale-factor"]))
    rows = slow.rows[0][0]
    wanted = []
    for x1, y1, x2, y2, score, label in rows:
        x1, x2 = np.clip([x1, x2], 0, 8)
        y1, y2 = np.clip([y1, y2], 0, 6)
        if score >= 0.2 and x2 - x1 >= 1 and y2 - y1 >= 1:
            wanted.append((x1, y1, x2 - x1, y2 - y1, score, label))
    found = [(o.left, o.top, o.width, o.height, o.confidence, o.class_id) for o in meta.objects]
    assert len(found) == len(wanted) > 3
    np.testing.assert_allclose(sorted(found), sorted(wanted), atol=2e-3)


def test_onnx_goes_before_the_others_and_that_is_said(write, tmp_path):
    write_mean_model(tmp_path / "mean.onnx")
    plan = load_or_build(write({**CAFFE, **UFF, "onnx-file": "mean.onnx"}, infer_dims="3;32;32"))
    assert plan.header.model.name == "mean.onnx"
    notes = [text for text in said(plan) if "is not used" in text]
    assert len(notes) == 3
    assert all("the model is onnx-file" in text for text in notes)
    keys = {**CAFFE, "custom-network-config": "n.cfg", "model-file": "n.weights"}
    plan = load_or_build(write(keys))
    assert plan.header.model.name == "n.weights"
    assert any("proto-file is not used" in text for text in said(plan))


def test_models_that_cannot_be_read(write, tmp_path):
    with pytest.raises(EngineError, match=r"(?s)encrypted.*export it to ONNX"):
        load_or_build(write({"tlt-encoded-model": "m.etlt", "tlt-model-key": "k"}))
    with pytest.raises(
        EngineError, match=r"(?s)model-file=.*Caffe needs model-file and proto-file"
    ):
        load_or_build(write({"model-file": "n.caffemodel"}))
    with pytest.raises(ConfigError, match=r"proto-file=none\.prototxt: there is no such file"):
        write({**CAFFE, "proto-file": "none.prototxt"}).check_files()
    with pytest.raises(ConfigError, match="expected a file"):
        write({"uff-file": "none.uff"}).check_files()


def test_the_real_detector(data_dir, tmp_path):
    models = data_dir / "models"
    for name in ("RFB-320.caffemodel", "RFB-320.prototxt"):
        shutil.copy(models / name, tmp_path)
    text = """[property]
model-file=RFB-320.caffemodel
proto-file=RFB-320.prototxt
output-blob-names=boxes;scores
batch-size=2
net-scale-factor=0.0078125
offsets=127;127;127
network-type=100
"""
    (tmp_path / "c.txt").write_text(text)
    cfg = ModelConfig.load(tmp_path / "c.txt")
    assert not [n for n in cfg.notices if "not acted on" in str(n)]
    plan = load_or_build(cfg)
    assert [s.name for s in plan.outputs] == ["boxes", "scores"]
