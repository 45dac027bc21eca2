"""Models of LibreYOLO: family and task of the metadata decide, where shapes look like others'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config.enums import ClusterMode, ColorFormat, NetworkType
from headrace.infer.recognise.recognise import Recognition, recognise
from tests.infer.recognise.models import rows_of

NAMES = '{"0": "a", "1": "b", "2": "c"}'


def known(
    tmp_path: Path, tables: Any, family: str, task: str = "detect", **more: str
) -> Recognition:
    outputs = tables if isinstance(tables, list) else [tables]
    names = [f"output{i}" for i in range(len(outputs))]
    metadata = {"libreyolo_version": "1.6.0", "model_family": family, "task": task}
    metadata |= {"names": NAMES, **more}
    spread = 2.0 if family == "yolox" else 500.0  # it was trained on bytes
    path = rows_of(tmp_path / "m.onnx", outputs, names=names, metadata=metadata, spread=spread)
    return recognise(path)


def table(*shape: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.uniform(0, 1, (1, *shape)).astype("f4")


@pytest.mark.parametrize(
    ("family", "tables", "parser", "mode", "order", "fit"),
    [
        ("yolo9", table(7, 84), "HeadraceParseYoloCorners", ClusterMode.NMS, "RGB", "corner"),
        ("yolo9_e2e", table(7, 84), "HeadraceParseYoloCorners", ClusterMode.NONE, "RGB", "corner"),
        ("yolo7", table(7, 84), "HeadraceParseYoloCorners", ClusterMode.NMS, "RGB", "corner"),
        ("rtmdet", table(84, 7), "HeadraceParseYoloCorners", ClusterMode.NMS, "BGR", "corner"),
        ("fcos", table(84, 8), "HeadraceParseFcos", ClusterMode.NMS, "RGB", "corner"),
        ("yolox", table(84, 8), "HeadraceParseYoloV5", ClusterMode.NMS, "BGR", "corner"),
        ("efficientdet", table(84, 6), "NvDsInferParseYolo", ClusterMode.NMS, "RGB", "corner"),
        ("centernet", table(30, 6), "NvDsInferParseYolo", ClusterMode.NONE, "BGR", "centre"),
        ("dfine", table(300, 6), "NvDsInferParseYolo", ClusterMode.NONE, "RGB", "stretch"),
        ("yolo9", table(84, 6), "NvDsInferParseYolo", ClusterMode.NMS, "RGB", "corner"),
        (
            "yolonas",
            [table(84, 4), table(84, 3)],
            "HeadraceParseBoxesScores",
            ClusterMode.NMS,
            "RGB",
            "centre",
        ),
    ],
)
def test_detectors(
    tmp_path: Path, family: str, tables: Any, parser: str, mode: ClusterMode, order: str, fit: str
) -> None:
    found = known(tmp_path, tables, family)
    cfg = found.config
    assert (cfg.parse_bbox_func_name, cfg.cluster_mode) == (parser, mode)
    assert cfg.num_detected_classes == 3
    assert cfg.model_color_format is ColorFormat[order]
    assert found.images.fit == fit


def test_a_selection_beside_the_raw_table_is_final(tmp_path: Path) -> None:
    cfg = known(tmp_path, [table(300, 6), table(7, 84)], "yolo9").config
    assert (cfg.parse_bbox_func_name, cfg.cluster_mode) == ("NvDsInferParseYolo", ClusterMode.NONE)


def test_padding_is_where_the_metadata_say(tmp_path: Path) -> None:
    assert known(tmp_path, table(7, 84), "yolo9", letterbox_pad="center").images.fit == "centre"
    assert known(tmp_path, table(7, 84), "yolo9", letterbox_pad="topleft").images.fit == "corner"


def test_a_classifier_takes_its_own_normalisation(tmp_path: Path) -> None:
    more = {"norm_mean": "[0.5, 0.5, 0.5]", "norm_std": "[0.25, 0.25, 0.25]"}
    cfg = known(tmp_path, table(3), "vit", "classify", **more).config
    assert cfg.offsets == (127.5, 127.5, 127.5)
    assert cfg.net_scale_factor == pytest.approx(1 / (255 * 0.25))


@pytest.mark.parametrize(
    ("more", "cut"),
    [({"crop_pct": "0.9"}, 0.9), ({"crop_pct": "2"}, 0), ({"crop_pct": "x"}, 0),
     ({"resize_mode": "stretch"}, 0), ({}, 0)],
)  # fmt: skip
def test_a_classifier_cuts_its_own_share_out(
    tmp_path: Path, more: dict[str, str], cut: float
) -> None:
    known_as = known(tmp_path, table(3), "vit", "classify", **more)
    assert known_as.config.centre_crop == cut
    assert known_as.images.fit == "stretch"
    unknown = cut == 0 and "resize_mode" not in more
    assert ("its share is not known" in known_as.images.reasons["fit"]) == unknown


@pytest.mark.parametrize(
    ("family", "task", "more", "order", "fit", "means"),
    [
        ("yolonas", "obb", {}, "BGR", "corner", False),
        ("rtdetrv2", "obb", {}, "RGB", "corner", False),
        ("deimv2", "detect", {"model_size": "pico"}, "RGB", "stretch", False),
        ("deimv2", "detect", {"model_size": "m"}, "RGB", "stretch", True),
        ("rfdetr", "detect", {}, "RGB", "stretch", True),
        ("pidnet", "semantic", {}, "RGB", "corner", False),
        ("deeplabv3", "semantic", {}, "RGB", "stretch", True),
        ("fcn", "semantic", {}, "RGB", "stretch", False),
        ("midas", "depth", {}, "RGB", "stretch", False),
    ],
)
def test_images_follow_the_family_and_the_task(
    tmp_path: Path, family: str, task: str, more: dict[str, str], order: str, fit: str, means: bool
) -> None:
    tables = [table(84, 5 if task == "obb" else 4), table(84, 3)]
    if task not in ("obb", "detect"):
        tables = [table(3, 8, 8)]
    images = known(tmp_path, tables, family, task, **more).images
    assert (images.order, images.fit) == (order, fit)
    assert bool(images.scaling and images.scaling.offsets) == means


@pytest.mark.parametrize("text", ["", "[0.5]", "oops", "[0, 0, 0]"])
def test_a_normalisation_that_is_none_is_left(tmp_path: Path, text: str) -> None:
    more = {"norm_mean": "[0.5, 0.5, 0.5]", "norm_std": text}
    cfg = known(tmp_path, table(3), "resnet", "classify", **more).config
    assert cfg.offsets == (123.675, 116.28, 103.53)


@pytest.mark.parametrize(
    ("task", "kind"), [("semantic", NetworkType.SEGMENTATION), ("depth", NetworkType.OTHER)]
)
def test_maps(tmp_path: Path, task: str, kind: NetworkType) -> None:
    shape = (3, 8, 8) if task == "semantic" else (1, 64, 64)
    assert known(tmp_path, table(*shape), "pidnet", task).config.network_type is kind


def test_queries_with_angles_and_with_points(tmp_path: Path) -> None:
    def read(task: str, tables: Any, names: list[str], labels: str = NAMES) -> Recognition:
        metadata = {"libreyolo_version": "1.6.0", "model_family": "ec", "task": task}
        path = rows_of(tmp_path / f"{task}.onnx", tables, names=names,
                       metadata=metadata | {"names": labels}, spread=500.0)  # fmt: skip
        return recognise(path)

    tables = [table(20, 3), table(20, 5)]
    turned = read("obb", tables, ["pred_logits", "pred_boxes"])
    assert turned.config.parse_bbox_func_name == "HeadraceParseDetrObb"
    assert turned.config.cluster_mode is ClusterMode.NONE
    tables = [table(20, 2), table(20, 34)]
    names = ["pred_logits", "pred_keypoints"]
    posed = read("pose", tables, names, '{"0": "person"}')
    assert posed.config.parse_bbox_func_name == "HeadraceParseDetrPoints"
    assert posed.config.num_detected_classes == 1
