"""Detectors that end in an NMS plugin, from an nvinfer config to boxes.

They find what the same models find with the suppression of the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.infer.inferencer import Inferencer
from headrace.media import Frame, PixelFormat, open_source
from tests.network.caffe import test_importer_rcnn as test_rcnn
from tests.network.caffe.models import caffemodel
from tests.network.caffe.slow import prior_boxes
from tests.network.caffe.test_importer_ssd import ssd_text, ssd_weights

CONVEYOR = Path(__file__).parents[3] / "examples" / "conveyor"
CLASSES, ROWS, COLUMNS, CELL = 6, 24, 40, 8
CELLS = ROWS * COLUMNS

CONFIG = """\
[property]
gie-unique-id=1
num-detected-classes=6
net-scale-factor=0.00392156862745098
maintain-aspect-ratio=1
scaling-filter=1
batch-size=2
infer-dims=3;192;320
onnx-file=model.onnx
{}
[class-attrs-all]
pre-cluster-threshold=0.3
nms-iou-threshold=0.5
"""

PARSER = '''
import numpy as np
from headrace import Detections

def parse(layers, network, params):
    """Every class of every box over the threshold."""
    boxes, scores = layers["boxes"].data.reshape(-1, 4), layers["scores"].data
    box, label = np.nonzero(scores >= params.per_class_threshold[0])
    limit = np.array([network.width, network.height] * 2, np.float32) - {edge}
    corners = boxes[box].clip(0, limit)
    return Detections.from_xyxy(corners, scores[box, label], label)
'''


def decoded() -> tuple[Any, list[Any], list[Any]]:
    """The demo's detector with nodes for `boxes` [b, 960, 1, 4] in pixels and `scores` [b, 960, 6],
    0 for all but the best class of a cell."""
    model = onnx.load(CONVEYOR / "detector.onnx")
    rows, columns = np.mgrid[0:ROWS, 0:COLUMNS]
    centres = (np.stack([columns, rows], -1).reshape(1, CELLS, 1, 2) + 0.5) * CELL
    constants = {
        "flat6": np.array([0, CLASSES, CELLS]), "flat4": np.array([0, 4, 1, CELLS]),
        "none": np.float32(0), "cell": np.float32(CELL), "centres": centres.astype(np.float32),
        "zero": np.array([0]), "two": np.array([2]), "four": np.array([4]), "last": np.array([3]),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Reshape", ["scores", "flat6"], ["logits6"]),
        node("Transpose", ["logits6"], ["logits"], perm=[0, 2, 1]),
        node("Sigmoid", ["logits"], ["points"]),
        node("ReduceMax", ["points"], ["best"], axes=[2], keepdims=1),
        node("GreaterOrEqual", ["points", "best"], ["is_best"]),
        node("Where", ["is_best", "points", "none"], ["own_scores"]),
        node("Reshape", ["distances", "flat4"], ["d4"]),
        node("Transpose", ["d4"], ["d"], perm=[0, 3, 2, 1]),
        node("Exp", ["d"], ["cells"]),
        node("Mul", ["cells", "cell"], ["reach"]),
        node("Slice", ["reach", "zero", "two", "last"], ["near"]),
        node("Slice", ["reach", "two", "four", "last"], ["far"]),
        node("Sub", ["centres", "near"], ["first"]),
        node("Add", ["centres", "far"], ["second"]),
        node("Concat", ["first", "second"], ["own_boxes"], axis=3),
    ]
    return model, nodes, [numpy_helper.from_array(a, n) for n, a in constants.items()]


def write(path: Path, more: Sequence[Any], outputs: Sequence[tuple[str, int, list[Any]]]) -> None:
    model, nodes, constants = decoded()
    graph = model.graph
    graph.node.extend([*nodes, *more])
    graph.initializer.extend(constants)
    model.opset_import.append(helper.make_opsetid("TRT", 1))
    del graph.output[:]
    graph.output.extend(helper.make_tensor_value_info(*output) for output in outputs)
    onnx.save(model, path)


def frames() -> list[Frame]:
    """Eight frames of the demo's clip, and one with nothing on it."""
    found = []
    with open_source(str(CONVEYOR / "conveyor.mp4")) as source:
        for number, frame in enumerate(source):
            if number % 20 == 0:
                found.append(frame)
            if len(found) == 8:
                break
    return [*found, Frame.from_array(np.zeros((192, 320, 3), np.uint8), PixelFormat.RGB)]


def boxes_of(config: Path, images: Sequence[Frame]) -> list[list[tuple[Any, ...]]]:
    """Of each frame (class, score, left, top, width, height), in a fixed order."""
    with Inferencer.from_config(config) as model:
        metas = [
            meta for i in range(0, len(images), 2) for meta in model.process(images[i : i + 2])
        ]
    return [
        sorted((o.class_id, o.confidence, o.left, o.top, o.width, o.height) for o in meta.objects)
        for meta in metas
    ]


def same(found: list[Any], wanted: list[Any], least: int) -> None:
    assert sum(map(len, wanted)) >= least
    assert [len(f) for f in found] == [len(w) for w in wanted]
    for a, b in zip(found, wanted, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x == pytest.approx(y, rel=1e-4, abs=2e-2)


@pytest.fixture
def pipeline(tmp_path: Path) -> Any:
    """Boxes of the model without the plugin, suppressed by the pipeline."""

    def run(edge: int) -> list[Any]:
        folder = tmp_path / "plain"
        folder.mkdir()
        write(
            folder / "model.onnx",
            [helper.make_node("Identity", ["own_boxes"], ["boxes"]),
             helper.make_node("Identity", ["own_scores"], ["scores_"])],
            [("boxes", TensorProto.FLOAT, ["batch", CELLS, 1, 4]),
             ("scores_", TensorProto.FLOAT, ["batch", CELLS, CLASSES])],
        )  # fmt: skip
        text = PARSER.replace('layers["scores"]', 'layers["scores_"]').replace("{edge}", str(edge))
        (folder / "parser.py").write_text(text)
        keys = "cluster-mode=2\ncustom-lib-path=parser.py\nparse-bbox-func-name=parse"
        (folder / "config.txt").write_text(CONFIG.format(keys))
        return boxes_of(folder / "config.txt", frames())

    return run


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["", "TRT"])
@pytest.mark.sampled
def test_a_detector_that_ends_in_efficient_nms(domain: str, tmp_path: Path, pipeline: Any) -> None:
    """Exporters put the node in domains of their own."""
    node = helper.make_node(
        "EfficientNMS_TRT", ["own_boxes", "own_scores"],
        ["num_dets", "det_boxes", "det_scores", "det_classes"], "nms",
        score_threshold=0.3, iou_threshold=0.5, max_output_boxes=60, background_class=-1,
        score_activation=0, box_coding=0, class_agnostic=0, plugin_version="1", domain=domain,
    )  # fmt: skip
    write(
        tmp_path / "model.onnx",
        [node],
        [("num_dets", TensorProto.INT32, ["batch", 1]),
         ("det_boxes", TensorProto.FLOAT, ["batch", 60, 4]),
         ("det_scores", TensorProto.FLOAT, ["batch", 60]),
         ("det_classes", TensorProto.INT32, ["batch", 60])],
    )  # fmt: skip
    keys = "cluster-mode=4\nparse-bbox-func-name=HeadraceParseEfficientNMS"
    (tmp_path / "config.txt").write_text(CONFIG.format(keys))
    found = boxes_of(tmp_path / "config.txt", frames())
    same(found, pipeline(0), least=20)
    assert found[-1] == []
    again = boxes_of(tmp_path / "config.txt", frames())  # from the engine file
    assert again == found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BatchedNMSDynamic_TRT", "BatchedNMS_TRT"])
@pytest.mark.sampled
def test_a_detector_that_ends_in_batched_nms(name: str, tmp_path: Path, pipeline: Any) -> None:
    outputs = ["num_detections", "nmsed_boxes", "nmsed_scores", "nmsed_classes"]
    node = helper.make_node(
        name, ["own_boxes", "own_scores"], outputs, "nms",
        shareLocation=1, backgroundLabelId=-1, numClasses=CLASSES, topK=500, keepTopK=60,
        scoreThreshold=0.3, iouThreshold=0.5, isNormalized=1, clipBoxes=0, scoreBits=16,
        plugin_version="1",
    )  # fmt: skip
    count = ["batch", 1] if "Dynamic" in name else ["batch"]
    shapes = [count, ["batch", 60, 4], ["batch", 60], ["batch", 60]]
    kinds = [TensorProto.INT32, *[TensorProto.FLOAT] * 3]
    write(tmp_path / "model.onnx", [node], list(zip(outputs, kinds, shapes, strict=True)))
    keys = "cluster-mode=4\nparse-bbox-func-name=NvDsInferParseYoloV5CustomBatchedNMSTLT"
    (tmp_path / "config.txt").write_text(CONFIG.format(keys))
    same(boxes_of(tmp_path / "config.txt", frames()), pipeline(1), least=20)


SSD_CONFIG = """\
[property]
gie-unique-id=1
num-detected-classes=3
net-scale-factor=0.02
offsets=127;127;127
model-file=ssd.caffemodel
proto-file=ssd.prototxt
batch-size=2
{}
[class-attrs-all]
pre-cluster-threshold=0.4
nms-iou-threshold=0.45
"""

SSD_PARSER = '''
from pathlib import Path

import numpy as np
from headrace import Detections

PRIORS = np.load(Path(__file__).with_name("priors.npy"))

def parse(layers, network, params):
    """SSD as it was written: priors, variances, the scores of each class but the background."""
    loc, conf = layers["loc"].data.reshape(-1, 4), layers["conf_f"].data.reshape(-1, 3)
    boxes, variance = PRIORS, np.array([0.1, 0.1, 0.2, 0.2])
    size = boxes[:, 2:] - boxes[:, :2]
    middle = (boxes[:, 2:] + boxes[:, :2]) / 2 + loc[:, :2] * variance[:2] * size
    half = np.exp(loc[:, 2:] * variance[2:]) * size / 2
    corners = np.concatenate([middle - half, middle + half], axis=1)
    box, label = np.nonzero(conf[:, 1:] > 0.4)
    pixels = corners[box] * np.tile([network.width, network.height], 2)
    return Detections.from_xyxy(pixels, conf[box, label + 1], label + 1)
'''


def test_an_ssd_of_caffe_layers(tmp_path: Path) -> None:
    """Prior boxes and detection output; the other way parses what stands before that layer."""
    images = [
        Frame.from_array(
            np.random.default_rng(i).integers(0, 255, (32, 48, 3)).astype(np.uint8), PixelFormat.RGB
        )
        for i in range(4)
    ]
    (tmp_path / "ssd.caffemodel").write_bytes(caffemodel(ssd_weights()))
    text = (
        ssd_text().replace("keep_top_k: 20", "keep_top_k: 200").replace("top_k: 30", "top_k: 400")
    )
    (tmp_path / "ssd.prototxt").write_text(
        text.replace('top: "detection_out"', 'top: "detection_out" top: "keep_count"')
    )
    keys = "cluster-mode=4\noutput-blob-names=detection_out;keep_count\n"
    keys += "parse-bbox-func-name=NvDsInferParseCustomNMSTLT"
    (tmp_path / "plugin.txt").write_text(SSD_CONFIG.format(keys))
    (tmp_path / "parser.py").write_text(SSD_PARSER)
    plain = {"flip": True, "clip": False, "step": None, "offset": 0.5}
    grids = [
        prior_boxes(h, w, (32, 48), [8 * i], [14 * i], [2], **plain)
        for i, h, w in ((1, 8, 12), (2, 4, 6))
    ]
    np.save(tmp_path / "priors.npy", np.concatenate(grids))
    keys = "cluster-mode=2\noutput-blob-names=loc;conf_f\ncustom-lib-path=parser.py\n"
    keys += "parse-bbox-func-name=parse\n"
    (tmp_path / "plain.txt").write_text(SSD_CONFIG.format(keys))
    # the plugin cuts boxes to the image, the pipeline drops those that leave it
    found, wanted = (
        [list(filter(_inside, boxes)) for boxes in boxes_of(tmp_path / name, images)]
        for name in ("plugin.txt", "plain.txt")
    )
    same(found, wanted, least=100)


def _inside(box: tuple[Any, ...]) -> bool:
    left, top, width, height = box[2:]
    return bool(left > 0 and top > 0 and left + width < 47.99 and top + height < 31.99)


FRCNN_CONFIG = """\
[property]
gie-unique-id=1
num-detected-classes=3
net-scale-factor=0.02
offsets=127;127;127
model-file=frcnn.caffemodel
proto-file=frcnn.prototxt
batch-size=2
output-blob-names=bbox_pred;cls_prob;rois
custom-lib-path=inputs.py
parse-bbox-func-name=NvDsInferParseCustomFasterRCNN
cluster-mode=2
[class-attrs-all]
pre-cluster-threshold=0.3
"""

INPUTS = """
from headrace.infer.parsers import WELL_KNOWN

def NvDsInferParseCustomFasterRCNN(layers, network, params):
    return WELL_KNOWN["NvDsInferParseCustomFasterRCNN"](layers, network, params)

def NvDsInferInitializeInputLayers(layers, network, max_batch):
    layers["im_info"][:] = network.height, network.width, 1
"""


def test_a_faster_rcnn_of_caffe_layers(tmp_path: Path) -> None:
    """Proposals, pooled features and heads; the image's size comes from the custom library."""
    (tmp_path / "frcnn.caffemodel").write_bytes(test_rcnn.weights())
    (tmp_path / "frcnn.prototxt").write_text(test_rcnn.text())
    (tmp_path / "inputs.py").write_text(INPUTS)
    (tmp_path / "config.txt").write_text(FRCNN_CONFIG)
    random = np.random.default_rng(0)
    images = [
        Frame.from_array(random.integers(0, 255, (64, 80, 3)).astype(np.uint8), PixelFormat.RGB)
        for _ in range(4)
    ]
    found = boxes_of(tmp_path / "config.txt", images)
    assert all(found)
    assert all(min(x[2:4]) >= 0 and x[1] >= 0.3 for boxes in found for x in boxes)
