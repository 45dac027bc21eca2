"""What every backend offers: a plan that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Session", "TensorSpec"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, element type and shape of a network input or output.

    A free axis is its name, or None.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        dims = "x".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name} {self.dtype.name}[{dims}]"


class Session(Protocol):
    """A plan ready to run. Thread-safe: `run` may be called from several threads at once."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    max_batch: int

    def run(self, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Run one batch, axis 0 of every tensor being the batch; outputs in binding order.

        Raises:
            EngineError: a tensor is missing, or has the wrong shape or dtype; the runtime failed.
        """
        ...

    def submit(self, inputs: Mapping[str, npt.NDArray[Any]]) -> Future[dict[str, npt.NDArray[Any]]]:
        """`run`, without waiting."""
        ...

    def close(self) -> None:
        """Release the runtime's memory; further runs raise."""
        ...
