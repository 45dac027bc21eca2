"""Which objects of a frame are tracked, and in which order they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.meta import Objects

Index = npt.NDArray[np.intp]
Corners = npt.NDArray[np.float64]


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


@dataclass(frozen=True)
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
        count = len(objects)
        index, corners = np.empty(count, np.int64), np.empty((count, 4))
        scores, groups = np.empty(count, np.float32), np.empty(count, np.int64)
        n = _native.tracked_objects(
            np.ascontiguousarray(objects.rects, np.float32),
            np.ascontiguousarray(objects.component_ids, np.int32),
            np.ascontiguousarray(objects.class_ids, np.int32),
            np.ascontiguousarray(objects.parents, np.int32),
            np.ascontiguousarray(objects.confidences, np.float32),
            self._components,
            self._classes,
            self.match_classes,
            index,
            corners,
            scores,
            groups,
        )
        return Found(index[:n], corners[:n], scores[:n], groups[:n])

    @cached_property
    def _components(self) -> list[int] | None:
        return None if self.component_ids is None else sorted(self.component_ids)

    @cached_property
    def _classes(self) -> list[int] | None:
        return None if self.class_ids is None else sorted(self.class_ids)
