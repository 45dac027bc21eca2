"""Angles of a C++ parser's boxes that the config does not ask for, apart from stack garbage.

Most parsers never write `rotation_angle`. Left-over memory is the same value again and again, a
coordinate, or a number next to 0; angles are many, and all within a turn.
"""

from __future__ import annotations

import numpy as np

from headrace._core.findings import Finding
from headrace.meta.detections import FloatArray

_CALLS = 32  # with boxes, that are looked at
_ENOUGH = 12  # boxes, before anything is said
_TURN = 2 * np.pi
_LEAST = 1e-3  # below it a box is as good as upright
_SHARE = 0.8  # of the boxes, or rows of a different size: a few may be upright
_DISTINCT = 6


class IgnoredAngles:
    """Looks at the angles of the first boxes.

    Attributes:
        looking: False once it is decided, or enough was seen.
    """

    def __init__(self) -> None:
        self.looking = True
        self._calls = 0
        self._seen: list[FloatArray] = []

    def look(self, angles: FloatArray, scores: FloatArray, where: str) -> Finding | None:
        """Count the boxes of one call.

        Args:
            angles: (N,) as the parser left them, in radians if they are angles.
            scores: (N,) of the same boxes; a score may lie where the angle would.
            where: library and function.

        Returns:
            A warning once, if the parser seems to set them.
        """
        if not len(angles):
            return None
        self._calls += 1
        self._seen.append(np.where(np.isin(angles, scores), np.float32(0), angles))
        self.looking = self._calls < _CALLS
        values = np.concatenate(self._seen)
        if len(values) < _ENOUGH:
            return None
        with np.errstate(invalid="ignore"):
            turned = np.isfinite(values) & (np.abs(values) > _LEAST) & (np.abs(values) <= _TURN)
        distinct = len(np.unique(np.round(values[turned], 4)))
        if turned.mean() < _SHARE or distinct < min(_DISTINCT, len(values)):
            return None
        self.looking = False
        low, high = values[turned].min(), values[turned].max()
        text = "the parser seems to set rotation_angle ({low:.2f} to {high:.2f} in {boxes} boxes), "
        text += "which is not used: boxes stay upright"
        data = {"low": float(low), "high": float(high), "boxes": len(values)}
        fix = "rotated-boxes=1 uses it, in radians; where the parser leaves it unset, all is well"
        return Finding("angles-not-used", "warning", text, where, data, remedies=(fix,))
