"""Public YOLO libraries, fetched by whoever runs this, compiled unchanged, from config to outputs.

NORIA_CPP_SOURCES names a folder with what is there of

    DeepStream-Yolo/nvdsinfer_custom_impl_Yolo/   of marcoslucianops/DeepStream-Yolo
    5.0/objectDetector_{Yolo,SSD,FasterRCNN}/…    of hiennguyen9874/deepstream-sources, by branch
    6.2/objectDetector_{Yolo,SSD,FasterRCNN}/…
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noria.config import ModelConfig
from noria.custom import open_library
from noria.custom.compile import compile_library
from noria.engine import load_or_build
from noria.plugins import get_plugin_registry
from tests.custom.host.conftest import SOURCES
from tests.custom.host.darknet import Model, tiny_yolo

FOLDER = os.environ.get("NORIA_CPP_SOURCES", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="NORIA_CPP_SOURCES is not set")

CONFIG = """[property]
gie-unique-id=1
net-scale-factor=0.00392156862745098
custom-network-config={cfg}
model-file={weights}
batch-size=2
num-detected-classes={classes}
network-type=0
custom-lib-path={library}
engine-create-func-name=NvDsInferYoloCudaEngineGet
"""


def _library(target: Path, folder: str, major: int, *, kernels: bool = True) -> Path:
    """The C++ sources of a folder, compiled unchanged; kernels come from our file beside."""
    found = sorted(Path(FOLDER, folder).rglob("*.cpp"))
    if not found:
        pytest.skip(f"{folder} is not there")
    left_out = ("calibrator.cpp", "nvdsinferserver_custom_process.cpp")  # OpenCV; Triton
    sources = [p for p in found if p.name not in left_out]
    made = compile_library(
        [*sources, *([SOURCES / "yolo_kernels.cpp"] if kernels else [])],
        target / "libreal.so",
        define=[f"NV_TENSORRT_MAJOR={major}"],
        standard="gnu++14",
        links=["-lstdc++fs"],
    )
    return made.library


def _outputs(model: Model, library: Path, classes: int) -> dict[str, Any]:
    path = model.cfg.parent / "config.txt"
    path.write_text(
        CONFIG.format(cfg=model.cfg, weights=model.weights, classes=classes, library=library)
    )
    with load_or_build(ModelConfig.load(path)).open_session() as session:
        return session.run({session.inputs[0].name: model.pictures})


@pytest.mark.parametrize("major", [8, 10])
def test_deepstream_yolo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int) -> None:
    library = _library(tmp_path, "DeepStream-Yolo/nvdsinfer_custom_impl_Yolo", major)
    monkeypatch.chdir(tmp_path)
    model = tiny_yolo(tmp_path, name="yolov3-tiny")
    (rows,) = _outputs(model, library, 3).values()
    np.testing.assert_allclose(rows, model.rows, atol=1e-3)


@pytest.mark.parametrize(("release", "major"), [("5.0", 7), ("6.2", 8)])
def test_object_detector_yolo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, major: int
) -> None:
    library = _library(tmp_path, f"{release}/objectDetector_Yolo", major)
    monkeypatch.chdir(tmp_path)
    model = tiny_yolo(tmp_path, name="yolov3-tiny", width=32, height=32, classes=80)
    found = list(_outputs(model, library, 80).values())
    heads = [model.outputs[i - 1] for i, made in enumerate(model.outputs) if made is None]
    for planes, raw in zip(found, heads, strict=True):
        t = raw.reshape(2, 3, 85, *raw.shape[2:])
        expected = 1 / (1 + np.exp(-t))
        expected[:, :, 2:4] = np.exp(t[:, :, 2:4])
        np.testing.assert_allclose(planes.reshape(t.shape), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("release", "major"), [("5.0", 7), ("6.2", 8)])
def test_object_detector_ssd(tmp_path: Path, release: str, major: int) -> None:
    library = _library(tmp_path, f"{release}/objectDetector_SSD", major, kernels=False)
    opened = open_library(library)
    assert "NvDsInferParseCustomSSD" in opened.symbols()
    assert get_plugin_registry().find("FlattenConcat_TRT") is not None


@pytest.mark.parametrize(("release", "major"), [("5.0", 7), ("6.2", 8)])
def test_object_detector_faster_rcnn(tmp_path: Path, release: str, major: int) -> None:
    library = _library(tmp_path, f"{release}/objectDetector_FasterRCNN", major, kernels=False)
    opened = open_library(library)
    assert "NvDsInferParseCustomFasterRCNN" in opened.symbols()
    assert opened.input_initializer() is not None
