"""What every backend offers: a plan that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import numpy.typing as npt

from noria.network.tensor_spec import TensorSpec

__all__ = ["Session", "TensorSpec"]


class Session(Protocol):
    """A plan ready to run. Thread-safe: `run` may be called from several threads at once."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batched_inputs: frozenset[str]
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
