"""Class maps and instance masks from real ONNX graphs, through an inferencer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.infer.inferencer import Inferencer
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import COLORS, Patch, batch_of, image

SIZE = 16
LABELS = "red\ngreen\nblue\n"


def softmax_model(folder: Path, *, interleaved: bool = False, stride: int = 1) -> None:
    """Which of red, green, blue a pixel is: the softmax of the image itself, one class each."""
    nodes = [node("Softmax", ["image"], ["p"], axis=1)]
    size = SIZE // stride
    last, shape = "p", ["n", 3, size, size]
    if stride > 1:
        nodes.append(
            node("MaxPool", [last], ["s"], kernel_shape=[stride] * 2, strides=[stride] * 2)
        )
        last = "s"
    if interleaved:
        nodes.append(node("Transpose", [last], ["t"], perm=[0, 2, 3, 1]))
        last, shape = "t", ["n", size, size, 3]
    nodes.append(node("Identity", [last], ["out"]))
    write_model(folder / "m.onnx", nodes, {"image": ["n", 3, SIZE, SIZE]}, {"out": shape})
    (folder / "labels.txt").write_text(LABELS)


def semantic(folder: Path, **keys: object) -> Path:
    values = {
        "onnx_file": "m.onnx",
        "labelfile_path": "labels.txt",
        "network_type": 2,
        "num_detected_classes": 3,
        "segmentation_threshold": 0.6,
        "net_scale_factor": 0.02,
    }
    return write_config(folder, **values | keys)


HALVES: list[Patch] = [("red", (0, 0, 32, 64)), ("blue", (32, 0, 32, 48))]


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_class_for_every_pixel(tmp_path: Path, interleaved: bool) -> None:
    softmax_model(tmp_path, interleaved=interleaved)
    config = semantic(tmp_path, segmentation_output_order=int(interleaved))
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([image(HALVES, size=(64, 64))])
    (found,) = meta.segmentations
    expected = np.full((SIZE, SIZE), -1)
    expected[:, :8] = 0
    expected[:12, 8:] = 2
    np.testing.assert_array_equal(found.class_map, expected)
    assert (found.num_classes, tuple(found.labels)) == (3, ("red", "green", "blue"))
    assert found.region == (0, 0, SIZE, SIZE)
    assert found.probabilities is not None
    assert found.probabilities.shape == ((16, 16, 3) if interleaved else (3, 16, 16))
    assert meta.inferred
    assert len(meta.objects) == 0


def test_a_letterboxed_image_fills_a_region_of_the_map(tmp_path: Path) -> None:
    softmax_model(tmp_path)
    config = semantic(tmp_path, maintain_aspect_ratio=1, symmetric_padding=1)
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([image([("green", (0, 0, 64, 32))], size=(64, 32))])
    (found,) = meta.segmentations
    assert found.region == (0, 4, 16, 8)
    inside = found.class_map[4:12]
    assert (inside == 1).all()
    assert (found.class_map == 1).sum() == inside.size


def test_an_output_smaller_than_the_input(tmp_path: Path) -> None:
    softmax_model(tmp_path, stride=4)
    with Inferencer.from_config(semantic(tmp_path, segmentation_threshold=0.9)) as model:
        for number in range(2):
            (meta,) = model.process([image(HALVES, size=(64, 64), number=number)])
        said = [n for n in model.notices if "size of the output" in n.sentence]
    (found,) = meta.segmentations
    assert found.class_map.tolist() == [[0, 0, 2, 2]] * 3 + [[0, 0, -1, -1]]
    assert len(said) == 1


def test_objects_have_maps_of_their_crops(tmp_path: Path) -> None:
    softmax_model(tmp_path)
    config = semantic(tmp_path, process_mode=2, gie_unique_id=3, batch_size=2)
    scene: list[Patch] = [(c, (10 + 44 * i, 10, 40, 40)) for i, c in enumerate(("red", "blue"))]
    batch = batch_of([[*scene, ("green", (98, 10, 40, 40))]])
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert meta.segmentations == []
    maps = [np.unique(o.segmentations[0].class_map).tolist() for o in meta.objects]
    assert maps == [[0], [2], [1]]


def test_a_wrong_number_of_classes_costs_results_only(tmp_path: Path) -> None:
    softmax_model(tmp_path)
    with Inferencer.from_config(semantic(tmp_path, num_detected_classes=4)) as model:
        metas = model.process([image(HALVES), image([])])
        assert model.failed_items == 2
        assert sum("3 classes, num-detected-classes=4" in n.sentence for n in model.notices) == 1
    assert [m.segmentations for m in metas] == [[], []]


PARSER = """
import numpy as np
from headrace import Detections

def parse(layers, network, params):
    boxes, masks, scores = (layers[n].data for n in ("boxes", "masks", "scores"))
    return Detections(boxes, scores, np.zeros(len(scores), int), masks=list(masks))
"""


def instance_model(folder: Path) -> None:
    """Two fixed boxes; their masks are crops of the red plane, their scores its mean."""
    boxes = np.array([[0, 0, 8, 16], [8, 4, 8, 8]], np.float32)
    nodes = [
        node("Slice", ["image", "zero", "one", "channel"], ["red"]),
        node("AveragePool", ["red"], ["small"], kernel_shape=[4, 4], strides=[4, 4]),
        node("Slice", ["small", "left", "middle", "column"], ["a"]),
        node("Slice", ["small", "middle", "right", "column"], ["b"]),
        node("Concat", ["a", "b"], ["masks"], axis=1),
        node("ReduceMax", ["masks"], ["scores"], axes=[2, 3], keepdims=0),
        node("ReduceMean", ["masks"], ["zeroish"], axes=[1, 2, 3], keepdims=1),
        node("Mul", ["zeroish", "nought"], ["nothing"]),
        node("Squeeze", ["nothing", "last"], ["nothing3"]),
        node("Add", ["nothing3", "box"], ["boxes"]),
    ]
    numbers = {
        "zero": [0], "one": [1], "channel": [1], "left": [0], "middle": [2], "right": [4],
        "column": [3], "last": [3],
    }  # fmt: skip
    constants = {n: np.array(v, np.int64) for n, v in numbers.items()}
    constants |= {"box": boxes[None], "nought": np.zeros(1, np.float32)}
    outputs = {"boxes": ["n", 2, 4], "masks": ["n", 2, 4, 2], "scores": ["n", 2]}
    write_model(folder / "m.onnx", nodes, {"image": ["n", 3, SIZE, SIZE]}, outputs, constants)
    (folder / "parser.py").write_text(PARSER)
    (folder / "labels.txt").write_text("thing\n")


def instances(folder: Path, text: str = "", **keys: object) -> Path:
    values = {
        "onnx_file": "m.onnx",
        "labelfile_path": "labels.txt",
        "network_type": 3,
        "cluster_mode": 4,
        "num_detected_classes": 1,
        "net_scale_factor": 1 / 255,
        "custom_lib_path": "parser.py",
        "parse_bbox_instance_mask_func_name": "parse",
        "segmentation_threshold": 0.5,
    }
    return write_config(folder, text, **values | keys)


SHAPE: list[Patch] = [("red", (0, 0, 16, 64)), ("red", (32, 16, 32, 16))]


def test_instances_carry_masks_of_their_boxes(tmp_path: Path) -> None:
    instance_model(tmp_path)
    config = instances(tmp_path, output_instance_mask=1)
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([image(SHAPE, size=(64, 64))])
    assert [(o.left, o.top, o.width, o.height) for o in meta.objects] == [
        (0, 0, 32, 64),
        (32, 16, 32, 32),
    ]
    first, second = (o.mask for o in meta.objects)
    assert first is not None
    assert second is not None
    grey = 60 / 255
    np.testing.assert_allclose(first, [[1, grey]] * 4, atol=1e-3)
    np.testing.assert_allclose(
        second, [[grey, grey], [1, 1], [grey, grey], [grey, grey]], atol=1e-3
    )
    assert meta.objects.mask_thresholds == {1: 0.5}
    colors = [o.style.border_color for o in meta.objects]
    assert colors[0] == pytest.approx((0.548813522, 0.592844605, 0.715189338, 1))
    assert [o.label for o in meta.objects] == ["thing", "thing"]


def test_masks_come_only_when_asked_for(tmp_path: Path) -> None:
    instance_model(tmp_path)
    with Inferencer.from_config(instances(tmp_path)) as model:
        (meta,) = model.process([image(SHAPE, size=(64, 64))])
    assert [o.mask for o in meta.objects] == [None, None]
    assert [o.style.border_color for o in meta.objects] == [(1.0, 0.0, 0.0, 1.0)] * 2


def test_thresholds_and_topk_of_instances(tmp_path: Path) -> None:
    instance_model(tmp_path)
    text = "[class-attrs-all]\npre-cluster-threshold=0.5\n"
    with Inferencer.from_config(instances(tmp_path, text, output_instance_mask=1)) as model:
        (meta,) = model.process([image(SHAPE[:1], size=(64, 64))])
    assert [o.left for o in meta.objects] == [0]
    assert meta.objects[0].mask is not None
    assert COLORS["red"] == (255, 0, 0)


def test_an_object_that_is_cut_keeps_its_whole_mask(tmp_path: Path) -> None:
    instance_model(tmp_path)
    text = "[class-attrs-all]\nroi-bottom-offset=24\n"
    config = instances(tmp_path, text, output_instance_mask=1, crop_objects_to_roi_boundary=1)
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([image(SHAPE, size=(64, 64))])
    assert [o.height for o in meta.objects] == [40, 24]
    assert [o.mask.shape for o in meta.objects if o.mask is not None] == [(4, 2), (4, 2)]
