"""Users' libraries, and the checks of their parsers' results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import index as as_index
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core.errors import HeadraceError, ParserError
from headrace._core.findings import Finding
from headrace._core.text import shortened
from headrace._core.types import Array
from headrace.custom.user_calls import Checked, InputInitializer, ParserKind
from headrace.meta import (
    BoxParser,
    Classification,
    ClassifierParams,
    DetectionParams,
    Detections,
    Segmentation,
    SegmentationParams,
    Space,
)

if TYPE_CHECKING:
    from headrace.engine.session import OutputMemory

MAX_OBJECTS = 1_000_000
"""More boxes than this in one frame are refused: no head has as many candidates, but a parser that
reads past a tensor, or boxes decoded with the wrong stride, easily return more."""

MAX_MASK_PIXELS = 1 << 24
"""A mask of more pixels than this is refused; a mask of a whole 4K frame has half as many."""

MAX_MASKS_PIXELS = 1 << 28
"""The same for all masks of a frame together: 1 GiB."""

MAX_KEYPOINTS = 1 << 12
"""More keypoints of one object than this are refused; a dense face has 478."""

NO_MASK: npt.NDArray[np.float32] = np.empty((0, 0), np.float32)


class DecodedBoxes(NamedTuple):
    """Detections that native code decoded; it looked at their values meanwhile.

    Attributes:
        detections: in network space, arrays well formed.
        sound: all values are finite and no class id is negative; masks are sound, too.
        broken_masks: masks left out because values in them are not finite.
        odd_masks: masks left out because their mask_size contradicts their width and height.
    """

    detections: Detections
    sound: bool
    broken_masks: int = 0
    odd_masks: int = 0


class CheckedParser(Checked[DetectionParams, Detections]):
    """A `BoxParser` with sound results.

    It returns Detections in network space; all coordinates, scores and angles are finite, class ids
    are not negative. A class id above the configured ones is left to thresholding. Masks are finite
    and of sane size, or empty.
    """

    __slots__ = ()

    wanted: ClassVar[type] = Detections
    nothing: ClassVar[str] = "without objects return Detections.empty()"

    def check(self, returned: Any, params: DetectionParams) -> Detections:
        """See `Checked`; sound `DecodedBoxes` need no more checks."""
        if type(returned) is DecodedBoxes:
            result, sound, broken, odd = returned
            if broken:
                self.warn_of_masks(broken, len(result.scores), "NaN or infinite values")
            if odd:
                contradiction = "a mask_size that is not 4 * width * height"
                self.warn_of_masks(odd, len(result.scores), contradiction)
            if sound and len(result.scores) <= MAX_OBJECTS:
                return result
            returned = result
        self.require_type(returned)
        result = returned
        if result.space is not Space.NETWORK:
            self.refuse(
                f"boxes in {result.space} space",
                "boxes in pixels of the network input (Space.NETWORK, the default)",
            )
        if not isinstance(result.masks, list | tuple | np.ndarray | None):
            self.refuse(f"masks of type {type(result.masks).__name__}", "a list of arrays, or None")
        if not _well_formed(result):
            result = self._made_again(result)
        count = len(result.scores)
        if not count:
            return result
        if count > MAX_OBJECTS:
            raise too_many(count, self.where)
        if result.keypoints is not None and result.keypoints.shape[1] > MAX_KEYPOINTS:
            self.refuse(
                f"{result.keypoints.shape[1]:,} keypoints of each object",
                f"at most {MAX_KEYPOINTS:,}",
            )
        if int(result.class_ids.min()) < 0:
            index = int(np.argmin(result.class_ids))
            self.refuse(
                f"class id {int(result.class_ids[index])} (box {index})",
                "class ids of 0 and above",
                "a background class must be left out by the parser",
            )
        finite = np.isfinite(result.boxes).all() and np.isfinite(result.scores).all()
        if result.angles is not None:
            finite = finite and np.isfinite(result.angles).all()
        if result.keypoints is not None:
            finite = finite and np.isfinite(result.keypoints).all()
        if not finite:
            result = self._without_broken(result)
        return result if result.masks is None else self._with_sound_masks(result, result.masks)

    def _made_again(self, result: Detections) -> Detections:
        """Convert arrays that were assigned to the fields after construction."""
        try:
            return Detections(
                result.boxes,
                result.scores,
                result.class_ids,
                result.masks,
                result.angles,
                keypoints=result.keypoints,
            )
        except HeadraceError as error:
            where = f"{self.where}: {error.where}" if error.where else self.where
            raise ParserError(error.finding, where=where, code=ParserError.code) from error

    def _without_broken(self, result: Detections) -> Detections:
        keep = np.isfinite(result.boxes).all(axis=1) & np.isfinite(result.scores)
        if result.angles is not None:
            keep &= np.isfinite(result.angles)
        if result.keypoints is not None:
            keep &= np.isfinite(result.keypoints).all(axis=(1, 2))
        dropped = len(keep) - int(np.count_nonzero(keep))
        self.warn_once(
            "nan",
            f"{dropped} of {len(keep)} boxes of a frame had NaN or infinite coordinates or scores "
            "and were removed; later frames are treated alike without a further word",
        )
        return result.select(keep)

    def _with_sound_masks(
        self, result: Detections, masks: list[npt.NDArray[np.float32]]
    ) -> Detections:
        largest, total = max((m.size for m in masks), default=0), sum(m.size for m in masks)
        if largest > MAX_MASK_PIXELS or total > MAX_MASKS_PIXELS:
            raise masks_too_large(largest, total, self.where)
        broken = [i for i, mask in enumerate(masks) if not np.isfinite(mask).all()]
        if not broken:
            return result
        self.warn_of_masks(len(broken), len(masks), "NaN or infinite values")
        sound = list(masks)
        for i in broken:
            sound[i] = NO_MASK
        return Detections.unchecked(
            result.boxes,
            result.scores,
            result.class_ids,
            masks=sound,
            angles=result.angles,
            keypoints=result.keypoints,
        )

    def warn_of_masks(self, count: int, of: int, what: str) -> None:
        """Warn once that masks were removed from objects, which stay."""
        self.warn_once(
            what,
            f"{count} of {of} masks of a frame had {what}: their objects are kept without a mask; "
            "later frames are treated alike without a further word",
        )


def checked(parser: BoxParser, where: str, *, folder: Path | None = None) -> CheckedParser:
    """Wrap a parser so that its results can be relied on.

    Refused with `ParserError`: an exception, a result that is not `Detections` in network space,
    a negative class id, more than `MAX_OBJECTS` boxes, masks of absurd size. Repaired, with one
    entry in `.notices`: boxes with NaN or infinite coordinates, keypoints, score or angle are
    removed, masks with such values taken from their objects.

    Args:
        parser: as the user wrote it.
        where: file and function, for messages.
        folder: folder of the user's Python code; errors name the line in it that failed.
    """
    return CheckedParser(parser, where, folder)


def too_many(count: int, where: str, *, exact: bool = True) -> ParserError:
    """Make the error for an absurd number of boxes; not `exact`: there are that many or more."""
    return ParserError(
        f"the parser returned {'' if exact else 'at least '}{count:,} boxes for one frame",
        where=where,
        expected=f"at most {MAX_OBJECTS:,}",
        fix="skip candidates below params.per_class_threshold, or check the decoding loop's bounds",
    )


def masks_too_large(largest: int, total: int, where: str) -> ParserError:
    """Make the error for masks of absurd size."""
    return ParserError(
        f"the parser returned masks of {total:,} pixels for one frame, the largest of {largest:,}",
        where=where,
        expected=f"at most {MAX_MASKS_PIXELS:,} together and {MAX_MASK_PIXELS:,} in one",
        fix="a mask covers its box, not the frame, and is stretched over it: 28x28 is usual",
    )


def _well_formed(result: Detections) -> bool:
    """Return whether the arrays are as construction made them: fields can be assigned later."""
    boxes, scores, ids = result.boxes, result.scores, result.class_ids
    return (
        isinstance(boxes, np.ndarray)
        and isinstance(scores, np.ndarray)
        and isinstance(ids, np.ndarray)
        and boxes.dtype == np.float32
        and scores.dtype == np.float32
        and ids.dtype == np.int32
        and scores.ndim == 1
        and boxes.shape == (len(scores), 4)
        and ids.shape == scores.shape
        and (result.masks is None or _masks_well_formed(result.masks, len(scores)))
        and (result.keypoints is None or _keypoints_well_formed(result.keypoints, len(scores)))
    )


def _keypoints_well_formed(keypoints: object, count: int) -> bool:
    return (
        isinstance(keypoints, np.ndarray)
        and keypoints.dtype == np.float32
        and keypoints.ndim == 3
        and keypoints.shape[::2] == (count, 3)
    )


def _masks_well_formed(masks: object, count: int) -> bool:
    return (
        isinstance(masks, list)
        and len(masks) == count
        and all(isinstance(m, np.ndarray) and m.dtype == np.float32 and m.ndim == 2 for m in masks)
    )


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
        entries, text = returned.attributes, returned.text
        if not isinstance(text, str):
            self.refuse(f"a text of type {type(text).__name__}", "a string, empty for none")
        if len(text) > MAX_TEXT:
            self.refuse(f"a text of {len(text):,} characters", f"at most {MAX_TEXT:,}")
        if not isinstance(entries, list | tuple):
            self.refuse(f"attributes of type {type(entries).__name__}", "a list")
        if len(entries) > MAX_ATTRIBUTES:
            self.refuse(f"{len(entries):,} attributes for one item", f"at most {MAX_ATTRIBUTES:,}")
        attributes = [self._attribute(i, entry) for i, entry in enumerate(entries)]
        if dropped := sum(not np.isfinite(a[2]) for a in attributes):
            self.warn_once(
                "nan",
                f"{dropped} of {len(attributes)} attributes of an item had a NaN or infinite "
                "confidence and were removed; later items are treated alike without a further word",
            )
            attributes = [a for a in attributes if np.isfinite(a[2])]
        return Classification(attributes, text)

    def _attribute(self, index: int, entry: Any) -> tuple[int, int, float, str | None]:
        expected = "(attribute, value, confidence, label or None), or use Classification.add()"
        try:
            attribute, value, confidence, label = entry
            result = (as_index(attribute), as_index(value), float(confidence), label)
        except (TypeError, ValueError):
            self.refuse(f"attribute {index} as {shortened(repr(entry), 60)}", expected)
        if not (label is None or isinstance(label, str)):
            self.refuse(f"attribute {index} with a label of type {type(label).__name__}", expected)
        if not 0 <= min(result[:2]) <= max(result[:2]) <= _MAX_NUMBER:
            self.refuse(
                f"attribute {index} with number {result[0]} and value {result[1]}",
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
            array = self._array(probabilities, "probabilities", "f", None)
            probabilities = array.astype(np.float32, copy=False)
        return Segmentation(self._within(class_map, params.num_classes), probabilities)

    def _array(self, value: object, name: str, kinds: str, axes: int | None) -> Array:
        expected = "integers (height, width)" if axes else "floating point numbers, or None"
        if not isinstance(value, np.ndarray):
            self.refuse(f"a {name} of type {type(value).__name__}", f"a NumPy array of {expected}")
        if value.dtype.kind not in kinds or (axes and value.ndim != axes):
            self.refuse(f"a {name} of {value.dtype} and shape {value.shape}", expected)
        return value

    def _within(self, class_map: Array, classes: int) -> npt.NDArray[np.int32]:
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


UserParser = tuple[Callable[..., Any], str, Path | None, list[Finding]]
"""A parser as `Checked` takes it: the function, where it is, folder of its Python code, notices."""


class CustomLibrary(ABC):
    """A user's library, opened.

    Attributes:
        path: the file, absolute.
        kind: `cpp` or `python`.
        decisions: notices about it (box layout, dropped angles); grows while parsers run.
    """

    path: Path
    kind: Literal["cpp", "python"]
    decisions: list[Finding]

    @property
    def output_memory(self) -> OutputMemory | None:
        """Memory for an engine's outputs that parsers read uncopied; None where any will do."""
        return None

    def close(self) -> None:
        """End its worker process, if it has one. It is started again if a parser is called."""
        return

    @abstractmethod
    def symbols(self) -> list[str]:
        """List names in it that may be parsers, sorted."""

    def bbox_parser(self, name: str) -> CheckedParser:
        """Get the detector parser of that name (`parse-bbox-func-name`).

        The result's values are checked on every call; see `headrace.custom.user_calls`.

        Raises:
            CustomLibraryError: there is no such function, or it cannot be a detector parser.
        """
        return CheckedParser(*self._parser("bbox", name))

    def instance_parser(self, name: str) -> CheckedParser:
        """Get the instance parser of that name (`parse-bbox-instance-mask-func-name`).

        Its Detections have masks. Checked and raising as `bbox_parser`.
        """
        return CheckedParser(*self._parser("instance", name))

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """Get the classifier parser of that name (`parse-classifier-func-name`), likewise."""
        return CheckedClassifier(*self._parser("classifier", name))

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """Get the segmentation parser of that name (`parse-segmentation-func-name`), likewise."""
        return CheckedSegmentation(*self._parser("segmentation", name))

    @abstractmethod
    def input_initializer(self) -> InputInitializer | None:
        """Get its function `NvDsInferInitializeInputLayers`; None if it has none."""

    @abstractmethod
    def _parser(self, kind: ParserKind, name: str) -> UserParser:
        """Find the function of that name.

        Raises:
            CustomLibraryError: there is none, or it cannot be a parser of this kind.
        """
