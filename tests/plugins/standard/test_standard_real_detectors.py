"""Trained detectors that end in a plugin, on photographs.

They find what the same weights find without it, parsed and suppressed by the pipeline.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.custom.compile.build_library import compile_library
from headrace.media import open_source
from tests.plugins.standard.test_standard_detectors import boxes_of, same

pytestmark = pytest.mark.data
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32

YOLOX = """\
[property]
gie-unique-id=1
onnx-file={}
num-detected-classes=80
batch-size=2
net-scale-factor=1
model-color-format=1
maintain-aspect-ratio=1
scaling-filter=1
{}
[class-attrs-all]
pre-cluster-threshold=0.3
nms-iou-threshold=0.45
topk=300
"""
BATCHED = """
import numpy as np
from headrace import Detections

def parse(layers, network, params):
    n = int(layers["num_detections"].data.ravel()[0])
    boxes, scores, labels = (layers[f"nmsed_{k}"].data[:n] for k in ("boxes", "scores", "classes"))
    corners = boxes * np.array([network.width, network.height] * 2, np.float32)
    return Detections.from_xyxy(corners, scores, labels.astype(int))
"""
BATCHED_CPP = r"""
#include <cstring>
#include "nvdsinfer_custom_impl.h"

static const void *named(const std::vector<NvDsInferLayerInfo> &layers, const char *name) {
    for (const auto &layer : layers)
        if (!std::strcmp(layer.layerName, name)) return layer.buffer;
    return nullptr;
}

extern "C" bool parse(std::vector<NvDsInferLayerInfo> const &layers,
                      NvDsInferNetworkInfo const &net, NvDsInferParseDetectionParams const &,
                      std::vector<NvDsInferParseObjectInfo> &objects) {
    auto count = static_cast<const int *>(named(layers, "num_detections"));
    auto b = static_cast<const float *>(named(layers, "nmsed_boxes"));
    auto scores = static_cast<const float *>(named(layers, "nmsed_scores"));
    auto labels = static_cast<const float *>(named(layers, "nmsed_classes"));
    if (!count || !b || !scores || !labels) return false;
    for (int i = 0; i < *count; ++i, b += 4) {
        NvDsInferParseObjectInfo o{};
        o.classId = static_cast<unsigned>(labels[i]);
        o.detectionConfidence = scores[i];
        o.left = b[0] * net.width;
        o.top = b[1] * net.height;
        o.width = (b[2] - b[0]) * net.width;
        o.height = (b[3] - b[1]) * net.height;
        objects.push_back(o);
    }
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(parse);
"""


def photographs(data_dir: Path) -> list[Any]:
    with open_source(str(data_dir / "images" / "*.jpg")) as source:
        return list(source)


def yolox_with_batched_nms(source: Path, path: Path) -> None:
    """Decoded to corners in 0..1, [1, 3549, 1, 4], and class scores, [1, 3549, 80]."""
    model = onnx.load(source)
    cells = []
    for stride in (8, 16, 32):
        row, column = np.mgrid[: 416 // stride, : 416 // stride].reshape(2, -1)
        cells.append(np.stack([column, row, np.full_like(row, stride)], 1))
    cell = np.concatenate(cells).astype(np.float32)[None]
    constants = {
        "places": cell[..., :2], "strides": cell[..., 2:] / 416, "half": np.float32(0.5),
        "flat": np.array([0, -1, 1, 4]),
    }  # fmt: skip
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()
    )
    (raw,) = [o.name for o in model.graph.output]
    outputs = ["num_detections", "nmsed_boxes", "nmsed_scores", "nmsed_classes"]
    node = helper.make_node
    model.graph.node.extend([
        node("Split", [raw], ["xy", "wh", "object", "class"], axis=2, split=[2, 2, 1, 80]),
        node("Add", ["xy", "places"], ["middle_cells"]),
        node("Mul", ["middle_cells", "strides"], ["middle"]),
        node("Exp", ["wh"], ["size_cells"]),
        node("Mul", ["size_cells", "strides"], ["size"]),
        node("Mul", ["size", "half"], ["reach"]),
        node("Sub", ["middle", "reach"], ["first"]),
        node("Add", ["middle", "reach"], ["second"]),
        node("Concat", ["first", "second"], ["corners"], axis=2),
        node("Reshape", ["corners", "flat"], ["boxes"]),
        node("Mul", ["class", "object"], ["points"]),
        node(
            "BatchedNMSDynamic_TRT", ["boxes", "points"], outputs, "nms", shareLocation=1,
            backgroundLabelId=-1, numClasses=80, topK=1000, keepTopK=100, scoreThreshold=0.3,
            iouThreshold=0.45, isNormalized=1, clipBoxes=1, plugin_version="1",
        ),
    ])  # fmt: skip
    del model.graph.output[:]
    shapes = [[1, 1], [1, 100, 4], [1, 100], [1, 100]]
    for name, shape in zip(outputs, shapes, strict=True):
        kind = INT32 if name == outputs[0] else FLOAT
        model.graph.output.append(helper.make_tensor_value_info(name, kind, shape))
    onnx.save(model, path)


@pytest.mark.slow
def test_yolox_that_ends_in_batched_nms(data_dir: Path, tmp_path: Path) -> None:
    shutil.copy(data_dir / "models" / "yolox_nano.onnx", tmp_path / "plain.onnx")
    yolox_with_batched_nms(tmp_path / "plain.onnx", tmp_path / "nms.onnx")
    (tmp_path / "parser.py").write_text(BATCHED)
    (tmp_path / "parser.cpp").write_text(BATCHED_CPP)
    compile_library([tmp_path / "parser.cpp"], tmp_path / "libparser.so")
    own = "parse-bbox-func-name=parse\ncluster-mode=4\ncustom-lib-path="
    named = "cluster-mode=4\nparse-bbox-func-name="
    images = photographs(data_dir)

    def found(model: str, keys: str) -> list[Any]:
        (tmp_path / "config.txt").write_text(YOLOX.format(model, keys))
        return boxes_of(tmp_path / "config.txt", images)

    wanted = found("plain.onnx", "cluster-mode=2\nparse-bbox-func-name=HeadraceParseYoloX")
    # read off the photographs by eye: people, buses, frisbees
    assert all(len(boxes) >= 3 for boxes in wanted)
    labels = Counter(box[0] for boxes in wanted for box in boxes)
    assert (labels[0], labels[5], labels[29]) == (17, 2, 4)
    for keys in (
        own + "parser.py",
        own + "libparser.so\ncustom-lib-guard=never",
        named + "NvDsInferParseCustomYoloV4",
    ):
        same(found("nms.onnx", keys), wanted, least=25)
    # this one cuts at the last pixel, not at the edge
    tlt = found("nms.onnx", named + "NvDsInferParseCustomBatchedNMSTLT")
    assert [len(f) for f in tlt] == [len(w) for w in wanted]


RFB = """\
[property]
gie-unique-id=1
{}
net-scale-factor=0.0078125
offsets=127;127;127
scaling-filter=1
batch-size=2
[class-attrs-all]
pre-cluster-threshold=0.6
nms-iou-threshold=0.3
topk=200
"""
PRIORS = (("330", (10, 16, 24)), ("376", (32, 48)), ("416", (64, 96)), ("434", (128, 192, 256)))
FACES = {  # middles, read off the photographs by eye
    0: [(134, 440), (286, 451)],
    3: [(138, 126), (164, 102), (274, 92), (405, 88)],
    4: [(102, 92), (222, 154), (252, 154), (342, 160)],
}  # fmt: skip


def rfb_prototxt(text: str, *, names: tuple[str, str]) -> str:
    """The face detector, its own prior boxes and a DetectionOutput behind it."""
    variances = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
    for k, (features, sizes) in enumerate(PRIORS):
        least = " ".join(f"min_size: {s}" for s in sizes)
        text += f"""
layer {{ name: "prior{k}" type: "PriorBox" bottom: "{features}" bottom: "input" top: "prior{k}"
  prior_box_param {{ {least} flip: false {variances} }} }}"""
    bottoms = " ".join(f'bottom: "prior{k}"' for k in range(len(PRIORS)))
    return f"""{text}
layer {{ name: "priors" type: "Concat" {bottoms} top: "priors" concat_param {{ axis: 2 }} }}
layer {{ name: "loc" type: "Flatten" bottom: "boxes" top: "loc" }}
layer {{ name: "conf" type: "Flatten" bottom: "scores" top: "conf" }}
layer {{ name: "nms" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors"
  top: "{names[0]}" top: "{names[1]}"
  detection_output_param {{ num_classes: 2 background_label_id: 0 code_type: CENTER_SIZE
    nms_param {{ nms_threshold: 0.3 top_k: 400 }} keep_top_k: 200 confidence_threshold: 0.6 }} }}
"""


def rfb_onnx(source: Path, path: Path, batch: int | str) -> None:
    """The same as nodes. The exporter wrote shapes as arithmetic: only a run tells them."""
    model = onnx.load(source)
    graph = model.graph
    assert "Shape" in {n.op_type for n in graph.node}
    graph.initializer.append(numpy_helper.from_array(np.array([0, -1, 1, 1]), "flat"))
    node = helper.make_node
    for k, (features, sizes) in enumerate(PRIORS):
        least = [float(s) for s in sizes]
        graph.node.append(
            node("PriorBox_TRT", [features, "input"], [f"prior{k}"], minSize=least, flip=0)
        )
    graph.node.extend([
        node("Concat", [f"prior{k}" for k in range(len(PRIORS))], ["priors"], axis=2),
        node("Reshape", ["boxes", "flat"], ["loc"]),
        node("Reshape", ["scores", "flat"], ["conf"]),
        node(
            "NMS_TRT", ["loc", "conf", "priors"], ["NMS", "NMS_1"], shareLocation=1,
            varianceEncodedInTarget=0, backgroundLabelId=0, numClasses=2, topK=400, keepTopK=200,
            confidenceThreshold=0.6, nmsThreshold=0.3, inputOrder=[0, 1, 2], codeType=1,
        ),
    ])  # fmt: skip
    del graph.output[:]
    for name, shape in (("NMS", [batch, 1, 200, 7]), ("NMS_1", [batch, 1, 1, 1])):
        graph.output.append(helper.make_tensor_value_info(name, FLOAT, shape))
    if isinstance(batch, str):
        (image,) = [v for v in graph.input if v.name == "input"]
        image.type.tensor_type.shape.dim[0].dim_param = batch
    onnx.save(model, path)


@pytest.fixture(scope="module")
def faces(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the twin with decoded boxes finds, suppressed by the pipeline."""
    folder = tmp_path_factory.mktemp("twin")
    shutil.copy(data_dir / "models" / "version-RFB-320.onnx", folder / "twin.onnx")
    keys = "onnx-file=twin.onnx\nnum-detected-classes=1\ncluster-mode=2\n"
    keys += "parse-bbox-func-name=HeadraceParseSSDCorners"
    (folder / "config.txt").write_text(RFB.format(keys))
    found = boxes_of(folder / "config.txt", photographs(data_dir))
    middles = {i: sorted((x + w / 2, y + h / 2) for _, _, x, y, w, h in boxes)
               for i, boxes in enumerate(found) if boxes}  # fmt: skip
    assert middles.keys() == FACES.keys()
    for i, places in FACES.items():
        np.testing.assert_allclose(middles[i], places, atol=12)
    # the plugin's class 0 is the background
    return [[(1, *box[1:]) for box in boxes] for boxes in found]


AFTER = "num-detected-classes=2\ncluster-mode=4\nparse-bbox-func-name="


@pytest.mark.parametrize(
    ("parser", "names"),
    [
        ("NvDsInferParseCustomNMSTLT", ("detection_out", "keep_count")),
        ("NvDsInferParseCustomSSDTLT", ("NMS", "NMS_1")),
    ],
)
@pytest.mark.sampled
def test_a_caffe_ssd_of_trained_weights(
    parser: str, names: tuple[str, str], data_dir: Path, tmp_path: Path, faces: list[Any]
) -> None:
    """The layers of SSD find the faces that the ONNX twin finds."""
    models = data_dir / "models"
    shutil.copy(models / "RFB-320.caffemodel", tmp_path / "rfb.caffemodel")
    text = (models / "RFB-320.prototxt").read_text()
    (tmp_path / "rfb.prototxt").write_text(rfb_prototxt(text, names=names))
    keys = (
        f"proto-file=rfb.prototxt\nmodel-file=rfb.caffemodel\noutput-blob-names={';'.join(names)}"
    )
    (tmp_path / "config.txt").write_text(RFB.format(f"{keys}\n{AFTER}{parser}"))
    same(boxes_of(tmp_path / "config.txt", photographs(data_dir)), faces, least=10)


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.sampled
def test_an_onnx_ssd_of_trained_weights(
    batch: int | str, data_dir: Path, tmp_path: Path, faces: list[Any]
) -> None:
    source = data_dir / "models" / "version-RFB-320_without_postprocessing.onnx"
    rfb_onnx(source, tmp_path / "ssd.onnx", batch)
    keys = f"onnx-file=ssd.onnx\n{AFTER}NvDsInferParseCustomNMSTLT"
    (tmp_path / "config.txt").write_text(RFB.format(keys))
    same(boxes_of(tmp_path / "config.txt", photographs(data_dir)), faces, least=10)
