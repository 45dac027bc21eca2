"""Clustering as a config asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.config import ClassAttrs, ClusterMode
from headrace.config.model_config import ModelConfig
from headrace.infer.cluster import Clusterer
from headrace.meta import Detections

BOXES = [(10.9 * i, 5.0, 10.0, 10.0) for i in range(30)]
MANY = Detections(np.array(BOXES), np.linspace(0.5, 0.9, 30), np.zeros(30, int))
ALL = ClassAttrs(topk=3, nms_iou_threshold=0.9, group_threshold=0)


def test_group_rectangles_becomes_nms_and_says_so() -> None:
    clusterer = Clusterer(ModelConfig(num_detected_classes=2, all_classes=ALL))
    result = clusterer(MANY)
    assert clusterer.params.mode is ClusterMode.NMS
    assert clusterer.params.counts[:, 0].tolist() == [20, 20]
    assert clusterer.params.thresholds[:, 2].tolist() == [0.5, 0.5]
    assert result.kept.tolist() == [*range(29, 9, -1)]
    (notice,) = clusterer.notices
    assert notice.level == "warning"
    assert "nms-iou-threshold=0.5" in notice.sentence
    assert "topk=20" in notice.sentence


def test_group_rectangles_on_request() -> None:
    cfg = ModelConfig(num_detected_classes=1, all_classes=ALL)
    clusterer = Clusterer(cfg, group_rectangles=True)
    result = clusterer(MANY)
    assert not clusterer.notices
    assert len(result.detections) == 30
    assert result.detections.boxes[1].tolist() == [10, 5, 10, 10]
    assert set(result.detections.scores.tolist()) == {float(np.float32(-0.1))}


@pytest.mark.parametrize("mode", [m for m in ClusterMode if m != ClusterMode.GROUP_RECTANGLES])
def test_other_modes_run_as_they_are_written(mode: ClusterMode) -> None:
    cfg = ModelConfig(num_detected_classes=1, all_classes=ALL, cluster_mode=mode)
    clusterer = Clusterer(cfg)
    assert clusterer.params.mode is mode
    assert not clusterer.notices
    assert clusterer(MANY).kept.tolist() == [29, 28, 27]


@pytest.mark.parametrize("mode", [ClusterMode.NMS, ClusterMode.NONE])
def test_keypoints_stay_with_the_box_that_is_kept(mode: ClusterMode) -> None:
    keypoints = np.arange(30 * 6).reshape(30, 2, 3)
    many = Detections(MANY.boxes, MANY.scores, MANY.class_ids, keypoints=keypoints)
    many.raw_masks = list(keypoints.reshape(30, 6).astype(np.float32))
    cfg = ModelConfig(num_detected_classes=1, all_classes=ALL, cluster_mode=mode)
    result = Clusterer(cfg)(many)
    assert len(result.kept)
    np.testing.assert_array_equal(result.detections.keypoints, keypoints[result.kept])
    raw = keypoints.reshape(30, 6)
    np.testing.assert_array_equal(result.detections.raw_masks, raw[result.kept])
    np.testing.assert_array_equal(result.detections.rows(1, 2).raw_masks, raw[result.kept[1:2]])
