"""Files that exporters put beside a model, as texts like those in the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.infer.recognise.deployments import (
    CROP,
    FIT,
    ORDER,
    SOURCE,
    json_object,
    luxonis_texts,
    mmdeploy_texts,
    modelinfo_texts,
    numbers,
    tao_texts,
)
from headrace.infer.recognise.exporters import MODEL_TYPE, TIMM_TYPE

_BESIDE = ("config.json", "preprocessor_config.json", "deploy.json", "pipeline.json",
           "detail.json", "nvinfer_config.txt", "labels.txt")  # fmt: skip


def files_beside(path: Path) -> list[Path]:
    """List the files, there or not, that tell something of a model beside it."""
    above = path.parent.parent
    names = [path.with_name(name) for name in _BESIDE]
    names += [above / name for name in _BESIDE[:2]] if path.parent.name == "onnx" else []
    infos = [path.with_name(f"{path.name}.modelinfo"), path.with_suffix(".modelinfo")]
    return [*names, *infos, *([path.with_suffix(".bin")] if path.suffix == ".xml" else [])]


def texts_beside(path: Path) -> dict[str, str]:
    """Read names of classes, sizes and preparation of images from files beside a model.

    Optimum writes `config.json` into the model's folder, repositories of ONNX files have it one
    folder above `onnx`.

    Returns:
        Keys as a model's own metadata have them (`id2label`, `names`, `mean`, `std`,
        `image_size`), `MODEL_TYPE` or `TIMM_TYPE`, and the keys of `deployments`; empty where there
        are no such files, or they are of another program.
    """
    folder = path.parent.parent if path.parent.name == "onnx" else path.parent
    for texts in (_hugging_face(folder), luxonis_texts(path), mmdeploy_texts(path),
                  modelinfo_texts(path), tao_texts(path.parent)):  # fmt: skip
        if texts:
            return texts
    return {}


def _hugging_face(folder: Path) -> dict[str, str]:
    config = json_object(folder / "config.json")
    if isinstance(config.get("pretrained_cfg"), dict):
        return _timm(config, config["pretrained_cfg"])
    if not isinstance(config.get("model_type"), str):
        return {}
    texts = {MODEL_TYPE: str(config["model_type"])}
    if isinstance(config.get("id2label"), dict) and not _of_points(config):
        texts["id2label"] = json.dumps(config["id2label"])
    return texts | _images(json_object(folder / "preprocessor_config.json"))


def _of_points(config: Mapping[str, Any]) -> bool:
    """Whether the labels are those of a person's points, not of classes."""
    kinds = config.get("architectures")
    return isinstance(kinds, list) and any(str(kind).endswith(_POINT_KINDS) for kind in kinds)


_POINT_KINDS = ("ForPoseEstimation", "ForKeypointDetection")


def _timm(config: Mapping[str, Any], images: Mapping[str, Any]) -> dict[str, str]:
    """`config.json` of timm's models on Hugging Face."""
    texts = {TIMM_TYPE: str(config.get("architecture", "")), SOURCE: "config.json of timm"}
    texts[ORDER] = "RGB"
    names = config.get("label_names", images.get("label_names"))
    if isinstance(names, list) and names:
        texts["names"] = json.dumps([str(name) for name in names])
    share = images.get("crop_pct")
    if images.get("crop_mode") == "squash":
        texts[FIT] = "stretch"
    elif numbers([share]):
        texts[CROP] = json.dumps(share)
    mean, std, size = images.get("mean"), images.get("std"), images.get("input_size")
    if numbers(mean) and numbers(std):
        texts |= {"mean": json.dumps(mean), "std": json.dumps(std)}
    if numbers(size) and isinstance(size, list) and len(size) == 3:
        texts["image_size"] = f"{int(size[1])} {int(size[2])}"
    return texts


def _images(processor: Mapping[str, Any]) -> dict[str, str]:
    """How images are prepared: mean and deviation in 0..1, and the size."""
    if not processor:
        return {}
    texts: dict[str, str] = {}
    if processor.get("do_rescale", True):
        normal = processor.get("do_normalize", True)
        mean, std = processor.get("image_mean"), processor.get("image_std")
        if not normal:
            mean, std = [0.0] * 3, [1.0] * 3
        if numbers(mean) and numbers(std):
            texts |= {"mean": json.dumps(mean), "std": json.dumps(std)}
    if processor.get("do_flip_channel_order") is True:  # MobileViT
        texts[ORDER] = "BGR"
    size = processor.get("size")
    if isinstance(size, dict) and numbers([size.get("height"), size.get("width")]):
        texts["image_size"] = f"{int(size['height'])} {int(size['width'])}"
    return texts | _centre(processor, size)


def _centre(processor: Mapping[str, Any], size: object) -> dict[str, str]:
    """The part of an image that is cut out of its centre, after its shorter side is scaled."""
    edge = size.get("shortest_edge") if isinstance(size, dict) else size
    if not isinstance(edge, int | float) or edge <= 0:
        return {}
    if numbers([processor.get("crop_pct")]):  # from 384 pixels on such models stretch the image
        return {FIT: "stretch"} if edge >= 384 else {CROP: json.dumps(processor["crop_pct"])}
    crop = processor.get("crop_size")
    side = crop.get("height") if isinstance(crop, dict) else crop
    if not processor.get("do_center_crop") or not isinstance(side, int | float):
        return {}
    return {CROP: str(side / edge)}
