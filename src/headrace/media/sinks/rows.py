"""Objects of a frame as rows of text formats: without numbers that are not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.meta import FrameMeta


class Rows(PlainRecord):
    """The objects of a frame that can be written, in attach order.

    Attributes:
        keys: (component id, class id) of each.
        values: (N, 5) float64 confidence, left, top, width, height in frame pixels.
        kept: their indices among the frame's objects; None is all of them.
        lost: how many were left out for not being finite numbers.
    """

    keys: list[tuple[int, int]]
    values: Array
    kept: list[int] | None = None
    lost: int = 0

    @property
    def indices(self) -> Sequence[int]:
        """Places of the rows among the frame's objects."""
        return range(len(self.keys)) if self.kept is None else self.kept


def finite_rows(meta: FrameMeta) -> Rows:
    """Objects of a frame without those that have numbers that are not finite."""
    objects = meta.objects
    n = len(objects.rects)
    values = np.empty((n, 5), np.float64)
    if not n:
        return Rows([], values)
    values[:, 0] = objects.confidences
    values[:, 1:] = objects.rects
    keys: Any = list(zip(objects.component_ids.tolist(), objects.class_ids.tolist(), strict=True))
    finite = np.isfinite(values)
    if finite.all():
        return Rows(keys, values)
    good: Any = finite.all(axis=1)
    kept = np.flatnonzero(good).tolist()
    return Rows([keys[i] for i in kept], values[good], kept, n - len(kept))


class Components:
    """Whether the objects so far come of more than one model."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self.several = False

    def see(self, meta: FrameMeta) -> bool:
        """Look at a frame; whether there have been several."""
        if not self.several:
            self._seen.update(meta.objects.labels)
            self.several = len(self._seen) > 1
        return self.several


def label_of(labels: Mapping[int, Sequence[str]], key: tuple[int, int]) -> str:
    """The full label of (component id, class id); empty if the class has no name."""
    component, class_id = key
    names = labels.get(component, ())
    return names[class_id] if 0 <= class_id < len(names) else ""
