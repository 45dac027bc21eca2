"""A DetectNet-style model through the whole inferencer, with no parser named at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.media import Frame, PixelFormat

CONFIG = """\
[property]
gie-unique-id=3
onnx-file=grid.onnx
num-detected-classes=1
net-scale-factor=0.00392156862745098
cluster-mode=2
batch-size=2
[class-attrs-all]
pre-cluster-threshold=0.5
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """64x64 input, 4x4 grid: the mean red of a cell is its coverage, boxes are 14 pixels wide."""
    offset = np.full((1, 4, 1, 1), 0.2, np.float32)
    nodes = [
        helper.make_node(
            "AveragePool", ["image"], ["means"], kernel_shape=[16, 16], strides=[16, 16]
        ),
        helper.make_node(
            "Split", ["means"], ["output_cov/Sigmoid", "g", "b"], axis=1, num_outputs=3
        ),
        helper.make_node("Sub", ["g", "g"], ["zero"]),
        helper.make_node("Add", ["zero", "offset"], ["output_bbox/BiasAdd"]),
    ]
    graph = helper.make_graph(
        nodes,
        "grid",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 64, 64])],
        [
            helper.make_tensor_value_info("output_bbox/BiasAdd", TensorProto.FLOAT, ["n", 4, 4, 4]),
            helper.make_tensor_value_info("output_cov/Sigmoid", TensorProto.FLOAT, ["n", 1, 4, 4]),
        ],
        [numpy_helper.from_array(offset, "offset")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, tmp_path / "grid.onnx")
    path = tmp_path / "config.txt"
    path.write_text(CONFIG)
    return path


def test_the_grid_parser_is_used_and_its_boxes_reach_the_frame(config: Path) -> None:
    image = np.zeros((128, 128, 3), np.uint8)
    image[32:64, 64:96, 0] = 255  # cell row 1, column 2 of the network input
    with Inferencer.from_config(config) as model:
        assert model.parser.source == "built-in coverage/bbox grid"
        found, nothing = model.process(
            [
                Frame.from_array(image, PixelFormat.RGB),
                Frame.from_array(np.zeros_like(image), PixelFormat.RGB),
            ]
        )
    (thing,) = found.objects
    # cell centre (2*16 + 0.5, 16 + 0.5), 35 * 0.2 = 7 pixels a side, twice as big in the frame
    box = (thing.left, thing.top, thing.width, thing.height)
    assert box == pytest.approx((51, 19, 28, 28), abs=1e-3)
    assert thing.confidence == pytest.approx(1.0, abs=1e-5)
    assert (thing.component_id, thing.label) == (3, "")
    assert len(nothing.objects) == 0


def test_runs_of_a_batch_are_handed_over_and_attached_at_once(config: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.choice(np.array([0, 255], np.uint8), (5, 4, 4, 1)).repeat(32, 1).repeat(32, 2)
    frames = [Frame.from_array(image.repeat(3, 2), PixelFormat.RGB) for image in images]
    with Inferencer.from_config(config, cluster_mode=4) as model:
        alone = [model.process([frame])[0] for frame in frames]
        model.model.watch = None  # which looks at runs alone
        batch = Batch.of(frames)
        pending = model.begin(batch)
        assert [len(run.items) for run in pending.runs] == [2, 2, 1]
        assert len({run.future for run in pending.runs}) == 1
        assert model.runs.shares(pending.runs, model.model) == [3]
        model.complete(pending)
        assert model.completed_items == 10
    assert sum(len(meta.objects) for meta in batch.metas) > 10
    for meta, other in zip(batch.metas, alone, strict=True):
        assert meta.objects.rects.tolist() == other.objects.rects.tolist()
        assert meta.objects.confidences.tolist() == other.objects.confidences.tolist()
