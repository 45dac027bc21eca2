"""One frame through one model, with the decision on every candidate and every object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ParserError
from headrace._core.types import Array
from headrace.infer.batch import frame_meta
from headrace.infer.candidates import Candidates, Decisions
from headrace.infer.cluster import Clusterer
from headrace.infer.engine_runs import RunSteps
from headrace.infer.geometry import Rect, ScaleTransform
from headrace.infer.items import ItemSteps
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.meta import ClassifierMeta, Detections, FrameMeta, Layer, SegmentationMeta
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace.infer.inferencer import Inferencer
    from headrace.media.frame import Frame

FLOOR = 0.01
"""Candidates with lower scores are not looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemTrace:
    """One item of a model: the frame, or the crop of an object.

    Attributes:
        object: the object of the frame that it shows, or -1.
        crop: its rectangle in frame pixels; None for the whole frame.
        tensor: float32, the image input of the network, without the batch axis.
        transform: the place of the item in that input; None if it has no area and is not inferred.
        layers: output name -> tensor, in binding order.
        candidates: of a detector; None for other networks, and if the parser refused.
        classified: the result of a classifier that is attached, or None.
        segmentation: the class map, or None.
        error: the refusal of the parser, or None.
    """

    object: int
    crop: Rect | None
    tensor: Array
    transform: ScaleTransform | None
    layers: Mapping[str, Layer]
    candidates: Candidates | None = None
    classified: ClassifierMeta | None = None
    segmentation: SegmentationMeta | None = None
    error: ParserError | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FrameTrace:
    """One frame through one model.

    Attributes:
        frame: the image.
        meta: its metadata, with the results of this model.
        known: number of objects before this model.
        items: the whole frame, or each object that the model inferred on.
        skipped: object -> key that left it out, for a secondary model; see `ObjectTally.skipped`,
            and `secondary-reinfer-interval` for an object that keeps an earlier result.
    """

    frame: Frame
    meta: FrameMeta
    known: int
    items: tuple[ItemTrace, ...]
    skipped: Mapping[int, str]


def trace_frame(
    model: Inferencer, frame: Frame, meta: FrameMeta | None = None, *, floor: float = FLOOR
) -> FrameTrace:
    """Run one frame through an opened model, and keep every decision.

    `interval` and `stabilize-buffer-count` skip nothing. The parser is called once more for each
    item, with thresholds of at most `floor`.

    Args:
        model: any network type; no other thread may use it meanwhile.
        frame: the image.
        meta: metadata with the objects of the models before; a secondary model needs it. The
            results of this model are added.
        floor: the lowest score of a candidate.

    Raises:
        EngineError: the engine failed, or a secondary model has no `meta`.
    """
    runs: list[RunSteps] = []
    meta = frame_meta(frame) if meta is None and not model.secondary else meta
    known, refused = 0, []
    if meta is not None:
        known, refused = len(meta.objects), _refused(model, meta)
    before, model.runs.on_steps = model.runs.on_steps, runs.append
    try:
        meta = model(frame, meta)
    finally:
        model.runs.on_steps = before
    items = tuple(
        item_trace(run, index, floor=floor) for run in runs for index in range(len(run.items))
    )
    skipped = {index: key for index, key in enumerate(refused) if key is not None}
    if model.secondary:
        seen = {item.object for item in items}
        skipped |= {
            index: "secondary-reinfer-interval"
            for index in range(known)
            if index not in skipped and index not in seen
        }
    return FrameTrace(frame, meta, known, items, skipped)


def _refused(model: Inferencer, meta: FrameMeta) -> list[str | None]:
    selector = model.model.selector
    return [] if selector is None else selector.refusals(meta)


def item_trace(run: RunSteps, index: int, *, floor: float = FLOOR) -> ItemTrace:
    """The decisions on one item of a run; see `EngineRuns.on_steps`.

    Args:
        run: as the callback gets it.
        index: the item.
        floor: the lowest score of a candidate.
    """
    items, step = run.items, run.steps[index]
    layers = layers_of(dict(run.outputs), index)
    transform = items.transform(index) if items.valid()[index] else None
    return ItemTrace(
        items.object_of(index),
        items.parent_rect(index),
        run.inputs[run.model.input_name][index],
        transform,
        layers,
        _candidates(run, index, step, layers, transform, floor),
        step.classified,
        step.segmentation,
        step.error,
    )


def _candidates(
    run: RunSteps,
    index: int,
    step: ItemSteps,
    layers: dict[str, Layer],
    transform: ScaleTransform | None,
    floor: float,
) -> Candidates | None:
    post, items = run.model.postprocessor, run.items
    if not isinstance(post, DetectorPostprocessor) or transform is None:
        return None
    if step.parsed is None or step.clustered is None or step.attached is None:
        return None
    hidden = post.below(layers, floor)
    joined = _joined(step.parsed, hidden)
    actual = Decisions.of(step.clustered, step.attached)
    params = post.clusterer.params
    thresholds = params.thresholds.copy()
    lowest = float(np.nanmin(joined.scores, initial=np.inf))
    thresholds[:, 0] = np.minimum(thresholds[:, 0], lowest)
    clustered = Clusterer(replace(params, thresholds=thresholds))(joined, trace=True)
    meta = items.metas[index]
    scratch = FrameMeta(meta.source, meta.source_id, meta.frame, 0, meta.width, meta.height)
    roi, parent = items.roi_rect(index), items.parent_rect(index)
    attached = post.attacher(clustered.detections, transform, scratch, roi=roi, parent=parent)
    origin = post.attacher.parent_rect(transform, parent) or (0.0, 0.0)
    return Candidates(
        joined,
        post.attacher.to_frame(joined.boxes, transform, roi=roi, parent=parent),
        len(step.parsed),
        actual.extended(len(hidden)),
        Decisions.of(clustered, attached),
        step.first,
        (origin[0], origin[1]),
        meta.height,
        post.clusterer,
        post.attacher,
    )


def _joined(first: Detections, second: Detections) -> Detections:
    """Both, without masks and angles."""
    return Detections.unchecked(
        np.concatenate([first.boxes, second.boxes]),
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.class_ids, second.class_ids]),
        space=first.space,
    )
