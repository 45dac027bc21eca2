"""Classifiers: attributes of an object, a region, or the whole frame. Source: spec C.3, D.3."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import ParserError
from noria.infer.attach import Generation
from noria.infer.classify import Attribute, BuiltinClassifier, complete_labels
from noria.infer.items import Items, layers_of
from noria.infer.record import Record
from noria.infer.selection import Selection, Selector
from noria.meta import (
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

if TYPE_CHECKING:
    from noria.config import ModelConfig

FULL_FRAME_CLASS = -1
_FULL_FRAME_STYLES = {FULL_FRAME_CLASS: ClassStyle(border_width=6)}


def _label_info(attribute: Attribute) -> LabelInfo:
    return LabelInfo(*attribute[:3], attribute[3] or "")


def attach_cached(selector: Selector, meta: FrameMeta, selection: Selection) -> None:
    """Attach remembered results to the objects of a frame that are not inferred on now."""
    meta.objects.add_classifiers(selection.cached.tolist(), selector.cached_many(selection))


class ClassifierPostprocessor:
    """Turns outputs into classifications.

    Args:
        parser: called once per item; None is the built-in one, on whole batches.
        selector: keeps results of tracked objects (secondary mode).
    """

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
        self._component_id = cfg.component_id
        self._type = cfg.classifier_type or ""
        self._network = network
        self._parser = parser
        self._params = params
        self._builtin = BuiltinClassifier(params)
        self._selector = selector
        self._generation = generation
        self._record = record

    def attach(self, outputs: dict[str, npt.NDArray[Any]], items: Items) -> None:
        """See `Postprocessor.attach`."""
        times = self._record.times
        t0 = perf_counter()
        results = self._results(outputs, items)
        self._record.results["labelled"] += len(results) - results.count(None)
        t1 = perf_counter()
        self._remember(results, items)
        if items.objects is not None and items.rois is None:
            self._attach_objects(results, items)
        else:
            self._attach_others(results, items)
        times.parse_s += t1 - t0
        times.attach_s += perf_counter() - t1

    def _results(
        self, outputs: dict[str, npt.NDArray[Any]], items: Items
    ) -> list[ClassifierMeta | None]:
        """Metadata to attach to each item: None where no attribute or no text was found."""
        valid = items.valid()
        component, kind = self._component_id, self._type
        if self._parser is None:
            try:
                metas = self._builtin.metas(outputs, component, kind)
            except ParserError as error:
                for meta in items.metas:
                    self._record.parser_failed(error, meta)
                return [None] * len(items)
            if not all(valid):
                metas = [meta if ok else None for meta, ok in zip(metas, valid, strict=True)]
            return metas
        found = [self._parse(outputs, items, i) for i in range(len(items))]
        return [
            ClassifierMeta(component, tuple(map(_label_info, c.attributes)), c.text, kind)
            if ok and c.attributes and c.text
            else None
            for c, ok in zip(found, valid, strict=True)
        ]

    def remember_outputs(self, outputs: dict[str, npt.NDArray[Any]], items: Items) -> None:
        """Parse and remember, attaching nothing: an asynchronous classifier's `attach`."""
        self._remember(self._results(outputs, items), items)

    def _remember(self, results: Sequence[ClassifierMeta | None], items: Items) -> None:
        """Replace the remembered results of tracked objects, also by an empty one.

        Objects that are not inferred on this time get what is remembered when their turn comes
        among the items. Source: spec D.3.
        """
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
        self, outputs: dict[str, npt.NDArray[Any]], items: Items, index: int
    ) -> Classification:
        assert self._parser is not None
        if not items.valid()[index]:
            return Classification()
        try:
            found = self._parser(layers_of(outputs, index), self._network, self._params)
        except ParserError as error:
            self._record.parser_failed(error, items.metas[index])
            return Classification()
        return complete_labels(found, self._params, self._generation)

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
            result = results[i]
            if result is not None:
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
        rect = np.array([[0, 0, meta.width, meta.height]], np.float32)
        found = Detections.unchecked(
            rect,
            np.zeros(1, np.float32),
            np.full(1, FULL_FRAME_CLASS, np.int32),
            space=Space.FRAME,
        )
        component = self._component_id if self._generation != "6.2" else 0
        objects.append(found, component, styles=_FULL_FRAME_STYLES)
        objects.add_classifier(len(objects) - 1, result)
        objects.texts[len(objects) - 1] = " " + result.text
