"""Choice of the parser that reads a model's outputs, and the number of their classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.parsers.catalogue import HEADS, INSTANCE_HEADS, suggest
from headrace.infer.parsers.head import AnyHead, LayerLike
from headrace.infer.parsers.text import CTC
from headrace.infer.recognise import exporters
from headrace.meta.layers import NetworkInfo
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.infer.recognise.evidence import FileEvidence
    from headrace.infer.recognise.exporters import Exporter

Probe = Callable[[], Arrays]
"""Outputs of one image of noise: name -> array without the batch axis."""

_DETECTOR, _INSTANCE = NetworkType.DETECTOR, NetworkType.INSTANCE_SEGMENTATION
_BY_NAME = {head.name: head for head in (*HEADS, *INSTANCE_HEADS)}
# They hold classes as numbers: how many there are, the outputs do not say.
_UNCOUNTED = "num-detected-classes"
_YOLOX, _V5, _V8 = "HeadraceParseYoloX", "HeadraceParseYoloV5", "HeadraceParseYoloV8"
_POSE = "HeadraceParseYoloV8Pose"
_OBB = "HeadraceParseYoloObb"
_ROWS_6 = "NvDsInferParseYolo"


@dataclass(frozen=True)
class HeadReading:
    """One way to read the outputs.

    Attributes:
        kind: of the network.
        parser: name of the built-in parser; None is the one without a name.
        classes: how many; None: the outputs do not say.
        words: what the model is, for people.
        why: what tells.
        suppressed: the boxes have passed non-maximum suppression already.
        rotated: the boxes have angles.
        own_names: names of the classes that come with this reading.
        counted: what tells the number of classes; empty: `why`.
    """

    kind: NetworkType
    parser: str | None
    classes: int | None
    words: str
    why: str
    _: KW_ONLY
    suppressed: bool = False
    rotated: bool = False
    own_names: tuple[str, ...] = ()
    counted: str = ""

    @property
    def key(self) -> str:
        """The key that names the parser."""
        return {
            NetworkType.DETECTOR: "parse-bbox-func-name",
            NetworkType.CLASSIFIER: "parse-classifier-func-name",
            NetworkType.SEGMENTATION: "parse-segmentation-func-name",
            NetworkType.INSTANCE_SEGMENTATION: "parse-bbox-instance-mask-func-name",
        }.get(self.kind, "")


@dataclass(frozen=True)
class View:
    """Facts that the readings are judged by.

    Attributes:
        outputs: shapes for the chosen image size; their first axis is the batch.
        network: that size.
        names: how many classes the metadata names; 0 if it names none.
        probe: runs the model once, for readings that only values tell apart.
    """

    evidence: FileEvidence
    exporter: Exporter | None
    outputs: tuple[TensorSpec, ...]
    network: NetworkInfo
    names: int
    probe: Probe

    @property
    def items(self) -> list[TensorSpec]:
        """The outputs without their batch axis, and without leading axes of 1."""
        return [TensorSpec(o.name, o.dtype, o.shape[1:] or (1,)) for o in self.outputs]

    def bound(self, head: AnyHead) -> dict[str, int | None] | None:
        """Letters of the first layout that fits; None if none does."""
        layers: Sequence[LayerLike] = [_sized(item) for item in self.items]
        for layout in head.layouts:
            match = layout.match(layers, self.network)
            if match is not None:
                return match[1]
        return None


def _sized(spec: TensorSpec) -> Any:
    axes = tuple(d if isinstance(d, int) else None for d in spec.shape)
    return TensorSpec(spec.name, spec.dtype, axes)


def readings(view: View) -> list[HeadReading]:
    """The ways in which these outputs may be read; one if it is decided, none if no parser fits."""
    if any(0 in output.shape for output in view.outputs):
        return []
    for look in (_by_task, _by_exporter, _classifier, _segmentation):
        candidates = look(view)
        if candidates is not None:
            return candidates
    return _by_shape(view)


def _by_task(view: View) -> list[HeadReading] | None:
    """Readings of Ultralytics' metadata."""
    if view.exporter is not exporters.ULTRALYTICS:
        return None
    texts = view.evidence.metadata
    task = texts.get("task", "detect")
    why = f"metadata task: {task}"
    ends = texts.get("end2end", "").lower() == "true" or "'nms': True" in texts.get("args", "")
    rows = view.items[0].shape
    if task == "classify":
        one = len(view.items) == 1 and view.items[0].dtype.kind == "f"
        return [_class_reading(view, why)] if one and len(rows) == 1 else []
    if task == "segment":
        return _headed(view, "HeadraceParseYoloV8Seg", "YOLO segmentation", why)
    if task == "obb":
        return _headed(view, _OBB, "YOLO, rotated boxes", why, rotated=True)
    if task == "pose":
        return _poses(view, why)
    if task != "detect":
        return []
    if len(rows) == 2 and rows[1] == 6 and (ends or view.names != 2):
        count = view.names or None
        return [
            HeadReading(_DETECTOR, _ROWS_6, count, "YOLO with NMS inside", why, suppressed=True)
        ]
    if view.names and rows[-1] == 5 + view.names and rows[0] != 4 + view.names:
        return _headed(view, _V5, "YOLOv5 detector", why)
    return _headed(view, _V8, "YOLO detector", why)


def _poses(view: View, why: str) -> list[HeadReading]:
    """A pose model of Ultralytics; its metadata name points and values of each: `[17, 3]`."""
    shape = [
        int(number) for number in re.findall(r"\d+", view.evidence.metadata.get("kpt_shape", ""))
    ]
    candidates = _headed(view, _POSE, "YOLO pose", why)
    if len(shape) != 2 or shape[1] not in (2, 3) or not candidates:
        return []
    rows = min((axis for axis in view.items[0].shape if isinstance(axis, int)), default=0)
    classes = rows - 4 - shape[0] * shape[1]
    pairs_of_triples = shape[1] == 2 and shape[0] % 3 == 0
    if classes < 1 or pairs_of_triples:  # the parser takes 3 numbers a point where it can
        return []
    each = "x, y, score" if shape[1] == 3 else "x, y"
    why = f"{why}, {shape[0]} points of {each}"
    return [replace(candidates[0], classes=classes, why=why, counted=_scores(classes))]


def _headed(view: View, parser: str, words: str, why: str, **more: Any) -> list[HeadReading]:
    """The reading of a head if it fits the outputs; its classes are counted by their shapes."""
    bound = view.bound(_BY_NAME[parser])
    if bound is None:
        return []
    classes = bound.get("C")
    if classes is None and bound.get("P"):  # of a row with mask coefficients, see the head
        classes = int(bound["P"] or 0) - int(bound.get("M") or 0) - 4
    kind = _INSTANCE if _BY_NAME[parser] in INSTANCE_HEADS else _DETECTOR
    counted = _scores(classes)
    classes = classes or view.names or None
    return [HeadReading(kind, parser, classes, words, why, counted=counted, **more)]


def _scores(classes: int | None) -> str:
    """The source of the number of classes, where the shapes have it."""
    each = "score for each box" if classes == 1 else "scores for each box"
    return f"the outputs hold {classes} {each}" if classes else ""


def _by_exporter(view: View) -> list[HeadReading] | None:
    exporter = view.exporter
    if exporter in (exporters.YOLOX, exporters.YOLOX_LEGACY):
        return _yolox(view)
    if exporter is exporters.CENTERFACE:
        return [HeadReading(_DETECTOR, "HeadraceParseCenterFace", 1, "CenterFace", "four maps",
                        own_names=("face",))]  # fmt: skip
    if exporter is exporters.ULTRAFACE:
        reading = _judged(view, "HeadraceParseSSDCorners")
        return [replace(reading, words=exporter.name, own_names=("face",))] if reading else []
    if exporter is exporters.PADDLE_DET:
        return [HeadReading(_DETECTOR, "HeadraceParseTextRegions", 1,
                        "PaddleOCR text detector (DB)",
                        "one map of probabilities", suppressed=True,
                        own_names=("text",))]  # fmt: skip
    if exporter is exporters.PADDLE and len(view.items[0].shape) == 2:
        return [HeadReading(NetworkType.CLASSIFIER, CTC, None, "PaddleOCR reader of text",
                        f"soft-max over {view.items[0].shape[1]} characters")]  # fmt: skip
    if exporter is exporters.PADDLE and view.items[0].shape == (2,):
        reading = _class_reading(view, "two turns of a line of text")
        return [replace(reading, words="PaddleOCR's classifier of turned lines",
                        own_names=("0", "180"))]  # fmt: skip
    if exporter is exporters.TF_DETECTION:
        return [HeadReading(_DETECTOR, "NvDsInferParseCustomTfSSD", view.names or None,
                            "detector of TensorFlow's API", "names of the outputs",
                            suppressed=True)]  # fmt: skip
    if exporter is exporters.MMDET and len(view.items) == 2:
        count = view.names or None
        return [HeadReading(_DETECTOR, "HeadraceParseDetsLabels", count, "mmdetection detector",
                        "outputs dets and labels", suppressed=True)]  # fmt: skip
    return None


def _yolox(view: View) -> list[HeadReading]:
    rows = np.asarray(view.probe()[view.items[0].name])
    reach = float(np.percentile(np.abs(rows.reshape(-1, rows.shape[-1])[:, :2]), 90))
    if reach > view.network.width / 8:
        return _headed(view, _V5, "YOLOX detector, decoded",
                       f"centres reach {reach:.0f} pixels")  # fmt: skip
    return _headed(view, _YOLOX, "YOLOX detector", f"centres stay below {reach:.1f}: not decoded")


def _classifier(view: View) -> list[HeadReading] | None:
    shapes = [tuple(d for d in item.shape if d != 1) for item in view.items]
    if any(len(shape) != 1 or item.dtype.kind != "f" for shape, item in
           zip(shapes, view.items, strict=True)):  # fmt: skip
        return None
    widths = {shape[0] for shape in shapes}
    if len(widths) != 1 or widths == {4}:
        return None
    return [_class_reading(view, "one value for each class")]


def _class_reading(view: View, why: str) -> HeadReading:
    logits = any(end != "Softmax" for end in view.evidence.ends.values())
    if logits:
        values = [np.asarray(a, np.float64).reshape(-1) for a in view.probe().values()]
        logits = any(v.min() < 0 or abs(v.sum() - 1) > 0.01 for v in values)
    parser = "NvDsInferClassiferParseNonSoftmax" if logits else None
    count = view.items[0].shape[0]
    said = "logits, soft-max by the parser" if logits else "probabilities"
    return HeadReading(
        NetworkType.CLASSIFIER,
        parser,
        count if isinstance(count, int) else None,
        "classifier" if len(view.items) == 1 else f"classifier of {len(view.items)} attributes",
        f"{why}; {said}",
    )


def _segmentation(view: View) -> list[HeadReading] | None:
    """One map of scores over a good part of the image."""
    if len(view.items) != 1:
        return None
    match view.items[0].shape:
        case (int() as channels, int() as height, int() as width):
            pass
        case _:
            return None
    if height * 4 < view.network.height or width * 4 < view.network.width:
        return None
    if channels < 2 or view.items[0].dtype.kind != "f":
        return []
    why = f"a map of {channels} scores for each of {width}x{height} cells"
    return [HeadReading(NetworkType.SEGMENTATION, None, channels, "semantic segmentation", why)]


def _by_shape(view: View) -> list[HeadReading]:
    """Readings that the shapes, names and values of the outputs allow."""
    names = suggest(
        [TensorSpec(o.name, o.dtype, o.shape) for o in view.outputs],
        view.network,
        view.names or None,
    )
    candidates = [reading for name in names if (reading := _judged(view, name)) is not None]
    if view.names and any(r.classes == view.names for r in candidates):
        candidates = [r for r in candidates if r.classes == view.names]
    kept = {(r.parser or ""): r for r in candidates}
    for twin, of in _TWINS.items():
        if of in kept:
            kept.pop(twin, None)
    for parser in names:  # coverage grids need no name
        if parser == "NvDsInferParseCustomResnet" and parser in kept:
            return [kept[parser]]
    return list(kept.values())[:3]


_TWINS = {
    "NvDsInferParseYoloV11": _V8,
    "NvDsInferParseCustomYoloV8": _V8,
    "NvDsInferParseCustomYoloV4": "NvDsInferParseCustomBatchedNMSTLT",
}


def _judged(view: View, name: str) -> HeadReading | None:
    """A reading of a head unless the values of one run speak against it."""
    head = _BY_NAME[name]
    bound = view.bound(head)
    if bound is None:
        return None
    classes, background = bound.get("C"), False
    why = "shapes of the outputs"
    if name in _TABLES:
        values = [np.asarray(a, np.float64) for a in view.probe().values()]
        boxes, scores = _tables(values)
        if boxes is None or scores is None:
            return None
        unit, centres = _box_kind(boxes)
        if (unit, centres) != _TABLES[name]:
            return None
        sums = scores.sum(axis=1)
        columns = int(np.shape(scores)[1])
        background = bool(columns > 1 and np.abs(sums - 1).max() < 0.01
                          and scores[:, 0].mean() > 0.5)  # fmt: skip
        classes = columns - background
        if _beyond_unit(scores):
            return None  # logits
        why = f"{'corners' if not centres else 'centres'} in {'0..1' if unit else 'pixels'}"
        why += ", soft-max with background first" if background else ""
    elif name in _LOGITS:
        boxes, scores = _tables([np.asarray(a, np.float64) for a in view.probe().values()])
        if boxes is None or scores is None or not _beyond_unit(scores):
            return None
        why = "logits beside boxes"
    elif name in (_YOLOX, _V5, _V8, "HeadraceParseRTDETR"):
        rows = np.asarray(next(iter(view.probe().values())), np.float64)
        rows = rows.reshape(-1, rows.shape[-1])
        if rows.shape[0] < rows.shape[1] and name == _V8:
            rows = rows.T
        if np.shape(rows)[1] <= 4:
            return None
        reach = float(np.percentile(np.abs(rows[:, :2]), 90))
        small = reach <= 1.5 if name == "HeadraceParseRTDETR" else reach < view.network.width / 8
        if small != (name in (_YOLOX, "HeadraceParseRTDETR")):
            return None
        if rows[:, 4:].min() < -1e-3 or rows[:, 4:].max() > 1.001:
            return None
        why = f"centres reach {reach:.3g}, scores within 0..1"
    suppressed = name == _ROWS_6 or name in _AFTER_NMS
    counted = "" if background else _scores(classes)
    if classes is None or name in _AFTER_NMS:
        classes, counted = view.names or None, ""
    return HeadReading(_DETECTOR, name, classes, head.summary.split(":")[0], why,
                   suppressed=suppressed, counted=counted)  # fmt: skip


_TABLES = {
    "HeadraceParseSSDCorners": (True, False),
    "HeadraceParseSSDCenters": (True, True),
    "HeadraceParseBoxesScores": (False, False),
}
_LOGITS = ("HeadraceParseDetr", "HeadraceParseDetrSoftmax")
_AFTER_NMS = tuple(
    name
    for name, head in _BY_NAME.items()
    if any("K 4" in str(out.dims) or out.dims in ("K 7", "K 5") for out in head.layouts[0].outs)
)


def _tables(
    values: Sequence[Array],
) -> tuple[Array | None, Array | None]:
    """(N, 4) boxes and (N, C) scores of two tables."""
    tables = [v.reshape(-1, v.shape[-1]) for v in values if v.ndim >= 2]
    if len(tables) != 2:
        return None, None
    first, second = tables
    widths = [np.shape(table)[1] for table in tables]
    if widths[0] == 4 and (widths[1] != 4 or second.max() <= 1.0 < first.max()):
        return first, second
    return (second, first) if widths[1] == 4 else (None, None)


def _beyond_unit(scores: Array) -> bool:
    return bool(scores.size and (scores.min() < 0 or scores.max() > 1))


def _box_kind(boxes: Array) -> tuple[bool, bool]:
    """Whether they are in 0..1, and whether they are centres with sizes and not corners."""
    unit = bool(np.percentile(np.abs(boxes), 95) <= 2.0)
    ordered = (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
    return unit, bool(ordered.mean() < 0.95)
