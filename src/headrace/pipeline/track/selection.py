"""Which objects of a frame are tracked, and in which order they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.meta import Objects

Index = npt.NDArray[np.intp]
Corners = npt.NDArray[np.float64]
Found = _native.TrackedObjects
"""The objects of one frame that a tracker looks at: their columns, and where they are in it."""


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
        return Found(
            np.ascontiguousarray(objects.rects, np.float32),
            np.ascontiguousarray(objects.component_ids, np.int32),
            np.ascontiguousarray(objects.class_ids, np.int32),
            np.ascontiguousarray(objects.parents, np.int32),
            np.ascontiguousarray(objects.confidences, np.float32),
            self._components,
            self._classes,
            self.match_classes,
        )

    @cached_property
    def _components(self) -> list[int] | None:
        return None if self.component_ids is None else sorted(self.component_ids)

    @cached_property
    def _classes(self) -> list[int] | None:
        return None if self.class_ids is None else sorted(self.class_ids)
