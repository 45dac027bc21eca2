"""Decisions of the steps between an engine's outputs and a frame, kept where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._core.errors import ParserError
from headrace.infer.attach import AttachResult
from headrace.infer.cluster import ClusterResult
from headrace.infer.items import Items
from headrace.meta import ClassifierMeta, Detections, SegmentationMeta

if TYPE_CHECKING:
    from headrace._core.types import Arrays
    from headrace.infer.loaded_model import Model


@dataclass(slots=True)
class ItemSteps:
    """Results of each step for one item; None for a step that did not run.

    Attributes:
        parsed: boxes of the parser, in network space.
        clustered: the objects of these boxes, with the fate of each box.
        attached: the objects that passed the filters, and the reason of each other one.
        first: index of the first attached object among those of the frame.
        classified: the result of a classifier; None if it has no label.
        segmentation: the class map.
        error: the refusal of the parser.
    """

    parsed: Detections | None = None
    clustered: ClusterResult | None = None
    attached: AttachResult | None = None
    first: int = 0
    classified: ClassifierMeta | None = None
    segmentation: SegmentationMeta | None = None
    error: ParserError | None = None


@dataclass(frozen=True, slots=True)
class RunSteps:
    """One run of the engine with the decisions on each of its N items.

    Attributes:
        model: the model that ran.
        items: the frames, objects or regions, with their place in the network input.
        inputs: name -> (N, ...) array; the image input at least.
        outputs: name -> (N, ...) array in binding order.
        steps: of each item.
    """

    model: Model
    items: Items
    inputs: Arrays
    outputs: Arrays
    steps: Sequence[ItemSteps]
