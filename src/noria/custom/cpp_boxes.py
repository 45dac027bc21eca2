"""Detector and instance parsers of a C++ library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.notices import Notice
from noria.custom.box_layout import LayoutDecision
from noria.custom.cpp_function import FAILURES, CppFunction, size_of
from noria.custom.validate import (
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    NO_MASK,
    CheckedParser,
    masks_too_large,
    too_many,
)
from noria.meta import DetectionParams, Detections, Layer, NetworkInfo


class _WithThresholds(CppFunction):
    """A function that is given classes and thresholds; its vectors outlive the call."""

    def __init__(self, native: Any, where: str, decisions: list[Notice]) -> None:
        super().__init__(native, where)
        self._decisions = decisions
        self._params: DetectionParams | None = None
        self._said_class = False

    def set_params(self, params: DetectionParams) -> None:
        """Hand over the thresholds if they are others than before."""
        if params is not self._params:
            pre = params.per_class_threshold.tolist()
            post = params.per_class_post_threshold.tolist() or [0.0] * len(pre)
            self.native.set_params(params.num_classes, pre, post)
            self._params = params

    def without_wild_classes(self, detections: Detections) -> Detections:
        """Without ids beyond the signed range: unsigned in C++, and no configuration has as many
        classes. Source: custom-library spec 2.3.
        """
        ids = detections.class_ids
        keep = ids >= 0
        if not self._said_class:
            self._said_class = True
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
        self.calls: Any = _native.DetectorCalls(native, self.lock)

    def parse(
        self,
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: DetectionParams,
        *,
        kept: bool = False,
    ) -> tuple[Detections, bool]:
        """Call the function on one frame.

        Args:
            kept: it was called already, by `DetectorCalls`, which kept the result.

        Returns:
            What it found, and whether all values are known to be finite.

        Raises:
            ParserReturnedFalse: it returned false.
            ParserError: it threw, returned what cannot be boxes, or a layer cannot be passed to it.
        """
        if type(layers) is not dict:
            layers = dict(layers)
        with self.lock:
            if not kept:
                self.enter()
            try:
                self.set_params(params)
                self.set_layers(layers)
                how = (*size_of(network), *self.box_words, MAX_OBJECTS)
                found = self.native.parse(layers, *how, kept=kept)
                if self.box_words[0]:
                    self.calls.learn(network, params, layers, *how)
            except FAILURES as error:
                raise self.failed(error) from error
            finally:
                self.lock.inside = False
        if found is False:
            found = self._parse_converted(layers, network, params)
        if found is None:
            raise self.returned_false()
        if len(found) == 2:
            found = self._decoded(found, network, params)
        boxes, scores, ids, angles, sound = found
        detections = Detections.unchecked(boxes, scores, ids, angles=angles)
        if sound or int(ids.min()) >= 0:
            return detections, sound
        return self.without_wild_classes(detections), False

    def _parse_converted(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Any:
        def call(tensors: list[npt.NDArray[Any]], types: list[int]) -> Any:
            self.set_params(params)
            return self.native.call(tensors, types, *size_of(network))

        return self.invoke(layers, call)

    def _decoded(
        self, left: tuple[npt.NDArray[np.uint8], int], network: NetworkInfo, params: DetectionParams
    ) -> Any:
        data, capacity = left
        if data.size > 28 * MAX_OBJECTS:
            words = self.box_words[0]
            raise too_many(data.size // (4 * words or 28), self.where, exact=words > 0)
        layout = 28
        if data.size:
            layout = self._layout.of_frame(data, capacity, network, params, self.where)
        return _native.decode_boxes(data, layout // 4, self._rotation)

    @property
    def box_words(self) -> tuple[int, bool]:
        """See `CheckedCppParser`."""
        layout = self._layout
        words = layout.current // 4 if layout.certain and layout.current else 0
        return words, self._rotation and words == 7


class CheckedCppParser(CheckedParser):
    """`CheckedParser` of a C++ function, whose values were looked at while they were decoded."""

    __slots__ = ("_cpp",)

    def __init__(self, parser: CppBoxParser) -> None:
        super().__init__(lambda *arguments: parser.parse(*arguments)[0], parser.where)
        self._cpp = parser
        self.set_quick(parser.calls)

    def further(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """A call that is not like the last one."""
        return self._checked(*self._cpp.parse(layers, network, params), params)

    def finish(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """A call that was done natively, and whose result is not just sound boxes."""
        return self._checked(*self._cpp.parse(layers, network, params, kept=True), params)

    def _checked(self, detections: Detections, sound: bool, params: DetectionParams) -> Detections:
        if sound and len(detections.scores) <= MAX_OBJECTS:
            return detections
        return self.check(detections, params)

    @property
    def native(self) -> Any:
        """The `DetectorParser`, as the last call left it."""
        return self._cpp.native

    @property
    def box_words(self) -> tuple[int, bool]:
        """32-bit words of a box (0 while that is not certain), and whether the last is an angle."""
        return self._cpp.box_words


class CppInstanceParser(_WithThresholds):
    """One instance parser of a C++ library; masks are copied, and the library's deleted at once."""

    check_macro = "CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE"

    def parse(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> tuple[Detections, bool, tuple[int, int]]:
        """Call the function on one frame.

        Returns:
            What it found, whether all boxes and scores are finite, and how many masks were left
            out: those with values that are not, and those whose mask_size contradicts their width
            and height.

        Raises:
            ParserReturnedFalse: it returned false.
            ParserError: it threw, returned what cannot be objects, masks of absurd size, or a layer
                cannot be passed to it.
        """

        def call(tensors: list[npt.NDArray[Any]], types: list[int]) -> Any:
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
        return detections, sound, (broken, odd)


class CheckedCppInstances(CheckedParser):
    """`CheckedParser` of a C++ instance parser."""

    __slots__ = ("_cpp",)

    def __init__(self, parser: CppInstanceParser) -> None:
        super().__init__(lambda *arguments: parser.parse(*arguments)[0], parser.where)
        self._cpp = parser

    def further(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """See `CheckedParser`."""
        detections, sound, (broken, odd) = self._cpp.parse(layers, network, params)
        count = len(detections.scores)
        if broken:
            self.say_broken_masks(broken, count, "NaN or infinite values")
        if odd:
            self.say_broken_masks(odd, count, "a mask_size that is not 4 * width * height")
        return detections if sound else self.check(detections, params)
