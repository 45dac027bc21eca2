"""Set-ups that are right: config, model and labels as users of each kind of model write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.mistakes.cases import Setup
from tests.mistakes.models import HEIGHT, WIDTH
from tests.mistakes.scene import NAMES

LABELS = "".join(f"{name}\n" for name in NAMES)
UNIT = "0.0039215697906911373"


def detector(model: str, parser: str | None, **keys: Any) -> Setup:
    """A detector of the three squares; keyword `a_b` is the key `a-b`, `all_a_b` of all classes."""
    values: dict[str, Any] = {
        "gpu-id": 0,
        "net-scale-factor": UNIT,
        "model-color-format": 0,
        "onnx-file": model,
        "labelfile-path": "labels.txt",
        "batch-size": 1,
        "network-mode": 0,
        "num-detected-classes": 3,
        "interval": 0,
        "gie-unique-id": 1,
        "process-mode": 1,
        "network-type": 0,
        "cluster-mode": 2,
        "maintain-aspect-ratio": 1,
        "symmetric-padding": 1,
        "parse-bbox-func-name": parser,
        "class-attrs-all.pre-cluster-threshold": 0.3,
        "class-attrs-all.nms-iou-threshold": 0.45,
        "class-attrs-all.topk": 100,
    }
    return Setup({"config.txt": values | _keys(keys)}, {"labels.txt": LABELS}, [model])


def _keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    def named(name: str) -> str:
        group, name = ("class-attrs-all.", name[4:]) if name.startswith("all_") else ("", name)
        return group + name.replace("_", "-")

    return {named(name): value for name, value in keys.items()}


YOLOV8 = detector("yolov8.onnx", "HeadraceParseYoloV8")
YOLOV5 = detector("yolov5.onnx", "HeadraceParseYoloV5")
YOLOX = detector(
    "yolox.onnx", "HeadraceParseYoloX",
    net_scale_factor=1, model_color_format=1, symmetric_padding=None,
)  # fmt: skip
SSD = detector(
    "ssd.onnx", "HeadraceParseSSDCorners", net_scale_factor="0.00784313725490196",
    offsets="127.5;127.5;127.5",
)  # fmt: skip
DETECTNET = detector(
    "detectnet.onnx", None, output_blob_names="output_cov/Sigmoid;output_bbox/BiasAdd"
)
NMS = detector("nms.onnx", "HeadraceParseEfficientNMS", cluster_mode=4, all_nms_iou_threshold=None)
CHANNELS_LAST = detector(
    "channels_last.onnx", "HeadraceParseYoloV8",
    network_input_order=1, infer_dims=f"3;{HEIGHT};{WIDTH}",
)  # fmt: skip
BARE = Setup({}, {}, ["yolov8.onnx"], ("run", "yolov8.onnx", "images", "-o", "out.jsonl"))
PARSER = '''\
import numpy as np
from headrace import Detections

def parse_rows(layers, network, params):
    """Columns of centre box and scores."""
    rows = layers["output0"].data.T
    scores = rows[:, 4:]
    classes = scores.argmax(1)
    best = scores.max(1)
    keep = best >= params.min_threshold
    boxes = rows[keep, :4]
    boxes[:, :2] -= boxes[:, 2:] / 2
    return Detections(boxes, best[keep], classes[keep])
'''
_OWN = detector("yolov8.onnx", "parse_rows", custom_lib_path="my_parser.py")
OWN_PARSER = Setup(_OWN.configs, {**_OWN.files, "my_parser.py": PARSER}, _OWN.models)

SECONDARY = Setup(
    {
        "pgie.txt": YOLOV8.configs["config.txt"],
        "sgie.txt": {
            "net-scale-factor": "0.017352607709750568",
            "offsets": "123.675;116.28;103.53",
            "model-color-format": 0,
            "onnx-file": "classifier.onnx",
            "labelfile-path": "colors.txt",
            "batch-size": 16,
            "network-mode": 0,
            "gie-unique-id": 2,
            "process-mode": 2,
            "network-type": 1,
            "operate-on-gie-id": 1,
            "operate-on-class-ids": "0;1;2",
            "classifier-threshold": 0.5,
        },
    },
    {"labels.txt": LABELS, "colors.txt": "red;green;blue\n"},
    ["yolov8.onnx", "classifier.onnx"],
    ("run", "pgie.txt", "sgie.txt", "images", "-o", "out.jsonl"),
)
CLASSIFIER = Setup(
    {
        "config.txt": {
            **SECONDARY.configs["sgie.txt"],
            "batch-size": 1,
            "gie-unique-id": 1,
            "process-mode": 1,
            "operate-on-gie-id": None,
            "operate-on-class-ids": None,
            "classifier-threshold": 0.3,
        }
    },
    {"colors.txt": "red;green;blue\n"},
    ["classifier.onnx"],
    boxes=False,
)
SEGMENTER = Setup(
    {
        "config.txt": {
            "net-scale-factor": UNIT,
            "model-color-format": 0,
            "onnx-file": "segmenter.onnx",
            "batch-size": 1,
            "network-mode": 0,
            "num-detected-classes": 4,
            "gie-unique-id": 1,
            "network-type": 2,
            "segmentation-threshold": 0.0,
            "output-blob-names": "logits",
        }
    },
    {},
    ["segmenter.onnx"],
    ("run", "config.txt", "images", "-o", "masks:masks"),
    boxes=False,
)
