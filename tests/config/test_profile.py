"""What `profile=modern` puts in place of absent keys, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.config import ClassAttrs, ModelConfig
from headrace.config.enums import ClusterMode, ScalingFilter
from headrace.config.profile import with_profile


def config(folder: Path, text: str = "", classes: str = "", profile: str = "modern") -> ModelConfig:
    path = folder / "config.txt"
    path.write_text(
        f"[property]\nonnx-file=m.onnx\nnum-detected-classes=2\nprofile={profile}\n{text}\n{classes}"
    )
    return ModelConfig.load(path)


def letterbox(cfg: ModelConfig) -> tuple[bool, bool]:
    return cfg.maintain_aspect_ratio, cfg.symmetric_padding


def test_absent_keys_are_what_trainers_do(tmp_path: Path) -> None:
    cfg = with_profile(config(tmp_path))
    assert letterbox(cfg) == (True, True)
    assert cfg.scaling_filter is ScalingFilter.BILINEAR
    assert cfg.effective_cluster.mode is cfg.cluster_mode is ClusterMode.NMS
    assert [(c.pre_cluster_threshold, c.nms_iou_threshold, c.topk) for c in cfg.per_class] == [
        (0.25, 0.45, 300)
    ] * 2
    assert cfg.net_scale_factor == 1, "the values of images are the model's own"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("maintain-aspect-ratio=0", (False, False)),
        ("maintain-aspect-ratio=1", (True, False)),
        ("symmetric-padding=0", (False, False)),
        ("process-mode=2", (False, False)),
        ("network-type=1", (False, False)),
        ("network-type=3\ncluster-mode=4", (True, True)),
    ],
)
def test_a_letterbox_is_one_setting(tmp_path: Path, text: str, expected: tuple[bool, bool]) -> None:
    assert letterbox(with_profile(config(tmp_path, text))) == expected


def test_keys_of_the_file_win(tmp_path: Path) -> None:
    written = "scaling-filter=0\ncluster-mode=4"
    groups = "[class-attrs-all]\npre-cluster-threshold=0.2\ntopk=20\n"
    groups += "[class-attrs-1]\nnms-iou-threshold=0.3\n"
    cfg = with_profile(config(tmp_path, written, groups))
    assert (cfg.scaling_filter, cfg.cluster_mode) == (ScalingFilter.NEAREST, ClusterMode.NONE)
    found = [(c.pre_cluster_threshold, c.nms_iou_threshold, c.topk) for c in cfg.per_class]
    assert found == [(0.2, 0.45, 20), (0.2, 0.3, 20)], "0.2 and 0.3 are written, though defaults"


@pytest.mark.parametrize("values", [{}, {"cluster_mode": 1}, {"maintain_aspect_ratio": False}])
def test_done_twice_it_changes_nothing(tmp_path: Path, values: dict[str, Any]) -> None:
    once = with_profile(config(tmp_path).with_overrides(**values))
    assert with_profile(once) is once
    assert once.cluster_mode == values.get("cluster_mode", ClusterMode.NMS)


def test_programs_set_values_too() -> None:
    own = ClassAttrs(pre_cluster_threshold=0.6)
    cfg = ModelConfig(
        profile="modern", num_detected_classes=1, symmetric_padding=False, all_classes=own
    )
    cfg = with_profile(cfg)
    assert letterbox(cfg) == (False, False)
    assert cfg.per_class[0].pre_cluster_threshold == 0.6
    assert cfg.per_class[0].nms_iou_threshold == 0.45


def test_where_its_values_come_from(tmp_path: Path) -> None:
    cfg = config(tmp_path, "scaling-filter=1", "[class-attrs-1]\ntopk=5\n")
    shown = {(v.group, v.key): (v.text, v.origin) for v in cfg.effective()}
    assert shown["property", "maintain-aspect-ratio"] == ("1", "profile=modern")
    assert shown["property", "scaling-filter"][1].endswith(":5")
    assert shown["class-attrs-all", "topk"] == ("300", "profile=modern")
    assert shown["class-attrs-1", "topk"][0] == "5"
    assert shown["class-attrs-1", "nms-iou-threshold"] == ("0.45", "profile=modern")
    assert shown["class-attrs-1", "eps"] == ("0.0", "default")


def test_nvinfer_changes_nothing(tmp_path: Path) -> None:
    cfg = config(tmp_path, profile="nvinfer")
    assert with_profile(cfg) is cfg
