"""Input tensors that runs are done with, kept for later ones."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence

import numpy as np

from headrace._core.types import Array
from headrace.meta.detections import FloatArray, IntArray


def _count_alone() -> int:
    """Count the references to an array of one's own; newer Pythons borrow the variable's."""
    array = np.empty(0, np.float32)
    return sys.getrefcount(array)


_OWN = _count_alone()


class InputRoom:
    """Tensors of a model; any thread may take and give.

    A frame of another shape than the network's input leaves bars, up to half of it. Frames of one
    video leave the same ones, and a tensor that is used again has them already.
    """

    def __init__(self) -> None:
        self._free: deque[tuple[FloatArray, Sequence[IntArray]]] = deque(maxlen=4)

    def take(self, shape: tuple[int, ...], places: Sequence[IntArray]) -> tuple[FloatArray, bool]:
        """Return a tensor, and True if it has the bars.

        Args:
            shape: of all items.
            places: where each piece lies in its item; the same arrays as before mean the same bars.
        """
        if self._free:
            try:
                array, before = self._free.popleft()
            except IndexError:  # another thread was faster
                return np.empty(shape, np.float32), False
            if sys.getrefcount(array) == _OWN and array.shape == shape:  # no runtime holds it
                same = len(before) == len(places)
                same = same and all(a is b for a, b in zip(before, places, strict=True))
                return array, same
        return np.empty(shape, np.float32), False

    def give(self, array: Array, places: Sequence[IntArray]) -> None:
        """Keep a tensor that was filled for pieces at these places, and that no reader keeps."""
        self._free.append((array, places))
