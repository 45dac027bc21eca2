"""The explanation of a frame as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace._core import pages
from headrace.diagnose.explain.images import (
    class_image,
    heat_image,
    input_image,
    map_color,
)
from headrace.diagnose.explain.records import (
    ClassStages,
    FrameExplanation,
    ModelExplanation,
)
from headrace.diagnose.explain.summary import ranked_classes, stages_of

if TYPE_CHECKING:
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.trace import FrameTrace, ItemTrace

_WIDTH = 1200
_CROWD = 100  # more objects have no names over the frame, only hints
_MOST_TEXT = 40  # characters of a result over the frame
_MOST_ITEMS = 24  # crops of a secondary model that are shown
_STEPS = ("candidates", "above threshold", "clustered", "top k", "objects")
_COLOUR_OF = {"threshold": 4, "cluster": 3, "topk": 5, "filter": 1, "object": 2, "skipped": 0}


@dataclass(frozen=True, slots=True)
class Outline:
    """One box drawn over the frame.

    Attributes:
        left, top, width, height: in frame pixels.
        stage: the step that decided, which gives the colour.
        text: its name, empty for one that is not worth it; `hint` is the whole sentence.
    """

    left: float
    top: float
    width: float
    height: float
    stage: str
    text: str
    hint: str

    @property
    def colour(self) -> int:
        """Number of its colour in the style sheet."""
        return _COLOUR_OF[self.stage]


@dataclass(frozen=True, slots=True)
class ShownItem:
    """Images of one item of a model; addresses are empty where there is no image."""

    name: str
    seen: str
    heat: str
    classes: str
    result: str


@dataclass(frozen=True, slots=True)
class ShownModel:
    """One model of the page.

    Attributes:
        data: its decisions.
        outlines: its boxes in the frame.
        steps: name and number of boxes of each step, and its share of the candidates.
        classes: the same by class.
        items: images of items; `more` of them are not shown.
        channels: order of the network's channels in words.
    """

    data: ModelExplanation
    outlines: list[Outline]
    steps: list[tuple[str, int, float]]
    classes: list[ClassStages]
    items: list[ShownItem]
    more: int
    channels: str


def explanation_page(
    data: FrameExplanation, traces: Sequence[FrameTrace], models: Sequence[Inferencer]
) -> str:
    """Make the page.

    Args:
        data: the decisions.
        traces: the same with tensors and images, one for each model.
        models: the models.
    """
    shown = [
        _model(one, trace, model)
        for one, trace, model in zip(data.models, traces, models, strict=True)
    ]
    frame = pages.image_uri(traces[0].frame.to_rgb(), max_width=_WIDTH) if traces else ""
    return pages.render_page(
        "explain.html",
        title=f"Frame {data.frame} of {data.source}",
        data=data,
        frame=frame,
        shown=shown,
        line=max(1.0, data.width / 480),
        colours=_COLOUR_OF,
        map_color=map_color,
    )


def _model(data: ModelExplanation, trace: FrameTrace, model: Inferencer) -> ShownModel:
    totals = stages_of(data.classes)
    most = max(1, *totals)
    steps = [(name, n, n / most) for name, n in zip(_STEPS, totals, strict=True)]
    items = [_item(data, item, model) for item in trace.items[:_MOST_ITEMS]]
    pre = model.model.preprocessor
    return ShownModel(
        data,
        list(_outlines(data, trace)),
        steps if data.classes else [],
        ranked_classes(data),
        items,
        len(trace.items) - len(items),
        "" if pre is None else pre.color_format.label,
    )


def _outlines(data: ModelExplanation, trace: FrameTrace) -> Iterator[Outline]:
    """Boxes of a model: dropped ones first, so that objects are drawn over them."""
    for one in data.dropped:
        text = f"{one.label} {one.score:.2f}" if one.telling else ""
        yield Outline(*one.box, one.verdict.stage, text, str(one))
    for skipped in data.skipped:
        yield Outline(*skipped.box, "skipped", skipped.label, str(skipped))
    for result in data.results:
        if result.object >= 0:
            left, top, width, height = trace.meta.objects.rects[result.object].tolist()
            stage = "object" if result.attached else "threshold"
            text, hint = result.text[:_MOST_TEXT], f"object {result.object}: {result.text}"
            yield Outline(left, top, width, height, stage, text, hint)
    objects = trace.meta.objects
    for index in range(trace.known, trace.known + data.objects):
        left, top, width, height = objects.rects[index].tolist()
        if not np.isfinite([left, top, width, height]).all():
            continue
        label = objects.label(index) or f"class {objects.class_ids[index]}"
        text = f"{label} {float(objects.confidences[index]):.2f}"
        shown = text if data.objects <= _CROWD else ""
        yield Outline(left, top, width, height, "object", shown, f"object {index}: {text}")


def _item(data: ModelExplanation, item: ItemTrace, model: Inferencer) -> ShownItem:
    name = "the whole frame" if item.object < 0 else f"object {item.object}"
    seen = heat = classes = ""
    pre = model.model.preprocessor
    if pre is not None and item.transform is not None:
        image = input_image(item.tensor, pre)
        seen = pages.image_uri(image, max_width=640)
        if item.candidates is not None and len(item.candidates):
            heat = pages.image_uri(heat_image(image, item.candidates), max_width=640)
    if item.segmentation is not None:
        classes = pages.image_uri(class_image(item.segmentation), max_width=640, quality=100)
    result = next((one.text for one in data.results if one.object == item.object), "")
    if item.error is not None:
        result = str(item.error)
    return ShownItem(name, seen, heat, classes, result)
