"""Fixtures: images whose truth a model of channel means finds, or does not."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto, helper

from headrace.config import ModelConfig
from tests.diagnose.evaluate.datasets.images import image

NO_BOXES = dict.fromkeys(
    ("num_detected_classes", "parse_bbox_func_name", "custom_lib_path", "cluster_mode")
)
RED, GREEN, BLUE = (200, 20, 20), (20, 200, 20), (20, 20, 200)


@pytest.fixture
def boxes(tmp_path):
    """A COCO JSON of three red images: a box as the model's, one in a corner, and none.

    One image is turned by EXIF.
    """

    def write(**changes):
        annotations = [(1, [16, 8, 32, 16]), (2, [0, 0, 9, 9]), (4, [8, 16, 16, 32])]
        document = {
            "categories": [{"id": 1, "name": "Thing"}],
            "images": [
                {"id": i, "file_name": f"{i}.png", "width": 64, "height": 32} for i in (1, 2, 3)
            ],
            "annotations": [
                {"id": n, "image_id": i, "category_id": 1, "bbox": b, "area": b[2] * b[3]}
                for n, (i, b) in enumerate(annotations)
            ],
        }
        document["images"].append({"id": 4, "file_name": "4.png", "width": 32, "height": 64})
        (tmp_path / "t.json").write_text(json.dumps(document | changes))
        for i in (1, 2, 3):
            image(tmp_path / "images" / f"{i}.png", (64, 32), (80 + i, 20, 20))
        image(tmp_path / "images" / "4.png", (64, 32), (250, 20, 20), orientation=6)
        return tmp_path / "t.json"

    return write


@pytest.fixture
def classifier(mean_config, tmp_path):
    """A classifier of the strongest colour."""
    path = mean_config(network_type=1, classifier_threshold=0.9, **NO_BOXES)
    (tmp_path / "labels.txt").write_text("red;green;blue\n")
    return ModelConfig.load(path)


@pytest.fixture
def segmenter(mean_config, tmp_path):
    """A model whose class of a pixel is its strongest colour."""
    keys = NO_BOXES | {"num_detected_classes": 3}
    path = mean_config(network_type=2, segmentation_threshold=0.3, **keys)
    shape = ["n", 3, 32, 32]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["image"], ["classes"])],
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, shape)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "mean.onnx")
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    return ModelConfig.load(path)
