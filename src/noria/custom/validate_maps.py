"""Checks of the results of users' classifier and segmentation parsers."""

from __future__ import annotations

from operator import index as as_index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from noria.custom.user_calls import Checked
from noria.meta import Classification, ClassifierParams, Segmentation, SegmentationParams

MAX_ATTRIBUTES = 10_000
"""More attributes than this of one item are refused."""

MAX_TEXT = 1 << 20
"""Longer texts than this, in characters, are refused."""

MAX_MAP_PIXELS = 1 << 26
"""A class map of more pixels than this is refused: 8192 x 8192."""

_MAX_NUMBER = 2**32 - 1  # unsigned in C++


class CheckedClassifier(Checked[ClassifierParams, Classification]):
    """A `ClassifierParser` with sound results.

    It returns attributes of plain integers from 0 on, a finite confidence and a label or None.
    """

    __slots__ = ()

    wanted: ClassVar[type] = Classification
    nothing: ClassVar[str] = "for an item without attributes return Classification()"

    def check(self, returned: Any, params: ClassifierParams) -> Classification:
        """See `Checked`."""
        self.require_type(returned)
        given, text = returned.attributes, returned.text
        if not isinstance(text, str):
            self.refuse(f"a text of type {type(text).__name__}", "a string, empty for none")
        if len(text) > MAX_TEXT:
            self.refuse(f"a text of {len(text):,} characters", f"at most {MAX_TEXT:,}")
        if not isinstance(given, list | tuple):
            self.refuse(f"attributes of type {type(given).__name__}", "a list")
        if len(given) > MAX_ATTRIBUTES:
            self.refuse(f"{len(given):,} attributes for one item", f"at most {MAX_ATTRIBUTES:,}")
        attributes = [self._attribute(i, entry) for i, entry in enumerate(given)]
        if dropped := sum(not np.isfinite(a[2]) for a in attributes):
            self.warn_once(
                "nan",
                f"{dropped} of {len(attributes)} attributes of an item had a NaN or infinite "
                "confidence and were removed; later items are treated alike without a further word",
            )
            attributes = [a for a in attributes if np.isfinite(a[2])]
        return Classification(attributes, text)

    def _attribute(self, place: int, entry: Any) -> tuple[int, int, float, str | None]:
        expected = "(attribute, value, confidence, label or None), or use Classification.add()"
        try:
            attribute, value, confidence, label = entry
            result = (as_index(attribute), as_index(value), float(confidence), label)
        except (TypeError, ValueError):
            self.refuse(f"attribute {place} as {_short(entry)}", expected)
        if not (label is None or isinstance(label, str)):
            self.refuse(f"attribute {place} with a label of type {type(label).__name__}", expected)
        if not 0 <= min(result[:2]) <= max(result[:2]) <= _MAX_NUMBER:
            self.refuse(
                f"attribute {place} with number {result[0]} and value {result[1]}",
                "numbers of 0 and above",
            )
        return result


class CheckedSegmentation(Checked[SegmentationParams, Segmentation]):
    """A `SegmentationParser` with sound results.

    It returns a class map of int32 from -1 to the last class.
    """

    __slots__ = ()

    wanted: ClassVar[type] = Segmentation
    nothing: ClassVar[str] = "without any class return a class_map of -1"

    def check(self, returned: Any, params: SegmentationParams) -> Segmentation:
        """See `Checked`."""
        self.require_type(returned)
        class_map = self._array(returned.class_map, "class_map", "biu", 2)
        if not 0 < class_map.size <= MAX_MAP_PIXELS:
            self.refuse(
                f"a class_map of shape {class_map.shape}", f"1 to {MAX_MAP_PIXELS:,} pixels"
            )
        probabilities = returned.probabilities
        if probabilities is not None:
            given = self._array(probabilities, "probabilities", "f", None)
            probabilities = given.astype(np.float32, copy=False)
        return Segmentation(self._within(class_map, params.num_classes), probabilities)

    def _array(self, value: Any, name: str, kinds: str, axes: int | None) -> npt.NDArray[Any]:
        wanted = "integers (height, width)" if axes else "floating point numbers, or None"
        if not isinstance(value, np.ndarray):
            self.refuse(f"a {name} of type {type(value).__name__}", f"a NumPy array of {wanted}")
        if value.dtype.kind not in kinds or (axes and value.ndim != axes):
            self.refuse(f"a {name} of {value.dtype} and shape {value.shape}", wanted)
        return value

    def _within(self, class_map: npt.NDArray[Any], classes: int) -> npt.NDArray[np.int32]:
        """As int32, pixels of a class that is not configured as -1 (0 classes: not counted)."""
        classes = classes or np.iinfo(np.int32).max
        low, high = int(class_map.min()), int(class_map.max())
        if low < -1 or high >= classes:
            worst = high if high >= classes else low
            self.warn_once(
                "class",
                f"class {worst} in a class map, num-detected-classes={classes}: such pixels count "
                "as -1, no class; later frames are treated alike without a further word",
            )
            known = (class_map >= -1) & (class_map < classes)
            class_map = np.where(known, class_map.astype(np.int64), -1)
        return np.ascontiguousarray(class_map, np.int32)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
