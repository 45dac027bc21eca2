"""Public YOLO libraries, fetched by whoever runs this, compiled unchanged, from config to outputs.

HEADRACE_CPP_SOURCES names a folder with what is there of

    DeepStream-Yolo/nvdsinfer_custom_impl_Yolo/   of marcoslucianops/DeepStream-Yolo
    4.0.1/objectDetector_FasterRCNN/…             of Kwull/deepstream-4.0.1
    5.0/objectDetector_{Yolo,SSD,FasterRCNN}/…    of hiennguyen9874/deepstream-sources, by branch
    6.2/objectDetector_{Yolo,SSD,FasterRCNN}/…

On a machine with nvcc and a GPU their own kernels are compiled, and their plugins work there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Inferencer
from headrace.binary.gpu_code import gpu_evidence
from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.toolchain import find_nvcc, gpu_present
from headrace.infer.model import load_or_build
from headrace.media import Frame, PixelFormat
from headrace.plugins import get_plugin_registry
from tests.network.caffe.models import caffemodel, layer
from tests.trt.host.conftest import SOURCES
from tests.trt.host.darknet import Model, tiny_yolo

FOLDER = os.environ.get("HEADRACE_CPP_SOURCES", "")
ON_GPU = gpu_present() and find_nvcc() is not None
pytestmark = pytest.mark.skipif(not FOLDER, reason="HEADRACE_CPP_SOURCES is not set")

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


def _library(
    target: Path, folder: str, major: int, *, kernels: bool = True, define: Sequence[str] = ()
) -> Path:
    """The C++ sources of a folder, compiled unchanged. Kernels come from our file beside; with a
    GPU, from theirs."""
    found = sorted(Path(FOLDER, folder).rglob("*.cpp"))
    if not found:
        pytest.skip(f"{folder} is not there")
    left_out = ("calibrator.cpp", "nvdsinferserver_custom_process.cpp")  # OpenCV; Triton
    sources = [p for p in found if p.name not in left_out]
    beside = [SOURCES / "yolo_kernels.cpp"]
    if ON_GPU:
        beside = sorted(Path(FOLDER, folder).rglob("*.cu"))
    made = compile_library(
        [*sources, *(beside if kernels else [])],
        target / "libreal.so",
        define=[f"NV_TENSORRT_MAJOR={major}", *define],
        standard="gnu++14",
        links=["-lstdc++fs"],
    )
    assert (gpu_evidence(made.library) is not None) is (ON_GPU and kernels)
    return made.library


def _outputs(model: Model, library: Path, classes: int) -> dict[str, Any]:
    path = model.cfg.parent / "config.txt"
    path.write_text(
        CONFIG.format(cfg=model.cfg, weights=model.weights, classes=classes, library=library)
    )
    with load_or_build(ModelConfig.load(path)).open_session() as session:
        return session.run({session.inputs[0].name: model.images})


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


# The sample's network with fewer and smaller layers: its factory and parser have the sizes in them.
RCNN = """[property]
gie-unique-id=1
net-scale-factor=1
offsets=102.9801;115.9465;122.7717
model-color-format=1
batch-size=1
num-detected-classes=21
network-type=0
cluster-mode=4
model-file={folder}/rcnn.caffemodel
proto-file={folder}/{proto}
output-blob-names=bbox_pred;cls_prob;rois
parse-bbox-func-name=NvDsInferParseCustomFasterRCNN
custom-lib-path={library}
custom-lib-guard=never
[class-attrs-all]
pre-cluster-threshold=0.06
"""
NATIVE = """region_proposal_param { feature_stride: 16 prenms_top: 6000 nms_max_out: 300
    anchor_ratio_count: 3 anchor_scale_count: 3 iou_threshold: 0.7 min_box_size: 16
    anchor_ratio: 0.5 anchor_ratio: 1 anchor_ratio: 2
    anchor_scale: 8 anchor_scale: 16 anchor_scale: 32 }
    roi_pooling_param { pooled_h: 7 pooled_w: 7 spatial_scale: 0.0625 }"""


def _rcnn(kind: str, parameters: str = "") -> str:
    conv = "convolution_param {{ num_output: {} kernel_size: {} pad: {} }}"
    net = 'name: "VGG"\ninput: "data"\ninput_shape { dim: 1 dim: 3 dim: 256 dim: 320 }\n'
    net += 'input: "im_info"\ninput_shape { dim: 1 dim: 1 dim: 1 dim: 3 }\n'
    below = "data"
    for stage in range(4):
        net += layer("Convolution", conv.format(6, 3, 1), bottom=below, top=f"c{stage}",
                     name=f"c{stage}")  # fmt: skip
        net += layer("ReLU", bottom=f"c{stage}", top=f"c{stage}", name=f"r{stage}")
        below = f"p{stage}"
        net += layer("Pooling", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }",
                     bottom=f"c{stage}", top=below, name=below)  # fmt: skip
    for name, count in (("rpn_cls_score", 18), ("rpn_bbox_pred", 36)):
        net += layer("Convolution", conv.format(count, 1, 0), bottom=below, top=name, name=name)
    for bottom, top, dims in (("rpn_cls_score", "two", "0 2 -1 0"), ("soft", "prob", "0 18 -1 0")):
        shape = " ".join(f"dim: {d}" for d in dims.split())
        net += layer("Reshape", f"reshape_param {{ shape {{ {shape} }} }}", bottom=bottom, top=top,
                     name=top)  # fmt: skip
        if top == "two":
            net += layer("Softmax", bottom="two", top="soft", name="soft")
    net += layer(kind, parameters, bottom=f"prob rpn_bbox_pred {below} im_info", top="rois pool5",
                 name="RPROIFused")  # fmt: skip
    for name, count in (("cls_score", 21), ("bbox_pred", 84)):
        net += layer("InnerProduct", f"inner_product_param {{ num_output: {count} }}",
                     bottom="pool5", top=name, name=name)  # fmt: skip
    return net + layer("Softmax", bottom="cls_score", top="cls_prob", name="cls_prob")


def _rcnn_weights() -> bytes:
    rng = np.random.default_rng(5)
    shapes = {f"c{i}": (6, 3 if i == 0 else 6, 3, 3) for i in range(4)}
    shapes |= {"rpn_cls_score": (18, 6, 1, 1), "rpn_bbox_pred": (36, 6, 1, 1)}
    shapes |= {"cls_score": (21, 294), "bbox_pred": (84, 294)}
    scale = {"rpn_bbox_pred": 1e-3, "cls_score": 2e-3, "bbox_pred": 1e-4}
    return caffemodel({
        n: [rng.normal(size=s) * scale.get(n, 0.2), rng.normal(size=s[0]) * 0.1]
        for n, s in shapes.items()
    })  # fmt: skip


@pytest.mark.parametrize(
    ("release", "major", "flags"),
    [
        ("4.0.1", 5, []),
        ("4.0.1", 5, ["USE_LEGACY_IPLUGIN_FACTORY"]),
        ("5.0", 7, []),
        ("6.2", 8, []),
    ],
)
def test_object_detector_faster_rcnn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, major: int, flags: list[str]
) -> None:
    folder = f"{release}/objectDetector_FasterRCNN"
    library = _library(tmp_path, folder, major, kernels=False, define=flags)
    monkeypatch.chdir(tmp_path)
    Path("rcnn.caffemodel").write_bytes(_rcnn_weights())
    Path("factory.prototxt").write_text(_rcnn("IPlugin"))
    Path("native.prototxt").write_text(_rcnn("RPROI", NATIVE))
    rng = np.random.default_rng(6)
    frame = Frame.from_array(rng.integers(0, 256, (256, 320, 3), np.uint8), PixelFormat.BGR)
    found = {}
    for proto in ("factory.prototxt", "native.prototxt", "factory.prototxt"):
        config = Path("config.txt")
        config.write_text(RCNN.format(folder=tmp_path, proto=proto, library=library))
        with Inferencer.from_config(ModelConfig.load(config)) as inferencer:
            boxes = [(o.class_id, o.confidence, *o.rect) for o in inferencer(frame).objects]
        assert len(boxes) > 20
        np.testing.assert_allclose(boxes, found.setdefault("boxes", boxes), rtol=1e-4, atol=1e-2)
