"""Choice of the parser that reads a model's outputs, and the number of their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.parsers.catalogue import HEADS, INSTANCE_HEADS
from headrace.infer.parsers.head import AnyHead, InstanceHead, LayerLike
from headrace.infer.recognise.values import CHECKS, UNIT_REACH, final_rows, six_by_place
from headrace.meta.layers import NetworkInfo
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.infer.recognise.evidence import FileEvidence
    from headrace.infer.recognise.exporters import Exporter

Probe = Callable[[], Arrays]
"""Outputs of one image of noise: name -> array without the batch axis."""

DETECTOR = NetworkType.DETECTOR
_BY_NAME = {head.name: head for head in (*HEADS, *INSTANCE_HEADS)}
# They hold classes as numbers: how many there are, the outputs do not say.
_UNCOUNTED = "num-detected-classes"
YOLOX, YOLOV5, YOLOV8 = "HeadraceParseYoloX", "HeadraceParseYoloV5", "HeadraceParseYoloV8"
YOLOV8S = (YOLOV8, "NvDsInferParseYoloV11", "NvDsInferParseCustomYoloV8")
"""Heads of the same candidates."""
ROWS_6 = "NvDsInferParseYolo"
ROWS = (ROWS_6, YOLOX, YOLOV5, *YOLOV8S, "HeadraceParseRTDETR")
"""Heads of one table of rows."""


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
        from_one: the outputs hold ids of classes that count from 1: id 0 is background, or unused.
        fields: further fields of the config that it needs.
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
    from_one: bool = False
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key that names the parser."""
        return {
            NetworkType.DETECTOR: "parse-bbox-func-name",
            NetworkType.CLASSIFIER: "parse-classifier-func-name",
            NetworkType.SEGMENTATION: "parse-segmentation-func-name",
            NetworkType.INSTANCE_SEGMENTATION: "parse-bbox-instance-mask-func-name",
        }.get(self.kind, "")

    @property
    def choice(self) -> tuple[str, ...]:
        """The lines of a config that ask for it."""
        if self.parser:
            return (f"{self.key}={self.parser}",)
        shown = self.fields.get("output_image")
        image = (f"output-image={shown}",) if shown else ()
        order = self.fields.get("segmentation_output_order")
        last = (f"segmentation-output-order={int(order)}",) if isinstance(order, int) else ()
        return (f"network-type={int(self.kind)}", *image, *last)


def raw_words(reading: HeadReading | None) -> str:
    """Describe a model of raw outputs."""
    if reading is None:
        return "outputs as they are"
    shown = "output_image" in reading.fields
    return f"{reading.words}, {'drawn over the frames' if shown else 'as it is'}"


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
        """Letters of the layout that fits best; None if none does."""
        layers: Sequence[LayerLike] = [_sized(item) for item in self.items]
        matches = [(x, match[1]) for x in head.layouts if (match := x.match(layers, self.network))]
        for layout, bound in matches:  # of a table that fits either way the likely one
            known = {k: v for k, v in bound.items() if v is not None}
            if layout.likely and len(known) == len(bound) and layout.likely(known, self.network):
                return bound
        return matches[0][1] if matches else None


def _sized(spec: TensorSpec) -> Any:
    axes = tuple(d if isinstance(d, int) else None for d in spec.shape)
    return TensorSpec(spec.name, spec.dtype, axes)


def headed(view: View, parser: str, words: str, why: str, **more: Any) -> list[HeadReading]:
    """The reading of a head if it fits the outputs; its classes are counted by their shapes."""
    head = _BY_NAME[parser]
    bound = view.bound(head)
    if bound is None:
        return []
    classes = bound.get("C")
    if classes is None and bound.get("P"):  # of a row with mask coefficients, see the head
        first = 5 if parser == "HeadraceParseYoloV5Seg" else 4
        classes = int(bound["P"] or 0) - int(bound.get("M") or 0) - first
    if classes is not None and 0 not in head.surplus:
        classes -= head.surplus[0]  # the last logit means no object
    kind = DETECTOR
    if isinstance(head, InstanceHead):
        kind = NetworkType.INSTANCE_SEGMENTATION
        more["fields"] = {"segmentation_threshold": head.mask_threshold} | more.get("fields", {})
    counted = scores_counted(classes)
    classes = classes or view.names or None
    return [HeadReading(kind, parser, classes, words, why, counted=counted, **more)]


def lists(view: View, words: str, why: str, *, from_one: bool = False) -> list[HeadReading]:
    """Read lists of final boxes in pixels, class numbers, scores, and masks or points.

    The lists of a run may be empty, so nothing is decided by their values.
    """
    parser = {
        3: "HeadraceParseBoxesLabels",
        4: "HeadraceParseBoxesLabelsMasks",
        5: "HeadraceParseBoxesLabelsPoints",
    }.get(len(view.items))
    if parser is None:
        return []
    return headed(view, parser, words, why, suppressed=True, from_one=from_one)


def scores_counted(classes: int | None) -> str:
    """The source of the number of classes, where the shapes have it."""
    each = "score for each box" if classes == 1 else "scores for each box"
    return f"the outputs hold {classes} {each}" if classes else ""


def class_reading(view: View, why: str) -> HeadReading:
    """The reading of a vector as scores of classes: probabilities, or logits."""
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


def judged(view: View, name: str, *, scores: bool = True) -> HeadReading | None:
    """A reading of a head unless the values of one run speak against it.

    Args:
        view: the outputs.
        name: of the head.
        scores: False takes any scores and class numbers of the heads of `ROWS`.
    """
    head = _BY_NAME[name]
    bound = view.bound(head)
    if bound is None:
        return None
    classes, background = bound.get("C"), False
    why = "shapes of the outputs"
    if (check := CHECKS.get(name)) is not None:
        said = check(view)
        if name == ROWS_6 and not scores and six_by_place(view):
            said = "shapes of the outputs"
        if said is None:
            return None
        why = said
    elif name in _TABLES:
        values = [np.asarray(a, np.float64) for a in view.probe().values()]
        boxes, table = _tables(values)
        if boxes is None or table is None:
            return None
        unit, centres = _box_kind(boxes)
        if (unit, centres) != _TABLES[name]:
            return None
        sums = table.sum(axis=1)
        columns = int(np.shape(table)[1])
        background = bool(columns > 1 and np.abs(sums - 1).max() < 0.01
                          and table[:, 0].mean() > 0.5)  # fmt: skip
        classes = columns - background
        if _beyond_unit(table):
            return None  # logits
        why = f"{'corners' if not centres else 'centres'} in {'0..1' if unit else 'pixels'}"
        why += ", soft-max with background first" if background else ""
    elif name in _LOGITS:
        boxes, table = _tables([np.asarray(a, np.float64) for a in view.probe().values()])
        if boxes is None or table is None or not _beyond_unit(table):
            return None
        why = "logits beside boxes"
    elif name in _LABELLED:
        boxes = next(np.asarray(a) for a in view.probe().values() if np.shape(a)[-1:] == (4,))
        reach = float(np.abs(boxes).max(initial=0))
        if reach and (reach <= UNIT_REACH) is not _LABELLED[name]:
            return None
        why = f"boxes reach {reach:.3g}"
    elif name in ROWS:
        rows = np.asarray(next(iter(view.probe().values())), np.float64)
        rows = rows.reshape(-1, rows.shape[-1])
        if rows.shape[0] < rows.shape[1] and name in YOLOV8S:
            rows = rows.T
        if np.shape(rows)[1] <= 4:
            return None
        reach = float(np.percentile(np.abs(rows[:, :2]), 90))
        small = reach <= 1.5 if name == "HeadraceParseRTDETR" else reach < view.network.width / 8
        if small != (name in (YOLOX, "HeadraceParseRTDETR")):
            return None
        why = f"centres reach {reach:.3g}, scores within 0..1"
        if rows[:, 4:].min() < -1e-3 or rows[:, 4:].max() > 1.001:
            if scores:
                return None
            why = f"centres reach {reach:.3g}"
    suppressed = name in _AFTER_NMS or name in _FINAL
    if name == ROWS_6:
        suppressed = final_rows(view)
    counted = "" if background else scores_counted(classes)
    if classes is not None and 0 not in head.surplus:
        classes -= head.surplus[0]  # the last logit means no object
        counted = scores_counted(classes)
    if name in ONE_KIND:
        classes, counted = 1, "the head finds one kind"
    elif classes is None or name in _AFTER_NMS:
        classes, counted = view.names or None, ""
    return HeadReading(DETECTOR, name, classes, head.summary.split(":")[0], why,
                   suppressed=suppressed, counted=counted,
                   own_names=ONE_KIND.get(name, ()))  # fmt: skip


_TABLES = {
    "HeadraceParseSSDCorners": (True, False),
    "HeadraceParseSSDCenters": (True, True),
    "HeadraceParseBoxesScores": (False, False),
}
DETR, DETR_SOFTMAX = "HeadraceParseDetr", "HeadraceParseDetrSoftmax"
TAO_QUERIES = ("NvDsInferParseCustomDDETRTAO", "NvDsInferParseCustomRTDETRTAO")
_LOGITS = (DETR, DETR_SOFTMAX)
_LABELLED = {"HeadraceParseBoxesLabels": False, "HeadraceParseBoxesLabelsUnit": True}
"""Boxes, scores and class numbers apart, and whether the boxes are in 0..1."""
_AFTER_NMS = tuple(
    name
    for name, head in _BY_NAME.items()
    if name not in ("HeadraceParseSCRFD", "HeadraceParseYuNet")  # K is a level of theirs
    and any(
        "K 4" in str(out.dims) or out.dims in ("K 7", "K 6", "K 5") for out in head.layouts[0].outs
    )
)
ONE_KIND: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("HeadraceParseSCRFD", "HeadraceParseRetinaFace", "HeadraceParseYuNet",
         "HeadraceParseUltraFacePriors"),
        ("face",),
    ),
    **dict.fromkeys(
        ("HeadraceParseBlazePose", "HeadraceParseMoveNet", "HeadraceParseMoveNetMany"), ("person",)
    ),
    **dict.fromkeys(
        ("HeadraceParseBlazeFace", "HeadraceParseLandmarks", "HeadraceParseSimCC",
         "HeadraceParseHeatmapPose", "HeadraceParseDetsPoints", "HeadraceParseDetrPoints"),
        (),
    ),
}  # fmt: skip
"""Heads of one class -> its name, where the head is of nothing else."""
_FINAL = (DETR, DETR_SOFTMAX, *TAO_QUERIES, "HeadraceParseRTDETR", "HeadraceParseDetrPoints",
          "HeadraceParseDetrPose", "HeadraceParseDetsPoints", "HeadraceParseSimCC",
          "HeadraceParseLandmarks", "HeadraceParseBlazePose", "HeadraceParseMoveNet",
          "HeadraceParseMoveNetMany", "HeadraceParseHeatmapPose")  # fmt: skip
"""Heads of queries or of one object: each object has one box."""


def _tables(
    values: Sequence[Array],
) -> tuple[Array | None, Array | None]:
    """(N, 4) boxes and (N, C) scores of two tables."""
    tables = [v.reshape(-1, v.shape[-1]) for v in values if v.ndim >= 2]
    if len(tables) != 2:
        return None, None
    first, second = tables
    if len(first) != len(second) and second.shape[-1] == len(first):
        second = second.T  # classes first, as Paddle writes them
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
