"""Which objects of a frame are tracked, and in which order they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta import Objects

Index = npt.NDArray[np.intp]
Corners = npt.NDArray[np.float64]

_FARTHEST = 1e9  # pixels; beyond it areas lose their digits


@dataclass(frozen=True, slots=True)
class Found:
    """The objects of one frame that a tracker looks at.

    Attributes:
        index: (N,) where they are in the frame's objects.
        corners: (N, 4) float64 left, top, right, bottom in frame pixels.
        scores: (N,) float32 confidences; below 0 where unknown.
        groups: (N,) int64; only objects of one group can be one track.
    """

    index: Index
    corners: Corners
    scores: npt.NDArray[np.float32]
    groups: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects are tracked (`operate-on-gie-id`, `operate-on-class-ids` of the original).

    Attributes:
        component_ids: objects of these models, also those found in the crop of another; None for
            objects of any model that have no parent.
        class_ids: objects of these classes; None for all but the full-frame object (class -1) of
            a primary classifier.
        match_classes: objects of different classes are never one track.
    """

    component_ids: frozenset[int] | None = None
    class_ids: frozenset[int] | None = None
    match_classes: bool = True

    def __call__(self, objects: Objects) -> Found:
        """The objects to track, in an order that does not depend on theirs in the frame.

        Rectangles that have no area or are no numbers are left out.
        """
        rects = objects.rects
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = (np.abs(rects) < _FARTHEST).all(axis=1) & (rects[:, 2:] > 0).all(axis=1)
        if self.component_ids is None:
            wanted &= objects.parents < 0
        else:
            wanted &= _among(objects.component_ids, self.component_ids)
        if self.class_ids is None:
            wanted &= objects.class_ids >= 0
        else:
            wanted &= _among(objects.class_ids, self.class_ids)
        index = np.flatnonzero(wanted)
        left, top, width, height = rects[index].T.astype(np.float64)
        components, classes = objects.component_ids[index], objects.class_ids[index]
        # equal in every key is equal in everything that tracking looks at
        order = np.lexsort(
            (objects.confidences[index], height, width, left, top, classes, components)
        )
        index = index[order]
        groups = components.astype(np.int64) << 32
        if self.match_classes:
            groups |= classes.astype(np.int64) & 0xFFFFFFFF
        corners = np.stack((left, top, left + width, top + height), axis=1)[order]
        return Found(index, corners, objects.confidences[index], groups[order])


def _among(values: npt.NDArray[np.int32], wanted: frozenset[int]) -> npt.NDArray[Any]:
    found = np.zeros(len(values), np.bool_)
    for value in wanted:
        found |= values == value
    return found
