"""Results of parsers on their way from the worker to the application.

The worker writes arrays and a few numbers; the application copies them out, and holds every
number against the region and against the limits of `noria.custom.validate`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.custom.guard.call_json import ParserKind
from noria.custom.guard.wire import HAS_ANGLES, HAS_MASKS, Nonsense, Region, Writer
from noria.custom.validate import (
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    NO_MASK,
    DecodedBoxes,
)
from noria.custom.validate_maps import MAX_ATTRIBUTES, MAX_MAP_PIXELS, MAX_TEXT
from noria.meta import Classification, Detections, Segmentation

_F32, _I32, _U8 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.uint8)
_MAX_LETTERS = 4 * (MAX_TEXT + MAX_ATTRIBUTES * 4096)


def _write_detections(result: Detections, out: Writer) -> list[int]:
    if not len(result.scores):
        return [0, 0]
    flags = (HAS_ANGLES if result.angles is not None else 0) | (
        HAS_MASKS if result.masks is not None else 0
    )
    for array in (result.boxes, result.scores, result.class_ids):
        out.add(array)
    if result.angles is not None:
        out.add(result.angles)
    if result.masks is not None:
        sizes = [mask.shape for mask in result.masks]
        out.add(np.array(sizes, np.int32).reshape(-1, 2))
        for mask in result.masks:
            out.add(mask)
    return [len(result.scores), flags]


class _Reader:
    def __init__(self, region: Region, start: int) -> None:
        self._region, self._at = region, start

    def take(self, dtype: np.dtype[Any], *shape: int) -> npt.NDArray[Any]:
        start = -(-self._at // 64) * 64
        array = self._region.view(start, dtype, shape)
        self._at = start + array.nbytes
        return array.copy()


def _read_detections(values: Sequence[int], region: Region, start: int) -> DecodedBoxes:
    count, flags = values[0], values[1]
    if count > MAX_OBJECTS or flags > (HAS_ANGLES | HAS_MASKS):
        raise Nonsense(f"{count} boxes")
    if not count:
        none = Detections.unchecked(np.empty((0, 4), _F32), np.empty(0, _F32), np.empty(0, _I32))
        return DecodedBoxes(none, sound=True)
    address, size = region.part(start)
    found: Any = _native.guard_boxes(address, size, count, bool(flags & HAS_ANGLES))
    if found is None:
        raise Nonsense(f"{count} boxes in {size} bytes")
    boxes, scores, ids, angles, sound, end = found
    if not flags & HAS_MASKS:
        return DecodedBoxes(Detections.unchecked(boxes, scores, ids, angles=angles), sound)
    reader = _Reader(region, start + end)
    sizes = reader.take(_I32, count, 2)
    pixels = sizes[:, 0].astype(np.int64) * sizes[:, 1]
    if sizes.min() < 0 or pixels.max() > MAX_MASK_PIXELS or pixels.sum() > MAX_MASKS_PIXELS:
        raise Nonsense("masks of absurd size")
    masks = [reader.take(_F32, h, w) if h * w else NO_MASK for h, w in sizes.tolist()]
    found = Detections.unchecked(boxes, scores, ids, masks=masks, angles=angles)
    return DecodedBoxes(found, sound=False)


def _write_classification(result: Classification, out: Writer) -> list[int]:
    data = json.dumps([result.attributes, result.text]).encode()
    out.add(np.frombuffer(data, np.uint8))
    return [len(data)]


def _read_classification(values: Sequence[int], region: Region, start: int) -> Classification:
    size = values[0]
    if size > _MAX_LETTERS:
        raise Nonsense(f"a classification of {size} bytes")
    try:
        attributes, text = json.loads(region.take(start, size))
        return Classification([(a, v, c, label) for a, v, c, label in attributes], text)
    except (ValueError, TypeError) as error:
        raise Nonsense(f"a classification that cannot be read: {error}") from error


def _write_segmentation(result: Segmentation, out: Writer) -> list[int]:
    out.add(result.class_map)
    values = [*result.class_map.shape]
    if result.probabilities is None:
        return [*values, 0]
    shape = result.probabilities.shape
    if len(shape) > 8:
        shape = (result.probabilities.size,)
    out.add(np.ascontiguousarray(result.probabilities, np.float32).reshape(shape))
    return [*values, 1, len(shape), *shape]


def _read_segmentation(values: Sequence[int], region: Region, start: int) -> Segmentation:
    height, width, more, axes = values[:4]
    if height * width > MAX_MAP_PIXELS:
        raise Nonsense(f"a class map of {height}x{width}")
    reader = _Reader(region, start)
    class_map = reader.take(_I32, height, width)
    if not more:
        return Segmentation(class_map)
    if axes > 8:
        raise Nonsense(f"probabilities of {axes} axes")
    return Segmentation(class_map, reader.take(_F32, *values[4 : 4 + axes]))


WRITERS: dict[ParserKind, Callable[[Any, Writer], list[int]]] = {
    "bbox": _write_detections,
    "instance": _write_detections,
    "classifier": _write_classification,
    "segmentation": _write_segmentation,
}
"""Kind -> (result, where to) -> numbers for the answer."""

READERS: dict[ParserKind, Callable[[Sequence[int], Region, int], Any]] = {
    "bbox": _read_detections,
    "instance": _read_detections,
    "classifier": _read_classification,
    "segmentation": _read_segmentation,
}
"""Kind -> (numbers, region, where the arrays begin) -> result."""
