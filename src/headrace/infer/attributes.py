"""From a classifier's output tensors to attributes of objects, regions and whole frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ParserError
from headrace._core.types import Array
from headrace.config.enums import Generation
from headrace.infer.classify import Attribute, BuiltinClassifier, complete_labels
from headrace.infer.items import Items, ItemSteps
from headrace.infer.postprocess import Postprocessor
from headrace.infer.record import Record
from headrace.infer.selection import Selection, Selector
from headrace.meta import (
    Classification,
    ClassifierMeta,
    ClassifierParams,
    ClassifierParser,
    ClassStyle,
    Detections,
    FrameMeta,
    LabelInfo,
    NetworkInfo,
    Space,
)
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.watch import Watch

FULL_FRAME_CLASS = -1
_FULL_FRAME_STYLES = {FULL_FRAME_CLASS: ClassStyle(border_width=6)}


def _label_info(attribute: Attribute) -> LabelInfo:
    return LabelInfo(*attribute[:3], attribute[3] or "")


def attach_cached(selector: Selector, meta: FrameMeta, selection: Selection) -> None:
    """Attach remembered results to the objects of a frame that are not inferred on now."""
    meta.objects.add_classifiers(selection.cached.tolist(), selector.cached_many(selection))


class ClassifierPostprocessor(Postprocessor):
    """Turns outputs into attributes of objects, regions or whole frames. Source: spec C.3, D.3.

    Args:
        parser: called once per item; None is the built-in one, on whole batches.
        selector: keeps results of tracked objects (secondary mode).

    Attributes:
        params: what the parser is given.
    """

    _parser: ClassifierParser | None

    def __init__(
        self,
        cfg: ModelConfig,
        network: NetworkInfo,
        parser: ClassifierParser | None,
        params: ClassifierParams,
        *,
        selector: Selector | None,
        generation: Generation,
        record: Record,
    ) -> None:
        super().__init__(cfg, network, parser, generation=generation, record=record)
        self._type = cfg.classifier_type or ""
        self.params = params
        self._tally = record.tally.items
        self._builtin = BuiltinClassifier(params, self._tally)
        self._selector = selector

    def attach(
        self,
        outputs: dict[str, Array],
        items: Items,
        steps: Sequence[ItemSteps] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """See `Postprocessor.attach`."""
        times = self._record.times
        t0 = perf_counter()
        results = self._results(outputs, items, steps)
        for step, result in zip(steps or (), results, strict=bool(steps)):
            step.classified = result
        t1 = perf_counter()
        self._remember(results, items)
        if items.objects is not None and items.rois is None:
            self._attach_objects(results, items)
        else:
            self._attach_others(results, items)
        times.parse_s += t1 - t0
        times.attach_s += perf_counter() - t1

    def _results(
        self,
        outputs: dict[str, Array],
        items: Items,
        steps: Sequence[ItemSteps] | None = None,
    ) -> list[ClassifierMeta | None]:
        """Metadata to attach to each item: None where no attribute or no text was found."""
        valid, component, kind = items.valid(), self._component_id, self._type
        if self._parser is None:
            try:
                metas = self._builtin.metas(outputs, component, kind)
            except ParserError as error:
                for meta in items.metas:
                    self._record.parser_failed(error, meta, self._component_id)
                for step in steps or ():
                    step.error = error
                return [None] * len(items)
            if not all(valid):
                metas = [meta if ok else None for meta, ok in zip(metas, valid, strict=True)]
            self._tally.came(metas)
            return metas
        parsed = [
            self._parse(outputs, items, i, steps[i] if steps else None) for i in range(len(items))
        ]
        classifier_metas = [
            ClassifierMeta(component, tuple(map(_label_info, c.attributes)), c.text, kind)
            if ok and c.attributes and c.text
            else None
            for c, ok in zip(parsed, valid, strict=True)
        ]
        self._tally.silent += classifier_metas.count(None)
        self._tally.came(classifier_metas)
        return classifier_metas

    def remember_outputs(self, outputs: dict[str, Array], items: Items) -> None:
        """Parse and remember, attaching nothing: an asynchronous classifier's `attach`."""
        self._remember(self._results(outputs, items), items)

    def _remember(self, results: Sequence[ClassifierMeta | None], items: Items) -> None:
        """Replace the remembered results of tracked objects, also by an empty one.

        Objects that are not inferred on this time get what is remembered when their turn comes
        among the items. Source: spec D.3.
        """
        self._record.results["labelled"] += len(results) - results.count(None)
        if self._selector is None:
            return
        waiting = deque(items.cached)
        start = 0
        for selection, first, count in items.parts:
            while waiting and waiting[0][0] <= start:
                attach_cached(self._selector, *waiting.popleft()[1:])
            self._selector.store_many(selection, results[start : start + count], first)
            start += count
        for _, meta, selection in waiting:
            attach_cached(self._selector, meta, selection)

    def _parse(
        self,
        outputs: dict[str, Array],
        items: Items,
        index: int,
        step: ItemSteps | None,
    ) -> Classification:
        assert self._parser is not None
        if not items.valid()[index]:
            return Classification()
        try:
            classification = self._parser(layers_of(outputs, index), self._network, self.params)
        except ParserError as error:
            self._record.parser_failed(error, items.metas[index], self._component_id)
            if step is not None:
                step.error = error
            return Classification()
        return complete_labels(classification, self.params, self._generation)

    def _attach_objects(self, results: Sequence[ClassifierMeta | None], items: Items) -> None:
        """Results of objects, one frame after the other."""
        assert items.objects is not None
        valid = items.valid()
        for start, end in items.by_frame():
            meta = items.metas[start]
            if self._generation != "6.2" and any(valid[start:end]):
                meta.inferred = True
            meta.objects.add_classifiers(items.objects[start:end], results[start:end])

    def _attach_others(self, results: Sequence[ClassifierMeta | None], items: Items) -> None:
        """Results of whole frames, and of regions that the caller prepared."""
        for i, (meta, valid) in enumerate(zip(items.metas, items.valid(), strict=True)):
            if not valid:
                continue
            if self._generation != "6.2":
                meta.inferred = True
            if (result := results[i]) is not None:
                self._attach_one(result, items, i, meta)

    def _attach_one(
        self, result: ClassifierMeta, items: Items, index: int, meta: FrameMeta
    ) -> None:
        if items.rois is not None:
            items.rois[index].classifiers.append(result)
        shown = items.object_of(index)
        if shown >= 0:
            meta.objects.add_classifier(shown, result)
        elif items.rois is None:
            self._add_full_frame(result, meta)

    def _add_full_frame(self, result: ClassifierMeta, meta: FrameMeta) -> None:
        """A primary classifier's result is a new object as large as the frame."""
        objects = meta.objects
        detections = Detections.unchecked(
            np.array([[0, 0, meta.width, meta.height]], np.float32),
            np.zeros(1, np.float32),
            np.full(1, FULL_FRAME_CLASS, np.int32),
            space=Space.FRAME,
        )
        component = self._component_id if self._generation != "6.2" else 0
        objects.append(detections, component, styles=_FULL_FRAME_STYLES)
        objects.add_classifier(len(objects) - 1, result)
        objects.texts[len(objects) - 1] = " " + result.text
