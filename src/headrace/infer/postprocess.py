"""From output tensors to metadata: parse, attach. One class for each kind of network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace._core.errors import ParserError
from headrace._core.types import Array
from headrace.config.enums import Generation
from headrace.infer.attach import Attacher, Destination
from headrace.infer.cluster import Clusterer
from headrace.infer.items import Items, ItemSteps
from headrace.infer.parsers import BuiltinParser, parse_coverage_bbox
from headrace.infer.record import Record
from headrace.infer.tally import HALVINGS, MEASURED, BoxTally
from headrace.infer.tally.box_losses import cut_boxes
from headrace.meta import (
    BoxParser,
    DetectionParams,
    Detections,
    FrameMeta,
    Layer,
    NetworkInfo,
    TensorOutput,
)
from headrace.meta.detections import BatchDetections, FloatArray, IntArray, joined
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.watch import Watch


class _Place(NamedTuple):
    """An item among those of its run, with the outputs of all of them."""

    items: Items
    at: int
    outputs: dict[str, Array]


class _Part(NamedTuple):
    """Boxes of items, and the place of each item."""

    boxes: BatchDetections
    places: list[_Place]


class Postprocessor(ABC):
    """Parses the outputs of one engine batch and attaches the results. One thread at a time.

    Args:
        parser: called once per item.
    """

    def __init__(
        self,
        cfg: ModelConfig,
        network: NetworkInfo,
        parser: object,
        *,
        generation: Generation,
        record: Record,
    ) -> None:
        self._component_id = cfg.component_id
        self._network = network
        self._parser = parser
        self._generation = generation
        self._record = record

    @abstractmethod
    def attach(
        self,
        outputs: dict[str, Array],
        items: Items,
        steps: Sequence[ItemSteps] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Attach the results of N items to their frames, objects or regions.

        Args:
            outputs: (N, ...) arrays in binding order.
            items: what the rows are about.
            steps: N records to fill with the decisions on each item.
            watch: looks at the boxes of the first item.
        """


class DetectorPostprocessor(Postprocessor):
    """Turns outputs into objects of their frames, with or without masks. Source: spec B, C.1.

    Args:
        parser: called once per item.
        source: where it comes from, for notices.

    Attributes:
        params: what the parser is given.
        clusterer: thresholds and clustering.
        attacher: mapping to the frame and filters.
    """

    _parser: BoxParser

    def __init__(
        self,
        cfg: ModelConfig,
        network: NetworkInfo,
        parser: BoxParser,
        source: str,
        *,
        labels: Sequence[str],
        generation: Generation,
        record: Record,
        clip_to_roi: bool,
    ) -> None:
        super().__init__(cfg, network, parser, generation=generation, record=record)
        self._source = source
        self._cfg = cfg
        self.clusterer = Clusterer(cfg)
        self.attacher = Attacher(cfg, labels, generation=generation, clip_to_roi=clip_to_roi)
        per_class = cfg.per_class
        self._tally = BoxTally(self.clusterer.params, per_class, labels)
        self._tally.parser = source
        self._tally.visible = parser is parse_coverage_bbox or isinstance(parser, BuiltinParser)
        record.tally.boxes.append(self._tally)
        self.params = DetectionParams(
            cfg.num_detected_classes,
            np.array([c.pre_cluster_threshold for c in per_class], np.float32),
            np.array([c.post_cluster_threshold for c in per_class], np.float32),
            tuple(labels),
        )
        self._fitting = cfg.maintain_aspect_ratio, cfg.symmetric_padding
        self._keeps_raw = cfg.output_tensor_meta
        self._unjudged = True
        self._classes_fit = True

    @property
    def left(self) -> int:
        """Boxes that came out of clustering in this run so far."""
        return self._tally.left

    def attach(
        self,
        outputs: dict[str, Array],
        items: Items,
        steps: Sequence[ItemSteps] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """See `Postprocessor.attach`."""
        start = perf_counter()
        for part in self._parsed(outputs, items, steps):
            step = None if steps is None else steps[part.places[0].at]
            self._attach(part, start, step, watch)
            start = perf_counter()

    def attach_all(self, runs: Sequence[tuple[dict[str, Array], Items]]) -> None:
        """Parse each of several runs alone; cluster and attach the boxes of all at once."""
        start = perf_counter()
        parts = [part for outputs, items in runs for part in self._parsed(outputs, items)]
        if len(parts) > 1 and (boxes := joined([part.boxes for part in parts])) is not None:
            parts = [_Part(boxes, [place for part in parts for place in part.places])]
        for part in parts:
            self._attach(part, start)
            start = perf_counter()

    def _parsed(
        self, outputs: dict[str, Array], items: Items, steps: Sequence[ItemSteps] | None = None
    ) -> list[_Part]:
        """Boxes of the valid items: of all at once, or of each where shapes or steps are kept."""
        if not (indices := items.places()):
            return []
        places = [_Place(items, i, outputs) for i in indices]
        boxes = items.parsed or (None if steps else self._parse_batch(outputs, indices))
        if boxes is None:
            each = [
                BatchDetections.of(
                    self._parse(layers_of(outputs, i), items.metas[i], steps[i] if steps else None)
                )
                for i in indices
            ]
            boxes = None if steps else joined(each)
            if boxes is None:
                return [_Part(part, [at]) for part, at in zip(each, places, strict=True)]
        return [_Part(boxes, places)]

    @property
    def reads_tables(self) -> bool:
        """True if the parser reads tables of whole batches, and nothing else reads the outputs."""
        parser = self._parser
        return not self._keeps_raw and isinstance(parser, BuiltinParser) and parser.reads_batches

    def parse_ahead(self, outputs: dict[str, Array], items: Items) -> None:
        """Parse a run in the engine's thread, so that `attach` need not: several do at once."""
        start = perf_counter()
        items.parsed = self._parse_batch(outputs, items.places())
        with self._record.lock:
            self._record.times.parse_s += perf_counter() - start

    def _parse_batch(self, outputs: dict[str, Array], indices: list[int]) -> BatchDetections | None:
        """Parse the items at `indices` at once; None where the parser does not read batches."""
        if not (indices and isinstance(self._parser, BuiltinParser)):
            return None
        if any(len(data) != len(indices) for data in outputs.values()):
            outputs = {name: data[indices] for name, data in outputs.items()}
        try:
            return self._parser.batch(outputs, self._network, self.params)
        except ParserError:
            return None  # item by item, as each has failed

    def _attach(
        self,
        part: _Part,
        start: float,
        step: ItemSteps | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Cluster and attach the boxes of items, and count the outcomes.

        Args:
            part: the boxes; those of several items have no masks and other shapes.
            start: when parsing began.
            step: gets the decisions on a single item.
            watch: looks at the boxes of the first item.
        """
        parsed, starts, places = part.boxes.boxes, part.boxes.starts, part.places
        metas = [place.items.metas[place.at] for place in places]
        times, results, tally = self._record.times, self._record.results, self._tally
        ends = starts.tolist()
        if step is None or step.error is None:
            for place, (first, end) in zip(places, pairwise(ends), strict=True):
                self._look(parsed, first, end, place)
            self._judge_classes(parsed)
        t1 = perf_counter()
        clustered = self.clusterer(
            parsed,
            starts,
            trace=step is not None,
            tally=tally.clustered,
            stop=self._record.stop,
        )
        if clustered.cut is not None:
            self._record.find(cut_boxes(self._cfg, self._source, clustered.cut, starts, metas))
        kept, kept_ends = clustered.detections, clustered.starts.tolist()
        for k, (first, end) in enumerate(pairwise(ends)):
            if first < end and kept_ends[k] == kept_ends[k + 1]:
                tally.saw(parsed.rows(first, end))
        t2 = perf_counter()
        destinations = [
            Destination(
                items.transform(i),
                meta,
                items.roi_rect(i),
                items.parent_rect(i),
                items.object_of(i),
            )
            for (items, i, _), meta in zip(places, metas, strict=True)
        ]
        before = len(metas[0].objects)
        attached = self.attacher.attach(kept, clustered.starts, destinations, tally=tally.attached)
        if step is not None and step.error is None:
            step.parsed, step.clustered, step.attached = parsed, clustered, attached
            step.first = before
        if self._keeps_raw and kept.raw_masks is not None:
            self._keep_raw(kept.raw_masks, attached.kept, metas[0], before)
        results["parsed"] += len(parsed)
        results["clustered"] += len(kept)
        results["attached"] += len(attached.kept)
        if attached.shifted:
            results["edge_shifted"] += attached.shifted
        if dropped := attached.edge_drops:
            results["edge_dropped"] += dropped
        tally.left += len(kept)
        tally.kept += len(attached.kept)
        attached_ends = attached.starts.tolist()
        if not MEASURED.isdisjoint(attached.reasons.tolist()):
            lost = [all_of - left for all_of, left in zip(kept_ends, attached_ends, strict=True)]
            for (first, end), destination in zip(pairwise(lost), destinations, strict=True):
                if first < end:
                    rows, reasons = attached.dropped[first:end], attached.reasons[first:end]
                    tally.measure(kept, rows, reasons, destination.transform)
        with self._record.lock:
            times.parse_s += t1 - start
        times.cluster_s += t2 - t1
        if watch is not None and places[0].at == 0:
            first_parsed, first_kept = parsed.rows(0, ends[1]), kept.rows(0, kept_ends[1])
            watch.boxes(first_parsed, first_kept, attached_ends[1], metas[0])
        times.attach_s += perf_counter() - t2

    def _keep_raw(
        self, raw: Sequence[FloatArray], kept: IntArray, meta: FrameMeta, first: int
    ) -> None:
        """Attach the `mask` fields that were read as keypoints to their objects, as a tensor.

        Args:
            raw: of the boxes that clustering left.
            kept: the rows of those that were attached.
            meta: of their frame; `first` is the place of the first of them.
        """
        for index, row in enumerate(kept.tolist(), first):
            if raw[row].size:
                layers = {"mask": Layer("mask", raw[row])}
                output = TensorOutput(self._component_id, layers, self._network, *self._fitting)
                meta.objects.tensors.setdefault(index, []).append(output)

    def below(self, layers: dict[str, Layer], floor: float) -> Detections:
        """Boxes below the pre-cluster threshold of their class, as far as the parser returns any.

        It is called once more, with thresholds of at most `floor`.

        Args:
            layers: outputs of one item.
            floor: the lowest score of interest.

        Returns:
            Boxes of the config's classes in network space, empty if the parser refuses.
        """
        own = self.params.per_class_threshold
        try:
            detections = self._parse_at(layers, np.minimum(own, np.float32(floor)))
        except ParserError:
            return Detections.empty()
        inside = (detections.class_ids >= 0) & (detections.class_ids < len(own))
        detections = detections.select(inside)
        return detections.select(
            (detections.scores >= floor) & (detections.scores < own[detections.class_ids])
        )

    def _parse_at(self, layers: dict[str, Layer], thresholds: FloatArray) -> Detections:
        params = replace(self.params, per_class_threshold=thresholds)
        return self._parser(layers, self._network, params)

    def _parse(
        self, layers: dict[str, Layer], meta: FrameMeta, step: ItemSteps | None
    ) -> Detections:
        try:
            detections = self._parser(layers, self._network, self.params)
        except ParserError as error:
            self._record.parser_failed(error, meta, self._component_id)
            if step is not None:
                step.error = error
            return Detections.empty()
        return detections

    def _look(
        self,
        parsed: Detections,
        first: int,
        end: int,
        place: _Place,
    ) -> None:
        """Count an item that was parsed, and look at scores that its thresholds hide.

        Args:
            parsed: boxes of several items; `first` and `end` are the rows of this one.
            place: of the item.
        """
        tally = self._tally
        tally.items += 1
        if first == end:
            tally.empty += 1
            if tally.visible and _seldom(tally.empty):
                self._look_below(layers_of(place.outputs, place.at))
            return
        if tally.visible and _seldom(tally.items) and (missing := tally.missing()):
            self._look_for_missing(layers_of(place.outputs, place.at), missing)
        if self._unjudged:
            self._judge_scale(parsed.boxes[first:end])

    def _look_below(self, layers: dict[str, Layer]) -> None:
        """Find the best score below the thresholds in outputs without a box.

        The thresholds are halved until there are boxes, so that these are few; once there is a best
        score, only better ones are asked for.
        """
        tally, limits = self._tally, self.params.per_class_threshold
        tally.probed += 1
        for n in range(1, HALVINGS + 1) if tally.best is None else (0,):
            lower = limits / np.float32(2**n)
            if tally.best is not None:
                lower = np.minimum(lower, np.float32(tally.best[0]))
            try:
                detections = self._parse_at(layers, lower)
            except ParserError:
                return
            if len(detections):
                tally.saw(detections)
                return

    def _look_for_missing(self, layers: dict[str, Layer], classes: list[int]) -> None:
        """Find the best scores of classes that have a higher threshold than others, and no box."""
        lower = self.params.per_class_threshold.copy()
        lower[classes] = lower.min()
        with suppress(ParserError):
            self._tally.saw_missing(classes, self._parse_at(layers, lower))

    def _judge_classes(self, parsed: Detections) -> None:
        """Say once if boxes have classes that the config does not know."""
        if not (self._classes_fit and len(parsed)):
            return
        highest = int(parsed.class_ids.max())
        if highest >= self.params.num_classes > 0:
            self._classes_fit = False
            text = f"boxes of class {highest} and others outside 0 to"
            text += f" {self.params.num_classes - 1} are dropped: num-detected-classes="
            text += str(self.params.num_classes)
            self._record.warn("classes-dropped", text, self._source)

    def _judge_scale(self, boxes: FloatArray) -> None:
        """Say once if the first boxes a parser finds look like 0..1 instead of network pixels."""
        self._unjudged = False
        if self._network.width > 8 and 0 < float(np.abs(boxes).max()) <= 1.5:
            text = f"all boxes lie within {boxes.min():.3g} and {boxes.max():.3g}"
            text += f": parsers return pixels of the {self._network.width}x{self._network.height}"
            text += " network input, so multiply boxes in 0..1 by its size"
            self._record.warn("boxes-within-1", text, self._source)


def _seldom(count: int) -> bool:
    """Whether outputs are looked at below the thresholds, which takes as long as parsing them.

    The first four, then every eighth, and fewer and fewer: about eight until the count has doubled.
    """
    return count <= 4 or count % max(8, (1 << count.bit_length()) >> 4) == 0
