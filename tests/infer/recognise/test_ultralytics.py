"""Models of Ultralytics: one metadata text, several forms of the outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config.enums import ClusterMode, NetworkType
from headrace.errors import ModelError
from headrace.infer.recognise.recognise import Recognition, recognise
from tests.infer.recognise.models import rows_of

NAMES = {1: "{0: 'person'}", 2: "{0: 'a', 1: 'b'}", 3: "{0: 'a', 1: 'b', 2: 'c'}"}


def known(tmp_path: Path, tables: Any, task: str, names: int, **more: str) -> Recognition:
    metadata = {"author": "Ultralytics", "task": task, "names": NAMES[names], **more}
    outputs = [f"output{i}" for i in range(len(tables) if isinstance(tables, list) else 1)]
    return recognise(rows_of(tmp_path / "m.onnx", tables, names=outputs, metadata=metadata))


def final(width: int, reach: float = 60, rows: int = 30) -> Any:
    """Rows with corners (or centres) up to `reach`, a score, a class and more values."""
    rng = np.random.default_rng(0)
    table = rng.uniform(0, 1, (1, rows, width)).astype("f4")
    table[..., :2] *= reach / 2
    table[..., 2:4] = table[..., :2] + table[..., 2:4] * reach / 2
    table[..., 5] = rng.integers(0, 2, (1, rows))
    return table


@pytest.mark.parametrize(
    ("task", "tables", "names", "parser", "more"),
    [
        ("detect", final(6), 3, "NvDsInferParseYolo", {}),
        ("detect", final(6), 2, "NvDsInferParseYolo", {"end2end": "True"}),
        ("detect", final(6), 2, "NvDsInferParseYolo", {"args": "{'nms': True}"}),
        ("detect", final(6, reach=0.9), 3, "HeadraceParseRTDETREnd", {"end2end": "True"}),
        ("pose", final(57), 1, "HeadraceParseYoloEndPose", {"kpt_shape": "[17, 3]"}),
        ("pose", final(16), 2, "HeadraceParseYoloEndPose", {"kpt_shape": "[5, 2]"}),
        ("obb", final(7), 2, "HeadraceParseYoloEndObb", {}),
    ],
)
def test_rows_are_final_boxes(
    tmp_path: Path, task: str, tables: Any, names: int, parser: str, more: dict[str, str]
) -> None:
    cfg = known(tmp_path, tables, task, names, **more).config
    assert cfg.parse_bbox_func_name == parser
    assert cfg.num_detected_classes == names
    assert cfg.cluster_mode is ClusterMode.NONE
    assert cfg.rotated_boxes is (task == "obb")


def test_rows_with_coefficients_are_masks(tmp_path: Path) -> None:
    prototypes = np.random.default_rng(1).normal(size=(1, 32, 16, 16)).astype("f4")
    cfg = known(tmp_path, [final(38), prototypes], "segment", 3).config
    assert cfg.parse_bbox_instance_mask_func_name == "HeadraceParseYoloEndSeg"
    assert cfg.network_type is NetworkType.INSTANCE_SEGMENTATION
    assert cfg.num_detected_classes == 3


def test_columns_are_raw(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = rng.uniform(0, 1, (1, 4 + 1 + 51, 84)).astype("f4")
    table[:, :4] *= 60
    cfg = known(tmp_path, table, "pose", 1, kpt_shape="[17, 3]").config
    assert cfg.parse_bbox_func_name == "HeadraceParseYoloV8Pose"
    assert cfg.cluster_mode is ClusterMode.NMS


def test_queries_are_told_from_rows_in_pixels_by_their_values(tmp_path: Path) -> None:
    table = np.random.default_rng(3).uniform(0, 1, (1, 300, 7)).astype("f4")
    cfg = known(tmp_path, table, "detect", 3).config
    assert cfg.parse_bbox_func_name == "HeadraceParseRTDETR"


def test_a_map_of_class_numbers_counts_no_classes(tmp_path: Path) -> None:
    table = np.random.default_rng(4).integers(0, 3, (1, 64, 64))
    path = rows_of(tmp_path / "m.onnx", table, doc="RGB / 255", metadata={"classes": "a,b,c"})
    cfg = recognise(path).config
    assert cfg.parse_segmentation_func_name == "HeadraceParseClassMap"
    assert (cfg.network_type, cfg.num_detected_classes) == (NetworkType.SEGMENTATION, 3)


def test_points_that_the_rows_have_no_room_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no built-in parser"):
        known(tmp_path, final(9), "pose", 1, kpt_shape="[17, 3]")


def test_a_map_of_one_class_has_a_background(tmp_path: Path) -> None:
    metadata = {"author": "Ultralytics", "task": "semantic", "names": "{0: 'road'}"}
    path = rows_of(tmp_path / "m.onnx", np.ones((1, 64, 64), np.int64), metadata=metadata)
    known = recognise(path)
    assert known.config.num_detected_classes == 2
    assert known.names == ("background", "road")
    assert not [n for n in known.notices if n.code == "labels-count"]
