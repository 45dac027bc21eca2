"""The ways in which outputs may be read: by metadata, exporter, shapes and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.config.enums import NetworkType
from headrace.infer.parsers.catalogue import suggest
from headrace.infer.parsers.head import CTC, Head, InstanceHead
from headrace.infer.recognise import exporters, libreyolo
from headrace.infer.recognise.heads import (
    DETECTOR,
    ROWS,
    YOLOV5,
    YOLOV8,
    YOLOX,
    HeadReading,
    View,
    class_reading,
    headed,
    judged,
    lists,
)
from headrace.infer.recognise.look_alikes import TWINS, told_apart
from headrace.infer.recognise.maps import anomalies, maps, vectors
from headrace.infer.recognise.ultralytics import by_task
from headrace.infer.recognise.values import FCOS, YOLOV8_UNIT, in_pixels
from headrace.network.tensor_spec import TensorSpec


def readings(view: View) -> list[HeadReading]:
    """The ways in which these outputs may be read; one if it is decided, none if no parser fits."""
    if (of_one := _of_one_image(view)) is not None:
        return of_one
    if any(0 in output.shape for output in view.outputs):
        return []
    for look in _BY_OTHERS:
        candidates = look(view)
        if candidates is not None:
            return candidates
    return _by_shape(view)


def by_shape_alone(view: View) -> list[HeadReading]:
    """Find the detectors of rows that fit shapes and places, if not the scores: guesses."""
    if any(0 in output.shape for output in view.outputs):
        return []
    if any(look(view) is not None for look in _BY_OTHERS):
        return []
    names = [name for name in _suggested(view) if name in ROWS]
    rest = [name for name in names if TWINS.get(name) not in names]
    found = [judged(view, name, scores=False) for name in rest]
    return [reading for reading in found if reading is not None]


_TORCHVISION = {"boxes", "labels", "scores"}


def _of_one_image(view: View) -> list[HeadReading] | None:
    """Read lists without a batch as torchvision's, with ids from 1; None: they are no lists."""
    outputs = {item.name for item in view.items}
    if outputs != {*view.evidence.network.of_one_image}:
        return None
    if view.exporter is not None and view.exporter.name == libreyolo.NAME:
        return libreyolo.by_family(view)
    if not (view.evidence.takes_one_image or outputs >= _TORCHVISION):
        return None
    found = lists(
        view,
        "torchvision's detector",
        "lists of one image, without a batch, as torchvision's detectors write them",
        from_one=True,
    )
    return found if found and in_pixels(view) else None


def _by_task(view: View) -> list[HeadReading] | None:
    """Readings of metadata that name the task."""
    if view.exporter is not None and view.exporter.name == libreyolo.NAME:
        return libreyolo.by_family(view)
    return by_task(view) if view.exporter in exporters.OF_ULTRALYTICS else None


def _by_exporter(view: View) -> list[HeadReading] | None:
    exporter = view.exporter
    if exporter in (exporters.YOLOX, exporters.YOLOX_LEGACY):
        return _yolox(view)
    if exporter is exporters.YOLOV5 and len(view.items) == 2:
        if view.items[0].shape == view.items[1].shape:
            return headed(view, YOLOV8, "YOLOv9 detector", "two tables, of which the second counts")
        return headed(view, "HeadraceParseYoloV5Seg", "YOLOv5 segmentation", "rows and prototypes")
    if exporter is exporters.CENTERFACE:
        return [HeadReading(DETECTOR, "HeadraceParseCenterFace", 1, "CenterFace", "four maps",
                        own_names=("face",))]  # fmt: skip
    if exporter is exporters.ULTRAFACE:
        heads = ("HeadraceParseSSDCorners", "HeadraceParseUltraFacePriors")
        found = [reading for name in heads if (reading := judged(view, name))]
        return [replace(r, words=exporter.name, own_names=("face",)) for r in found[:1]]
    if exporter is exporters.PADDLE_DET:
        return [HeadReading(DETECTOR, "HeadraceParseTextRegions", 1,
                        "PaddleOCR text detector (DB)",
                        "one map of probabilities", suppressed=True,
                        own_names=("text",))]  # fmt: skip
    if exporter is exporters.PADDLE and len(view.items[0].shape) == 2:
        return [HeadReading(NetworkType.CLASSIFIER, CTC, None, "PaddleOCR reader of text",
                        f"soft-max over {view.items[0].shape[1]} characters")]  # fmt: skip
    if exporter is exporters.PADDLE and view.items[0].shape == (2,):
        reading = class_reading(view, "two turns of a line of text")
        return [replace(reading, words="PaddleOCR's classifier of turned lines",
                        own_names=("0", "180"))]  # fmt: skip
    if exporter is exporters.TF_DETECTION:
        return [HeadReading(DETECTOR, "NvDsInferParseCustomTfSSD", view.names or None,
                            "detector of TensorFlow's API", "names of the outputs",
                            suppressed=True, from_one=True)]  # fmt: skip
    if exporter is exporters.TAO_EFFICIENTDET:
        return [HeadReading(DETECTOR, "NvDsInferParseCustomEfficientDetTAO", view.names or None,
                            "TAO EfficientDet", "names of the outputs, classes as integers",
                            suppressed=True)]  # fmt: skip
    if exporter is exporters.RFDETR:
        third = view.items[2].shape if len(view.items) > 2 else ()
        parser = "HeadraceParseDetrSeg" if third else "HeadraceParseDetr"
        if third[-1:] == (8,):
            parser = "HeadraceParseDetrPose"
        found = headed(view, parser, "RF-DETR", "dets of four columns beside logits")
        return [replace(reading, suppressed=True) for reading in found]
    if exporter is exporters.MMDET and len(view.items) == 2:
        count = view.names or None
        return [HeadReading(DETECTOR, "HeadraceParseDetsLabels", count, "mmdetection detector",
                        "outputs dets and labels", suppressed=True)]  # fmt: skip
    return None


def _yolox(view: View) -> list[HeadReading]:
    rows = np.asarray(view.probe()[view.items[0].name])
    if rows.shape[-1] == 6 and (np.rint(rows[..., 5]) == rows[..., 5]).all():
        words = "YOLOX detector with arg-max inside"
        why = "the last column holds class numbers"
        return [HeadReading(DETECTOR, "NvDsInferParseYolo", view.names or None, words, why)]
    reach = float(np.percentile(np.abs(rows.reshape(-1, rows.shape[-1])[:, :2]), 90))
    if reach > view.network.width / 8:
        return headed(view, YOLOV5, "YOLOX detector, decoded",
                       f"centres reach {reach:.0f} pixels")  # fmt: skip
    return headed(view, YOLOX, "YOLOX detector", f"centres stay below {reach:.1f}: not decoded")


_UNSUGGESTED = ("HeadraceParseYoloV2Raw", FCOS, YOLOV8_UNIT)
"""Heads that fit too many outputs to be suggested, but that values tell."""


_BY_OTHERS = (_by_task, _by_exporter, anomalies, vectors, maps)
"""Ways to read outputs that need no choice among all heads; each gives None where it has none."""


def _suggested(view: View, key: str = Head.key) -> list[str]:
    specs = [TensorSpec(o.name, o.dtype, o.shape) for o in view.outputs]
    return suggest(specs, view.network, view.names or None, key=key)


def _by_shape(view: View) -> list[HeadReading]:
    """Readings that the shapes, names and values of the outputs allow."""
    names = _suggested(view)
    if not names and len(view.items) > 1:  # masks, known by the names of their outputs
        names = _suggested(view, InstanceHead.key)
        return [r for name in names[:1] for r in headed(view, name, "instance segmentation",
                                                         "names of the outputs")]  # fmt: skip
    names += [name for name in _UNSUGGESTED if name not in names]
    candidates = [reading for name in names if (reading := judged(view, name)) is not None]
    if view.names and any(r.classes == view.names for r in candidates):
        candidates = [r for r in candidates if r.classes == view.names]
    kept = told_apart(view, {(r.parser or ""): r for r in candidates})
    for parser in names:  # coverage grids need no name
        if parser == "NvDsInferParseCustomResnet" and parser in kept:
            return [kept[parser]]
    return list(kept.values())[:3]
