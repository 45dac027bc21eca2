"""From output tensors to class maps of frames, objects or regions."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from headrace._core.errors import ParserError
from headrace.config.enums import Generation
from headrace.infer.geometry import ScaleTransform
from headrace.infer.items import Items, ItemSteps
from headrace.infer.postprocess import Postprocessor
from headrace.infer.record import Record
from headrace.meta import NetworkInfo, Segmentation, SegmentationMeta, SegmentationParams
from headrace.meta.layers import SegmentationParser, layers_of

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config import ModelConfig
    from headrace.infer.watch import Watch


class SegmentationPostprocessor(Postprocessor):
    """Turns outputs into class maps of frames, objects or regions. Source: spec C.2.

    Attributes:
        params: what the parser is given.
    """

    _parser: SegmentationParser

    def __init__(
        self,
        cfg: ModelConfig,
        network: NetworkInfo,
        parser: SegmentationParser,
        *,
        labels: Sequence[str],
        generation: Generation,
        record: Record,
    ) -> None:
        super().__init__(cfg, network, parser, generation=generation, record=record)
        self._classes = cfg.num_detected_classes
        self._labels = tuple(labels)
        self.params = SegmentationParams(
            cfg.num_detected_classes,
            cfg.segmentation_threshold,
            "NHWC" if cfg.segmentation_output_order.name == "NHWC" else "NCHW",
            self._labels,
        )

    def attach(
        self,
        outputs: dict[str, Array],
        items: Items,
        steps: Sequence[ItemSteps] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """See `Postprocessor.attach`."""
        times = self._record.times
        for i, (meta, valid) in enumerate(zip(items.metas, items.valid(), strict=True)):
            if not valid:
                continue
            t0 = perf_counter()
            try:
                parsed = self._parser(layers_of(outputs, i), self._network, self.params)
            except ParserError as error:
                self._record.parser_failed(error, meta, self._component_id)
                if steps is not None:
                    steps[i].error = error
                continue
            t1 = perf_counter()
            self._record.results["class_maps"] += 1
            self._record.tally.maps += 1
            self._record.tally.blank_maps += int(parsed.class_map.max(initial=-1)) < 0
            result = self._meta(parsed, items.transform(i))
            if steps is not None:
                steps[i].segmentation = result
            if items.rois is not None:
                items.rois[i].segmentations.append(result)
            elif items.objects is not None:
                meta.objects.segmentations.setdefault(items.objects[i], []).append(result)
            else:
                meta.segmentations.append(result)
            if self._generation != "6.2":
                meta.inferred = True
            times.parse_s += t1 - t0
            times.attach_s += perf_counter() - t1

    def _meta(self, parsed: Segmentation, transform: ScaleTransform) -> SegmentationMeta:
        height, width = parsed.class_map.shape
        sx, sy = width / self._network.width, height / self._network.height
        left, top, w, h = transform.dst
        region = (int(left * sx), int(top * sy), max(1, int(w * sx)), max(1, int(h * sy)))
        classes = self._classes
        if self._generation == "6.2" and parsed.probabilities is not None:
            classes = parsed.probabilities.shape[0 if self.params.order == "NCHW" else -1]
        return SegmentationMeta(
            self._component_id,
            classes,
            parsed.class_map,
            parsed.probabilities,
            region,
            self._labels,
        )
