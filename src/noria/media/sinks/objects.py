"""The objects of a frame as rows of numbers, the same for every text format."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta import FrameMeta

__all__ = ["finite_rows", "label_of"]


def finite_rows(meta: FrameMeta) -> tuple[list[tuple[int, int]], npt.NDArray[Any], int]:
    """The objects that can be written, in attach order.

    Returns:
        (component id, class id) of each; (N, 5) float64 confidence, left, top, width, height in
        frame pixels; and how many objects were left out for not being finite numbers.
    """
    objects = meta.objects
    n = len(objects.rects)
    values = np.empty((n, 5), np.float64)
    if not n:
        return [], values, 0
    values[:, 0] = objects.confidences
    values[:, 1:] = objects.rects
    keys: Any = list(zip(objects.component_ids.tolist(), objects.class_ids.tolist(), strict=True))
    finite = np.isfinite(values)
    if finite.all():
        return keys, values, 0
    good: Any = finite.all(axis=1)
    kept = [key for key, ok in zip(keys, good.tolist(), strict=True) if ok]
    return kept, values[good], n - len(kept)


def label_of(meta: FrameMeta, key: tuple[int, int]) -> str:
    """The full label of (component id, class id); empty if the class has no name."""
    component, class_id = key
    names = meta.objects.labels.get(component, ())
    return names[class_id] if 0 <= class_id < len(names) else ""
