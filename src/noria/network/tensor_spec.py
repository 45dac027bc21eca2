"""The name, type and shape of a network's input or output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, element type and shape of a network input or output.

    A free axis is its name, or None. An output of which not even the number of axes is known
    before the network has run has the shape ().
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        if not self.shape:
            return f"{self.name} {self.dtype.name}[...]"
        dims = ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name} {self.dtype.name}[{dims}]"
