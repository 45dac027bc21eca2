"""Files of neighbours in the place of a config: named at once, with what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config import ModelConfig
from headrace.config.neighbours import NEIGHBOURS, neighbour_of
from headrace.errors import ConfigError

FILES = {
    "config.pbtxt": (
        "config.pbtxt",
        'name: "yolo"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
        'input [ { name: "images" dims: [3, 640, 640] } ]\n',
    ),
    "nvdspreprocess": (
        "pre.txt",
        "[property]\nenable=1\ntarget-unique-ids=1\nnetwork-input-shape=8;3;544;960\n"
        "[group-0]\nsrc-ids=0;1\n",
    ),
    "nvdspostprocess": (
        "post.yml",
        "property:\n  gpu-id: 0\n  postprocess-lib: ./libpostprocess_impl.so\n",
    ),
    "tracker": ("tracker.yml", "%YAML:1.0\nBaseConfig:\n  minDetectorConfidence: 0.2\n"),
    "Savant": (
        "module.yml",
        "name: demo\npipeline:\n  elements:\n    - element: nvinfer@detector\n      name: d\n",
    ),
    "Ultralytics": ("data.yaml", "path: ../coco8\ntrain: images/train\nnames:\n  0: person\n"),
    "model-proc": ("proc.json", '{\n  "json_schema_version": "2.2.0",\n  "input_preproc": []\n}'),
    "a label map": ("map.pbtxt", 'item {\n  id: 1\n  name: "person"\n}\n'),
    "a pipeline of TensorFlow": (
        "pipeline.config",
        "model {\n  ssd {\n    num_classes: 90\n  }\n}\n",
    ),
    "TAO": ("spec.yaml", "dataset:\n  val: d\nmodel:\n  backbone: r\nexport:\n  onnx_file: m\n"),
    "mmdeploy": (
        "deploy.json",
        '{"version": "1.3.1", "task": "Detector",\n"models": [{"net": "end2end.onnx"}]}',
    ),
    "Hugging Face": (
        "config.json",
        '{\n  "architectures": ["DetrForObjectDetection"],\n  "model_type": "detr"\n}',
    ),
    "converter": ("msgconv.txt", "[sensor0]\nenable=1\ntype=Camera\nid=HWY\n"),
}


@pytest.mark.parametrize("word", FILES)
def test_a_file_of_a_neighbour_is_named(tmp_path: Path, word: str) -> None:
    name, text = FILES[word]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        ModelConfig.load(path)
    assert word in str(caught.value)
    assert caught.value.finding.code == "foreign-file"
    assert str(caught.value).count("\n") == 2  # what is expected, and what to do


def test_each_kind_has_a_file_here() -> None:
    named = {neighbour_of(text.encode(), Path(name)) for name, text in FILES.values()}
    assert named == set(NEIGHBOURS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "[property]\nonnx-file=m.onnx\ntensor-name=images\n"),
        ("a.yml", "property:\n  onnx-file: m.onnx\n  labelfile-path: names\n"),
        ("a.txt", "# infer_config { is of another element\n[property]\nonnx-file=m.onnx\n"),
        ("a.yml", "property:\n  names: x\n"),
    ],
)
def test_a_config_is_none(name: str, text: str) -> None:
    assert neighbour_of(text.encode(), Path(name)) is None
