"""Models of LibreYOLO: the metadata name family and task; images and outputs follow the family."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.config.enums import NetworkType
from headrace.infer.recognise.exporters import (
    BYTES,
    IMAGENET,
    UNIT,
    Exporter,
    Fit,
    Order,
    Scaling,
)
from headrace.infer.recognise.heads import (
    DETECTOR,
    HeadReading,
    View,
    class_reading,
    headed,
    lists,
)
from headrace.infer.recognise.maps import depth_map, image_output, maps

if TYPE_CHECKING:
    from headrace.infer.recognise.evidence import FileEvidence

NAME = "LibreYOLO"
_ROWS = "NvDsInferParseYolo"  # x1, y1, x2, y2, score, class
_CORNERS, _DETR = "HeadraceParseYoloCorners", "HeadraceParseDetr"
_RTMDET = Scaling(1 / 57.375, (103.53, 116.28, 123.675), "RTMDet's means, one deviation 57.375")
_SSD = Scaling(1.0, (123.0, 117.0, 104.0), "SSD's means")
_CENTERNET = Scaling(1 / (255 * 0.28), (104.04, 113.985, 119.85), "CenterNet's means")


@dataclass(frozen=True)
class _Family:
    """How a family takes images, and the parser of its outputs.

    Attributes:
        final: its boxes need no suppression.
    """

    parser: str
    order: Order = "RGB"
    scaling: Scaling = UNIT
    fit: Fit = "stretch"
    final: bool = False


_QUERIES = _Family(_DETR, final=True)
_FAMILIES = {
    "yolox": _Family("HeadraceParseYoloV5", "BGR", BYTES, "corner"),
    "yolo1": _Family(_CORNERS),
    **dict.fromkeys(
        ("yolo2", "yolo3", "yolo4", "yolo7", "yolo9", "yolo9_p2"), _Family(_CORNERS, fit="corner")
    ),
    "yolo9_e2e": _Family(_CORNERS, fit="corner", final=True),
    "yolonas": _Family("HeadraceParseBoxesScores", fit="centre"),
    "rtmdet": _Family(_CORNERS, "BGR", _RTMDET, "corner"),
    "picodet": _Family(_CORNERS, scaling=IMAGENET),
    "ppyoloe": _Family("HeadraceParseBoxesScores", scaling=IMAGENET),
    "efficientdet": _Family(_ROWS, scaling=IMAGENET, fit="corner"),
    "retinanet": _Family(_CORNERS, scaling=IMAGENET, fit="corner"),
    "fcos": _Family("HeadraceParseFcos", scaling=IMAGENET, fit="corner"),
    "ssd": _Family(_CORNERS, scaling=_SSD),
    "centernet": _Family(_ROWS, "BGR", _CENTERNET, "centre", final=True),
    **dict.fromkeys(("dfine", "deim", "deimv2", "rtdetr", "rtdetrv2", "rtdetrv4"), _QUERIES),
    **dict.fromkeys(
        ("ec", "lwdetr", "dinodetr", "deformable_detr", "tinyformer", "gtr", "rfdetr"),
        replace(_QUERIES, scaling=IMAGENET),
    ),
    "detr": _Family("HeadraceParseDetrSoftmax", scaling=IMAGENET, final=True),
}
_LARGE = ("s", "m", "l", "x")
"""Sizes of `deimv2` that subtract ImageNet's means; smaller ones subtract none."""
_OF_TASKS: dict[tuple[str, str], tuple[Order, Scaling, Fit]] = {
    ("yolonas", "pose"): ("BGR", UNIT, "corner"),
    ("yolonas", "obb"): ("BGR", UNIT, "corner"),
    ("rtdetrv2", "obb"): ("RGB", UNIT, "corner"),
    ("gtr", "obb"): ("RGB", IMAGENET, "corner"),
    ("gtr", "semantic"): ("RGB", UNIT, "corner"),
    ("dekr", "pose"): ("RGB", IMAGENET, "corner"),
    ("pidnet", "semantic"): ("RGB", UNIT, "corner"),
    ("segformer", "semantic"): ("RGB", UNIT, "corner"),
    ("deeplabv3", "semantic"): ("RGB", IMAGENET, "stretch"),
}
"""Images of families that take them in another way for a task."""
_TWO_STAGE = ("faster_rcnn", "mask_rcnn")
"""Families that resize and scale images inside, and give lists of final boxes in pixels."""
_IMAGES = ("depth", "edge", "restore", "normal", "matte")
"""Tasks whose output is an image of values."""
_NUMBERS = ("gaze", "point")
"""Tasks that give plain numbers: no parser, the application reads the tensors."""


def exporter_of_libreyolo(evidence: FileEvidence) -> tuple[Exporter, str]:
    """How the family takes images, and the metadata that name it."""
    texts = evidence.metadata
    name, task = texts.get("model_family", ""), texts.get("task", "detect")
    told = f"metadata of LibreYOLO {texts['libreyolo_version']}: {name}, {task}"
    if task == "classify":
        crops = texts.get("resize_mode") != "stretch"
        return Exporter(NAME, "RGB", IMAGENET, "stretch", crops=crops), told
    family = _FAMILIES.get(name)
    if name in _TWO_STAGE:
        return Exporter(NAME, "RGB", UNIT, "stretch"), told
    if family is None:
        normalised = task in ("pose", "matte")
        family = _Family("", scaling=IMAGENET if normalised else UNIT)
    if (name, task) in _OF_TASKS:
        order, scaling, fit = _OF_TASKS[name, task]
        family = replace(family, order=order, scaling=scaling, fit=fit)
    if name == "deimv2" and texts.get("model_size") in _LARGE:
        family = replace(family, scaling=IMAGENET)
    if texts.get("letterbox_pad", "").startswith("cent"):
        family = replace(family, fit="centre")
    scaling = BYTES if evidence.stem.normalises else family.scaling
    return Exporter(NAME, family.order, scaling, family.fit), told


def by_family(view: View) -> list[HeadReading]:
    """Readings of the family and task that the metadata name."""
    texts = view.evidence.metadata
    name, task = texts.get("model_family", ""), texts.get("task", "detect")
    why = f"metadata of LibreYOLO: {name}, {task}"
    if task == "classify":
        return [class_reading(view, why)] if len(view.items) == 1 else []
    if task == "semantic":
        return maps(view, anywhere=True) or []
    if task in _IMAGES:
        return [depth_map(why)] if task == "depth" else [image_output(why, f"{task} map")]
    if task in _NUMBERS:
        return [HeadReading(NetworkType.OTHER, None, None, f"{task} model", why)]
    family = _FAMILIES.get(name)
    if task == "pose":
        if name == "yolonas":
            return headed(view, "HeadraceParseYoloNasPose", f"{NAME} {name} pose", why)
        parser = "HeadraceParseHeatmapPose"  # of one person
        if "pred_keypoints" in {item.name for item in view.items}:
            parser = "HeadraceParseDetrPoints"
        found = headed(view, parser, f"{NAME} {name} pose", why, suppressed=True)
        return [replace(reading, classes=view.names or 1, counted="") for reading in found]
    if task == "obb":
        queries = "pred_logits" in {item.name for item in view.items}
        parser = "HeadraceParseDetrObb" if queries else "HeadraceParseBoxesScoresObb"
        return headed(view, parser, f"{NAME} {name}", why, rotated=True, suppressed=queries)
    if name in _TWO_STAGE:
        return lists(view, f"{NAME} {name}", why)
    if task == "segment":
        return headed(view, "HeadraceParseDetrSeg", f"{NAME} {name} with masks", why)
    if family is None or task != "detect":
        return []
    words = f"{NAME} {name}"
    shape = view.items[0].shape
    if len(shape) == 2 and shape[1] == 6 and view.names != 2:  # with its own selection, or none
        final = family.final or len(view.items) > 1
        reading = HeadReading(DETECTOR, _ROWS, view.names or None, words, why, suppressed=final)
        return [reading]
    found = headed(view, family.parser, words, why)
    return [replace(reading, suppressed=family.final) for reading in found]
