"""Detectors and instance masks: parse, threshold and cluster, attach. Source: spec B, C.1."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import ParserError
from noria.infer.attach import Attacher, Generation
from noria.infer.cluster import Clusterer
from noria.infer.items import Items, layers_of
from noria.infer.record import Record
from noria.meta import BoxParser, DetectionParams, Detections, FrameMeta, Layer, NetworkInfo

if TYPE_CHECKING:
    from noria.config import ModelConfig


class DetectorPostprocessor:
    """Turns outputs into objects of their frames.

    Args:
        parser: called once per item.
        source: where it comes from, for notices.
    """

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
    ) -> None:
        self._parser = parser
        self._source = source
        self._network = network
        self._record = record
        self._clusterer = Clusterer(cfg)
        self._attacher = Attacher(cfg, labels, generation=generation)
        per_class = cfg.per_class
        self._params = DetectionParams(
            cfg.num_detected_classes,
            np.array([c.pre_cluster_threshold for c in per_class], np.float32),
            np.array([c.post_cluster_threshold for c in per_class], np.float32),
            tuple(labels),
        )
        self._unjudged = True
        self._classes_fit = True

    def attach(self, outputs: dict[str, npt.NDArray[Any]], items: Items) -> None:
        """See `Postprocessor.attach`."""
        times, results = self._record.times, self._record.results
        for i, (meta, valid) in enumerate(zip(items.metas, items.valid(), strict=True)):
            if not valid:
                continue
            t0 = perf_counter()
            detections = self._parse(layers_of(outputs, i), meta)
            t1 = perf_counter()
            kept = self._clusterer(detections).detections
            t2 = perf_counter()
            attached = self._attacher(
                kept,
                items.transform(i),
                meta,
                roi=items.roi_rect(i),
                parent=items.parent_rect(i),
                parent_index=items.object_of(i),
            )
            results["parsed"] += len(detections)
            results["clustered"] += len(kept)
            results["attached"] += len(attached.kept)
            times.parse_s += t1 - t0
            times.cluster_s += t2 - t1
            times.attach_s += perf_counter() - t2

    def _parse(self, layers: dict[str, Layer], meta: FrameMeta) -> Detections:
        try:
            found = self._parser(layers, self._network, self._params)
        except ParserError as error:
            self._record.parser_failed(error, meta)
            return Detections.empty()
        if len(found):
            if self._unjudged:
                self._judge_scale(found)
            if self._classes_fit and int(found.class_ids.max()) >= self._params.num_classes > 0:
                self._classes_fit = False
                text = f"boxes of class {int(found.class_ids.max())} and others outside 0 to"
                text += f" {self._params.num_classes - 1} are dropped: num-detected-classes="
                self._record.warn(f"{text}{self._params.num_classes}", self._source)
        return found

    def _judge_scale(self, found: Detections) -> None:
        """Say once if the first boxes a parser finds look like 0..1 instead of network pixels."""
        self._unjudged = False
        if self._network.width > 8 and float(np.abs(found.boxes).max()) <= 1.5:
            text = f"all boxes lie within {found.boxes.min():.3g} and {found.boxes.max():.3g}"
            text += f": parsers return pixels of the {self._network.width}x{self._network.height}"
            text += " network input, so multiply boxes in 0..1 by its size"
            self._record.warn(text, self._source)
