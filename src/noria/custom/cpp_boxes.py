"""Detector and instance parsers of a C++ library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.notices import Notice
from noria.custom.box_layout import LayoutDecision
from noria.custom.cpp_function import CppFunction, Tensors, size_of
from noria.custom.validate import (
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    NO_MASK,
    DecodedBoxes,
    masks_too_large,
    too_many,
)
from noria.meta import DetectionParams, Detections, Layer, NetworkInfo


class _WithThresholds(CppFunction):
    """A function that takes classes and thresholds; their vectors outlive the call."""

    def __init__(self, native: Any, where: str, decisions: list[Notice]) -> None:
        super().__init__(native, where)
        self._decisions = decisions
        self._params: DetectionParams | None = None
        self._warned_of_class = False

    def set_params(self, params: DetectionParams) -> None:
        """Hand over the thresholds if they changed."""
        if params is not self._params:
            pre = params.per_class_threshold.tolist()
            post = params.per_class_post_threshold.tolist() or [0.0] * len(pre)
            self.native.set_params(params.num_classes, pre, post)
            self._params = params

    def without_wild_classes(self, detections: Detections) -> Detections:
        """Drop boxes with class ids beyond the signed range.

        Ids are unsigned in C++, and no configuration has as many classes. Source: custom-library
        spec 2.3.
        """
        ids = detections.class_ids
        keep = ids >= 0
        if not self._warned_of_class:
            self._warned_of_class = True
            message = (
                f"{len(ids) - int(np.count_nonzero(keep))} of {len(ids)} boxes of a frame had "
                f"class ids above 2147483647, the first {int(ids[~keep][0]) & 0xFFFFFFFF}, and "
                "were dropped as classes that are not configured"
            )
            self._decisions.append(Notice("warning", message, where=self.where))
        return detections.select(keep)


class CppBoxParser(_WithThresholds):
    """One detector parser of a C++ library, its values not yet checked."""

    def __init__(
        self,
        native: Any,
        where: str,
        layout: LayoutDecision,
        decisions: list[Notice],
        *,
        rotation: bool,
    ) -> None:
        super().__init__(native, where, decisions)
        self._layout = layout
        self._rotation = rotation

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        """Call the function on one frame.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, returned something that cannot be boxes, or a layer cannot be
                passed to it.
        """
        layout = self._layout
        words = layout.current // 4 if layout.certain and layout.current else 0
        rotation = self._rotation and words == 7

        def call(tensors: Tensors, types: list[int]) -> Any:
            self.set_params(params)
            return self.native.call(tensors, types, *size_of(network), words, rotation, MAX_OBJECTS)

        found: Any = self.invoke(layers, call)
        if len(found) == 2:
            data, capacity = found
            found = self._decoded(data, capacity, words, network, params)
        boxes, scores, ids, angles, sound = found
        detections = Detections.unchecked(boxes, scores, ids, angles=angles)
        if not sound and int(ids.min()) < 0:
            detections = self.without_wild_classes(detections)
        return DecodedBoxes(detections, sound)

    def _decoded(
        self,
        data: npt.NDArray[np.uint8],
        capacity: int,
        words: int,
        network: NetworkInfo,
        params: DetectionParams,
    ) -> Any:
        """Decode boxes of an uncertain layout, or that are too many or not sound."""
        if data.size > 28 * MAX_OBJECTS:
            raise too_many(data.size // (4 * words or 28), self.where, exact=words > 0)
        layout = 28
        if data.size:
            layout = self._layout.of_frame(data, capacity, network, params, self.where)
        return _native.decode_boxes(data, layout // 4, self._rotation)


class CppInstanceParser(_WithThresholds):
    """One instance parser of a C++ library, its values not yet checked.

    Masks are copied, and the library's deleted at once.
    """

    check_macro = "CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE"

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        """Call the function on one frame.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, returned something that cannot be objects, masks of absurd size,
                or a layer cannot be passed to it.
        """

        def call(tensors: Tensors, types: list[int]) -> Any:
            self.set_params(params)
            return self.native.call(
                tensors, types, *size_of(network), MAX_OBJECTS, MAX_MASK_PIXELS, MAX_MASKS_PIXELS
            )

        result = self.invoke(layers, call)
        if isinstance(result, int):
            raise too_many(result, self.where)
        boxes, scores, ids, sound, masks, (broken, odd, largest, total) = result
        if largest > MAX_MASK_PIXELS or total > MAX_MASKS_PIXELS:
            raise masks_too_large(largest, total, self.where)
        some = any(mask is not None for mask in masks)
        detections = Detections.unchecked(
            boxes,
            scores,
            ids,
            masks=[NO_MASK if mask is None else mask for mask in masks] if some else None,
        )
        if not sound and int(ids.min()) < 0:
            detections = self.without_wild_classes(detections)
        return DecodedBoxes(detections, sound, broken, odd)
