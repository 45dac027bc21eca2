"""Keypoints in the mask field of a C++ parser's objects: found by evidence, or by the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.custom import open_library
from headrace.custom.mask_keypoints import MaskContent, keypoints_in
from headrace.errors import ParserError
from headrace.infer.inferencer import Inferencer
from headrace.media import Frame, PixelFormat
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo
from tests.custom.conftest import rows_layer
from tests.custom.test_cpp_parsers_instances import ROWS, with_masks
from tests.infer.models import node, write_config, write_model

NETWORK = NetworkInfo(416, 320, 3)
POSES = np.stack([np.linspace(3, 300, 51), np.linspace(5, 310, 51), np.full(51, 77)])
POSES[:, 2::3] = [[0.9], [0.4], [0.01]]


def parsed(library: Path, values: np.ndarray, guard: Any = "never") -> tuple[Detections, Any, Any]:
    opened = open_library(library, guard=guard)
    layers = {**rows_layer(ROWS), "points": Layer("points", np.ascontiguousarray(values, "f4"))}
    parser = opened.instance_parser("ParseKeypoints")
    params = DetectionParams(3, np.zeros(3, np.float32))
    return [parser(layers, NETWORK, params) for _ in range(2)][1], parser, opened


@pytest.mark.parametrize("guard", ["never", "always"])
def test_points_and_scores_arrive(items: Path, guard: str) -> None:
    found, parser, library = parsed(items, POSES, guard)
    assert found.masks is None
    assert found.keypoints is not None
    np.testing.assert_array_equal(found.keypoints, POSES.reshape(3, 17, 3).astype(np.float32))
    np.testing.assert_array_equal(found.boxes, ROWS[:, 1:5])
    np.testing.assert_array_equal(found.raw_masks, POSES.astype(np.float32))
    assert parser.notices == []
    said = [n.sentence for n in library.decisions if "17 keypoints" in n.sentence]
    assert said == [
        "its objects have 17 keypoints in the place of a mask; mask-content=mask leaves them out"
    ]


def test_pairs_have_score_1(items: Path) -> None:
    pairs = np.arange(30).reshape(3, 10) + 5.0
    found, _, _ = parsed(items, pairs)
    assert found.keypoints is not None
    np.testing.assert_array_equal(found.keypoints[..., :2], pairs.reshape(3, 5, 2))
    assert (found.keypoints[..., 2] == 1).all()
    np.testing.assert_array_equal(found.raw_masks, pairs.astype(np.float32))


def test_output_tensor_meta_keeps_the_bytes_of_objects_that_stay(
    items: Path, tmp_path: Path
) -> None:
    pairs = np.arange(30).reshape(3, 10).astype(np.float32) + 5
    nodes = [node("Identity", ["rows_"], ["rows"]), node("Identity", ["points_"], ["points"])]
    nodes.append(node("Identity", ["input"], ["unused"]))
    write_model(
        tmp_path / "pose.onnx",
        nodes,
        {"input": (1, 3, 96, 96)},
        {"rows": (1, 3, 6), "points": (1, 3, 10), "unused": (1, 3, 96, 96)},
        {"rows_": ROWS[None], "points_": pairs[None]},
    )
    keys = {
        "onnx_file": "pose.onnx",
        "network_type": 3,
        "cluster_mode": 4,
        "output_instance_mask": 1,
        "num_detected_classes": 3,
        "filter_out_class_ids": 2,
        "custom_lib_path": items,
        "parse_bbox_instance_mask_func_name": "ParseKeypoints",
    }
    frame = Frame.from_array(np.zeros((192, 192, 3), np.uint8), PixelFormat.RGB)
    found = {}
    for flag in (0, 1):
        config = write_config(tmp_path, output_tensor_meta=flag, **keys)
        with Inferencer.from_config(config) as model:
            (meta,) = model.process([frame])
        for thing in meta.objects:
            assert thing.keypoints is not None
            np.testing.assert_array_equal(  # in the frame, twice as large
                thing.keypoints[:, :2], 2 * pairs[{1: 0, 0: 2}[thing.class_id]].reshape(5, 2)
            )
        found[flag] = {thing.class_id: thing.tensors for thing in meta.objects}
    assert found[0] == {1: (), 0: ()}
    assert {k: len(outputs) for k, outputs in found[1].items()} == {1: 1, 0: 1}
    for class_id, row in ((1, 0), (0, 2)):
        (output,) = found[1][class_id]
        assert output["mask"].tobytes() == pairs[row].tobytes()
        assert (output.component_id, output.network.width, list(output.layers)) == (1, 96, ["mask"])


@pytest.mark.parametrize(
    "values",
    [
        np.full((3, 50), 0.5),  # probabilities
        np.full((3, 51), 4000.0),  # far from the image
        np.full((3, 7), 5.0),  # neither pairs nor triples
        np.full((3, 3 * 4096 + 3), 5.0),  # too many
    ],
)
def test_other_numbers_are_masks_of_a_wrong_size(items: Path, values: np.ndarray) -> None:
    found, parser, _ = parsed(items, values)
    assert found.keypoints is None
    assert found.masks is None
    (notice,) = parser.notices
    assert "mask_size" in notice.sentence


def test_points_that_are_no_numbers_go_with_their_object(items: Path) -> None:
    poses = POSES.copy()
    poses[1, 4] = np.nan
    found, parser, _ = parsed(items, poses)
    assert len(found) == 2
    assert found.keypoints is not None
    assert found.keypoints.shape == (2, 17, 3)
    assert "NaN" in parser.notices[0].sentence


def test_the_config_decides(items: Path) -> None:
    params = DetectionParams(3, np.zeros(3, np.float32))
    layers = {**rows_layer(ROWS), "points": Layer("points", POSES.astype(np.float32))}
    inner = open_library(items).instance_parser("ParseKeypoints")
    found = MaskContent(inner, "mask")(layers, NETWORK, params)
    assert found.keypoints is None
    np.testing.assert_array_equal(found.raw_masks, POSES.astype(np.float32))

    # 6 x 3 numbers with a mask's own size are a mask, unless the config knows better
    masks = np.random.default_rng(0).random((3, 6, 3)).astype(np.float32)
    inner = open_library(items).instance_parser("ParseMasks")
    assert inner(with_masks(masks=masks), NETWORK, params).masks is not None
    found = MaskContent(inner, "keypoints")(with_masks(masks=masks), NETWORK, params)
    assert found.masks is None
    np.testing.assert_array_equal(found.keypoints, masks)
    np.testing.assert_array_equal(found.raw_masks, masks.reshape(3, 18))
    with pytest.raises(ParserError, match="have 25 values"):
        MaskContent(inner, "keypoints")(
            with_masks(masks=masks[:, :5, :1].repeat(5, 2)), NETWORK, params
        )


@given(
    points=st.integers(1, 30).flatmap(
        lambda k: hnp.arrays(
            np.float32,
            st.tuples(st.integers(1, 5), st.just(k), st.just(3)),
            elements=st.floats(0, 1, width=32),
        )
    ),
    lost=st.integers(0, 4),
)
def test_what_is_written_flat_is_read(points: np.ndarray, lost: int) -> None:
    points[..., :2] = points[..., :2] * 300 + 3
    flat = [None if i == lost else row.reshape(-1) for i, row in enumerate(points)]
    found = keypoints_in(flat, NETWORK)
    if all(row is None for row in flat):
        assert found is None
        return
    assert found is not None
    for i, row in enumerate(points):
        np.testing.assert_array_equal(found[i], 0 if i == lost else row)
