"""One frame through the stages of two models, each stage of either one.

A stage is judged on data that are the same for both: the stages before it are A's. Its effect is
the change of A's objects with this stage alone taken from B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headrace._core.errors import EngineError, GeometryError, MediaError, ParserError
from headrace._core.types import Array
from headrace.diagnose.compare.sides import Side
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.infer.attributes import ClassifierPostprocessor
from headrace.infer.batch import frame_meta
from headrace.infer.cluster import Clusterer, ClusterParams
from headrace.infer.geometry import ScaleTransform
from headrace.infer.items import Items, ItemSteps
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.media.frame import Frame
from headrace.meta import Detections
from headrace.meta.layers import layers_of

Arrays = dict[str, Array]
_T = TypeVar("_T")
_VALUES = 2**20  # more than an attribute has


class ChainStage(StrEnum):
    """The stages in their order."""

    INPUT = "input"
    ENGINE = "engine"
    PARSER = "parser"
    THRESHOLD = "threshold"
    CLUSTER = "cluster"
    ATTACH = "attach"
    LABELS = "labels"


class Mix(NamedTuple):
    """The side of each stage: 0 is A, 1 is B."""

    input: int = 0
    engine: int = 0
    parser: int = 0
    threshold: int = 0
    cluster: int = 0
    attach: int = 0
    labels: int = 0

    @classmethod
    def only(cls, *stages: ChainStage) -> Mix:
        """B for these stages, A for all others."""
        return cls(**{stage.value: 1 for stage in stages})


PURE = (Mix(), Mix(*[1] * len(Mix._fields)))
"""A alone, B alone."""


@dataclass(slots=True)
class ChainTimes:
    """Seconds of each stage by side, one for each time it ran."""

    seconds: dict[tuple[ChainStage, int], list[float]] = field(default_factory=dict)

    def timed(self, stage: ChainStage, side: int, call: Callable[[], _T]) -> _T:
        """Call a function, and keep the time it took."""
        start = perf_counter()
        result = call()
        self.seconds.setdefault((stage, side), []).append(perf_counter() - start)
        return result

    def median_ms(self, stage: ChainStage, side: int) -> float:
        """Median in milliseconds; NaN if it never ran."""
        durations = self.seconds.get((stage, side))
        return float(np.median(durations)) * 1e3 if durations else float("nan")


class Chain:
    """A frame on its way through both models; every result is computed once.

    Args:
        frame: the image.
        sides: A and B.
        times: where times are added.

    Attributes:
        refused: side of a parser that refused outputs -> its reason.
    """

    def __init__(self, frame: Frame, sides: tuple[Side, Side], times: ChainTimes) -> None:
        self.frame = frame
        self.sides = sides
        self.refused: dict[int, str] = {}
        self._times = times
        self._known: dict[Any, Any] = {}

    @property
    def same_input(self) -> bool:
        """True if both networks get the same bits."""
        (a, _), (b, _) = self.scaled(0), self.scaled(1)
        return a.shape == b.shape and bool(np.array_equal(a, b))

    def scaled(self, side: int) -> tuple[npt.NDArray[np.float32], ScaleTransform]:
        """The input tensor, (1, …), and the place of the frame in it.

        Raises:
            MediaError: the frame cannot be scaled.
        """
        return self._once(("input", side), partial(self._scale, side))

    def outputs(self, input_side: int, engine_side: int) -> Arrays:
        """Outputs of an engine for an input, (1, …) each.

        Raises:
            EngineError: the engine failed.
        """
        if input_side and self.same_input:
            input_side = 0
        key = ("outputs", input_side, engine_side)
        return self._once(key, partial(self._infer, input_side, engine_side))

    def parsed(self, mix: Mix) -> Detections:
        """Boxes of a parser in network space; none if it refuses the outputs."""
        return self._once(("parsed", *mix[:4]), partial(self._parse, mix))

    def clustered(self, mix: Mix) -> Detections:
        """Boxes after thresholds and clustering, in network space."""
        return self._once(("clustered", *mix[:5]), partial(self._cluster, mix))

    def objects(self, mix: Mix) -> Scored:
        """Objects in frame pixels, or attributes: each at a place of its own, see `class_names`."""
        post = self.sides[mix.parser].model.postprocessor
        if isinstance(post, ClassifierPostprocessor):
            return self._once(("attributes", *mix[:3]), partial(self._classify, post, mix))
        return self._once(("objects", *mix[:6]), partial(self._attach, mix))

    def params(self, threshold: int, cluster: int) -> ClusterParams:
        """Clustering of one side with the thresholds of another, as far as both have the class."""
        clustering = self._post(cluster).clusterer.params
        if threshold == cluster:
            return clustering
        other = self._post(threshold).clusterer.params.thresholds
        thresholds = clustering.thresholds.copy()
        common = min(len(thresholds), len(other))
        thresholds[:common, :2] = other[:common, :2]  # pre-cluster and post-cluster
        return replace(clustering, thresholds=thresholds)

    def _once(self, key: object, make: Callable[[], _T]) -> _T:
        if key not in self._known:
            self._known[key] = make()
        result: _T = self._known[key]
        return result

    def _scale(self, side: int) -> tuple[npt.NDArray[np.float32], ScaleTransform]:
        pre = self.sides[side].model.preprocessor
        assert pre is not None  # refused when it was opened
        batch = pre.empty(1)
        try:
            transform = self._times.timed(ChainStage.INPUT, side, lambda: pre(self.frame, batch[0]))
        except GeometryError as error:
            raise MediaError(error.finding, where=repr(self.frame), code=MediaError.code) from error
        return batch, transform

    def _infer(self, input_side: int, engine_side: int) -> Arrays:
        model, tensor = self.sides[engine_side].model, self.scaled(input_side)[0]
        feeds = model.feeds(tensor)
        run = partial(model.session.run, feeds)
        outputs: Arrays = self._times.timed(ChainStage.ENGINE, engine_side, run)
        return outputs

    def _post(self, side: int) -> DetectorPostprocessor:
        post = self.sides[side].model.postprocessor
        if not isinstance(post, DetectorPostprocessor):
            raise EngineError("no detector", where=self.sides[side].title)
        return post

    def _parse(self, mix: Mix) -> Detections:
        model, post = self.sides[mix.parser].model, self._post(mix.parser)
        layers = layers_of(self.outputs(mix.input, mix.engine), 0)
        own, other = post.params.per_class_threshold.copy(), self._post(mix.threshold).params
        common = min(len(own), len(other.per_class_threshold))
        own[:common] = other.per_class_threshold[:common]
        assert model.parser is not None  # a detector has one
        params = replace(post.params, per_class_threshold=own)
        call = partial(model.parser.parser, layers, self.sides[mix.input].model.network, params)
        try:
            detections: Detections = self._times.timed(ChainStage.PARSER, mix.parser, call)
        except ParserError as error:
            self.refused.setdefault(mix.parser, str(error))
            return Detections.empty()
        return detections

    def _cluster(self, mix: Mix) -> Detections:
        clusterer = Clusterer(self.params(mix.threshold, mix.cluster))
        call = partial(clusterer, self.parsed(mix))
        return self._times.timed(ChainStage.CLUSTER, mix.cluster, call).detections

    def _attach(self, mix: Mix) -> Scored:
        attacher, boxes = self._post(mix.attach).attacher, self.clustered(mix)
        classes = len(attacher.params.filters)
        if classes < len(self._post(mix.cluster).clusterer.params.thresholds):
            boxes = boxes.select(boxes.class_ids < classes)
        meta, transform = frame_meta(self.frame), self.scaled(mix.input)[1]
        call = partial(attacher, boxes, transform, meta)
        objects = self._times.timed(ChainStage.ATTACH, mix.attach, call).detections
        ids, scores = objects.class_ids, objects.scores
        return Scored.of(objects.boxes, ids, scores, angles=objects.angles)

    def _classify(self, post: ClassifierPostprocessor, mix: Mix) -> Scored:
        transform = self.scaled(mix.input)[1]
        items = Items([frame_meta(self.frame)], [self.frame], transforms=[transform])
        steps = [ItemSteps()]
        call = partial(post.attach, self.outputs(mix.input, mix.engine), items, steps)
        self._times.timed(ChainStage.PARSER, mix.parser, call)
        if steps[0].error is not None:
            self.refused.setdefault(mix.parser, str(steps[0].error))
        classification = steps[0].classified
        attributes = () if classification is None else classification.labels
        return Scored.of(
            [(2 * a.attribute, 0, 1, 1) for a in attributes],
            [a.attribute * _VALUES + a.value for a in attributes],
            [a.confidence for a in attributes],
        )


def class_names(side: Side) -> dict[int, str]:
    """Class id -> name; of a classifier each value of each attribute is a class."""
    labels = side.model.labels
    if isinstance(side.model.postprocessor, ClassifierPostprocessor):
        return {
            attribute * _VALUES + value: name
            for attribute, names in enumerate(labels.records)
            for value, name in enumerate(names)
        }
    return dict(enumerate(labels.detector))
