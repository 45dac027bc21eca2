"""The ways in which outputs may be read: by metadata, exporter, shapes and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.config.enums import NetworkType
from headrace.infer.parsers.catalogue import suggest
from headrace.infer.parsers.text import CTC
from headrace.infer.recognise import exporters, libreyolo
from headrace.infer.recognise.heads import (
    DETECTOR,
    DETR,
    DETR_SOFTMAX,
    YOLOV5,
    YOLOV8,
    YOLOX,
    HeadReading,
    View,
    class_reading,
    headed,
    judged,
    segmentation,
)
from headrace.infer.recognise.ultralytics import by_task
from headrace.network.tensor_spec import TensorSpec


def readings(view: View) -> list[HeadReading]:
    """The ways in which these outputs may be read; one if it is decided, none if no parser fits."""
    if any(0 in output.shape for output in view.outputs):
        return []
    for look in (_by_task, _by_exporter, _classifier, segmentation):
        candidates = look(view)
        if candidates is not None:
            return candidates
    return _by_shape(view)


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
        return headed(view, "HeadraceParseYoloV5Seg", "YOLOv5 segmentation", "rows and prototypes")
    if exporter is exporters.CENTERFACE:
        return [HeadReading(DETECTOR, "HeadraceParseCenterFace", 1, "CenterFace", "four maps",
                        own_names=("face",))]  # fmt: skip
    if exporter is exporters.ULTRAFACE:
        reading = judged(view, "HeadraceParseSSDCorners")
        return [replace(reading, words=exporter.name, own_names=("face",))] if reading else []
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
    if exporter is exporters.RFDETR:
        parser = "HeadraceParseDetrSeg" if len(view.items) > 2 else "HeadraceParseDetr"
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


_EMBEDS = frozenset(("GlobalAveragePool", "ReduceMean", "BatchNormalization", "LpNormalization"))
"""Operators that end a vector of features; scores of classes end in weights of their own."""


def _classifier(view: View) -> list[HeadReading] | None:
    shapes = [tuple(d for d in item.shape if d != 1) for item in view.items]
    if any(len(shape) != 1 or item.dtype.kind != "f" for shape, item in
           zip(shapes, view.items, strict=True)):  # fmt: skip
        return None
    if len(shapes) == 1 and _EMBEDS.intersection(view.evidence.ends.values()):
        why = f"a vector behind {', '.join(view.evidence.ends.values())}"
        return [HeadReading(NetworkType.OTHER, None, None, "embedding", why)]
    widths = {shape[0] for shape in shapes}
    if len(widths) != 1 or widths == {4}:
        return None
    return [class_reading(view, "one value for each class")]


def _by_shape(view: View) -> list[HeadReading]:
    """Readings that the shapes, names and values of the outputs allow."""
    names = suggest(
        [TensorSpec(o.name, o.dtype, o.shape) for o in view.outputs],
        view.network,
        view.names or None,
    )
    candidates = [reading for name in names if (reading := judged(view, name)) is not None]
    if view.names and any(r.classes == view.names for r in candidates):
        candidates = [r for r in candidates if r.classes == view.names]
    kept = {(r.parser or ""): r for r in candidates}
    if {DETR, DETR_SOFTMAX} <= kept.keys() and (other := _not_of_detr(view)):
        kept.pop(other)
    for twin, of in _TWINS.items():
        if of in kept:
            kept.pop(twin, None)
    for parser in names:  # coverage grids need no name
        if parser == "NvDsInferParseCustomResnet" and parser in kept:
            return [kept[parser]]
    return list(kept.values())[:3]


def _not_of_detr(view: View) -> str | None:
    """Which of the two readings of logits does not fit; None if both may.

    The last logit of DETR means no object, and wins for most queries of any image. Deformable
    attention and the selection of queries came with the models that have no such logit.
    """
    logits = max(view.probe().values(), key=lambda a: np.shape(a)[-1])
    rows = np.asarray(logits, np.float64).reshape(-1, np.shape(logits)[-1])
    last = float((rows.argmax(axis=1) == rows.shape[1] - 1).mean())
    if last > _MOSTLY:
        return DETR
    return DETR_SOFTMAX if view.evidence.operators & {"GridSample", "TopK"} else None


_MOSTLY = 0.8
_TWINS = {
    "NvDsInferParseYoloV11": YOLOV8,
    "NvDsInferParseCustomYoloV8": YOLOV8,
    "NvDsInferParseCustomYoloV4": "NvDsInferParseCustomBatchedNMSTLT",
}
