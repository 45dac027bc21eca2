"""The commands of the page on exporting run, where their framework is installed.

`HEADRACE_EXPORT_VENV` names environments, with `:` between them; each section runs in the first
that has its packages. Without it the tests' own Python is looked at.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from headrace._core.formats.foreign import identify
from headrace._core.formats.table import FORMATS
from headrace.network import network_from_onnx

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()

_KERAS = """
import keras
layers = keras.layers
net = keras.Sequential([layers.Input((16, 16, 3)), layers.Conv2D(4, 3), layers.Flatten(),
                        layers.Dense(3)])
"""
_PADDLE = """
import paddle
net = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.ReLU())
spec = [paddle.static.InputSpec([1, 3, 16, 16], "float32")]
net.eval()
paddle.jit.save(net, "inference/inference", input_spec=spec)
"""
_HF = """
from transformers import ResNetConfig, ResNetForImageClassification, ConvNextImageProcessor
config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1])
ResNetForImageClassification(config).save_pretrained("my_model")
ConvNextImageProcessor(size={"shortest_edge": 224}).save_pretrained("my_model")
"""
_SKLEARN = """
import joblib, numpy
from sklearn.linear_model import LogisticRegression
joblib.dump(LogisticRegression().fit(numpy.random.rand(20, 4), [0, 1] * 10), "net.joblib")
"""
_NET = """
from torch import nn
def Net():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Softmax(1))
"""
_OPENVINO = """
import openvino as ov
from openvino import opset13 as op
x = op.parameter([1, 3, 16, 16], name="images")
mean = op.reduce_mean(x, op.constant([2, 3]), False)
ov.save_model(ov.Model([op.softmax(mean, 1)], [x], "net"), "model.xml")
"""

# Section -> packages that must import, Python that makes its files, the format these have.
SECTIONS = {
    "Ultralytics": ("ultralytics onnx", "from ultralytics import YOLO\n"
                    "YOLO('yolo11n.yaml').save('best.pt')", "best.pt", "ultralytics"),
    "PyTorch": ("torch onnx", "import torch\nfrom net import Net\n"
                "torch.save(Net().state_dict(), 'net.pth')", "net.pth", "torch-state"),
    "TorchScript": ("torch onnx", "import torch\nfrom net import Net\n"
                    "torch.jit.trace(Net().eval(), torch.zeros(1, 3, 64, 64))"
                    ".save('net.torchscript')", "net.torchscript", "torchscript"),
    "torchvision": ("torchvision onnx", "", "", ""),
    "timm": ("timm onnx", "", "", ""),
    "Hugging Face": ("optimum.exporters.onnx transformers onnxruntime", _HF, "my_model",
                     "huggingface"),
    "SavedModel": ("tf2onnx tensorflow", _KERAS + "net.export('saved_model')", "saved_model",
                   "savedmodel"),
    "Keras": ("keras tf2onnx tensorflow", _KERAS + "net.save('net.keras')", "net.keras", "keras"),
    "TFLite": ("tf2onnx tensorflow", _KERAS + "import tensorflow as tf\nnet.export('sm')\n"
               "made = tf.lite.TFLiteConverter.from_saved_model('sm').convert()\n"
               "open('model.tflite', 'wb').write(made)", "model.tflite", "tflite"),
    "PaddlePaddle": ("paddle paddle2onnx", _PADDLE, "inference", "paddle"),
    "scikit-learn": ("sklearn skl2onnx joblib", _SKLEARN, "net.joblib", "sklearn"),
    "OpenVINO": ("openvino", _OPENVINO, "model.xml", "openvino"),
}  # fmt: skip


def blocks(section: str) -> list[tuple[str, str]]:
    """Language and text of the blocks of a section, without those of the sections in it."""
    text = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S)
    assert text is not None, section
    return re.findall(r"```(\w+)\n(.*?)```", text[1], re.S)


@cache
def python_with(packages: str) -> str | None:
    """The Python of the first environment that imports the packages."""
    places = os.environ.get("HEADRACE_EXPORT_VENV", "")
    pythons = [str(Path(place, "bin", "python")) for place in places.split(":") if place]
    code = "".join(f"import {name}\n" for name in packages.split())
    for python in pythons or [sys.executable]:
        done = subprocess.run([python, "-c", code], capture_output=True, timeout=120, check=False)
        if done.returncode == 0:
            return python
    return None


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_the_commands_of_a_section_make_a_model_that_is_read(section: str, tmp_path: Path) -> None:
    packages, making, name, key = SECTIONS[section]
    python = python_with(packages)
    if python is None:
        pytest.skip(f"no environment of HEADRACE_EXPORT_VENV imports {packages}")
    (tmp_path / "net.py").write_text(_NET)
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}

    def run(words: list[str]) -> None:
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True,
                              text=True, timeout=300, check=False)  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr[-3000:]}"

    if making:
        run([python, "-c", making])
        sighting = identify(tmp_path / name)
        assert sighting is not None
        assert sighting.key == key
    models = []
    for language, text in blocks(section):
        if language == "python":
            run([python, "-c", text])
        for line in text.splitlines() if language == "bash" else ():
            words = shlex.split(line)
            if words[0] == "headrace":
                models.append(words[2])
            elif words[0] != "pip":
                run([python if words[0] == "python" else words[0], *words[1:]])
    assert models
    for model in models:
        assert network_from_onnx(tmp_path / model).outputs


def test_every_section_ends_with_the_run() -> None:
    for section in [*SECTIONS, "RF-DETR", "YOLO-NAS", "Detectron2", "OpenMMLab", "YOLOX"]:
        last = [text for language, text in blocks(section) if language == "bash"][-1]
        assert last.splitlines()[-1].startswith(("headrace run ", "headrace show ")), section


def test_commands_of_messages_stand_on_the_page() -> None:
    """The table and the page lead the same way."""
    for key in ("ultralytics", "tflite", "savedmodel", "huggingface", "paddle", "detectron2"):
        start = " ".join(FORMATS[key].ways[0].split("{")[0].split()[:3])
        assert start in PAGE, key


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.config import ModelConfig
    from headrace.errors import ModelError
    from tests._core.formats.test_foreign import FILES

    monkeypatch.chdir(tmp_path)
    Path("best.pt").write_bytes(FILES["best.pt"][0])
    with pytest.raises(ModelError) as caught:
        ModelConfig.load("best.pt")
    for line in str(caught.value).splitlines():
        assert line in PAGE
