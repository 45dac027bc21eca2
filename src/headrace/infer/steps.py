"""Decisions of the steps between an engine's outputs and a frame, kept where they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._core.errors import ParserError
from headrace.infer.attach import AttachResult
from headrace.infer.cluster import ClusterResult
from headrace.meta import ClassifierMeta, Detections, SegmentationMeta


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
