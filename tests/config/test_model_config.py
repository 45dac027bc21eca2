"""ModelConfig made by a program: defaults, per-class settings, effective clustering."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.config import (
    ClassAttrs,
    ClusterMode,
    ModelConfig,
    NetworkMode,
    NetworkType,
    ScalingFilter,
)
from headrace.config.origin import DEFAULT


def test_defaults_are_those_of_the_original() -> None:
    cfg = ModelConfig()
    assert cfg.gie_unique_id is None
    assert cfg.component_id == 1
    assert cfg.scaling_filter is ScalingFilter.DEFAULT
    assert cfg.cluster_mode is ClusterMode.GROUP_RECTANGLES
    assert cfg.secondary_reinfer_interval == 2**31 - 1
    assert cfg.all_classes.pre_cluster_threshold == 0.2
    assert cfg.all_classes.topk == -1


def test_per_class_settings_fall_back_to_the_common_ones() -> None:
    common, own = ClassAttrs(topk=5), ClassAttrs(topk=7)
    cfg = ModelConfig(num_detected_classes=3, all_classes=common, classes={1: own})
    assert cfg.per_class == (common, own, common)
    assert cfg.class_attrs(1) is own


def test_numbers_become_named_values() -> None:
    cfg = ModelConfig(network_type=100, cluster_mode=3)
    assert cfg.network_type is NetworkType.OTHER
    assert str(cfg.cluster_mode) == "3 (DBSCAN + NMS)"


@pytest.mark.parametrize(
    ("network_type", "mode", "effective", "overrides"),
    [
        (0, 0, ClusterMode.NMS, {"nms_iou_threshold": 0.5, "topk": 20}),
        (0, 1, ClusterMode.DBSCAN, {}),
        (0, 4, ClusterMode.NONE, {}),
        (3, 0, ClusterMode.GROUP_RECTANGLES, {}),
    ],
)
def test_mode_0_of_a_detector_runs_as_nms(
    network_type: int, mode: int, effective: ClusterMode, overrides: dict[str, float]
) -> None:
    cfg = ModelConfig(network_type=network_type, cluster_mode=mode)
    assert cfg.effective_cluster == (effective, overrides)
    assert cfg.cluster_mode == mode


def test_origin_of_an_untouched_value_is_default() -> None:
    cfg = ModelConfig()
    assert cfg.origin("cluster_mode") is DEFAULT
    assert cfg.origin("cluster-mode") is DEFAULT
    assert cfg.origin("minBoxes", class_id=0) is DEFAULT
    with pytest.raises(KeyError):
        cfg.origin("no_such_key")


def test_repr_is_short() -> None:
    text = repr(ModelConfig(num_detected_classes=80))
    assert text == "ModelConfig('<no file>', detector, 80 classes, model None)"


def test_enums_and_class_settings_cost_no_msgspec() -> None:
    code = (
        "import sys, headrace.config; headrace.config.ClassAttrs(); print('msgspec' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_config_cannot_be_changed() -> None:
    cfg = ModelConfig()
    with pytest.raises(ValueError, match="frozen"):
        cfg.batch_size = 3


def test_values_of_programs_are_taken_in_any_plain_form() -> None:
    cfg = ModelConfig(
        batch_size=np.int64(2),
        net_scale_factor=1,
        offsets=list(np.float32([1, 2, 3])),
        maintain_aspect_ratio=1,
        network_mode=2,
        onnx_file="a.onnx",
        num_detected_classes="3",
    )
    assert (cfg.batch_size, cfg.net_scale_factor, cfg.offsets) == (2, 1.0, (1.0, 2.0, 3.0))
    assert cfg.maintain_aspect_ratio is True
    assert cfg.network_mode is NetworkMode.FP16
    assert cfg.onnx_file == Path("a.onnx").absolute()
    assert cfg.num_detected_classes == 3


@pytest.mark.parametrize("cfg", [ModelConfig(), ModelConfig(classes={}, interval=1)])
def test_a_config_can_be_pickled_and_copied(cfg: ModelConfig) -> None:
    assert pickle.loads(pickle.dumps(cfg)) == cfg == copy.deepcopy(cfg)
    assert cfg != cfg.with_overrides(interval=2)
