"""What every backend offers: a plan that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from noria.engine.backends import RunOptions
from noria.engine.tensors import Tensor
from noria.network.tensor_spec import TensorSpec

__all__ = ["Session", "TensorSpec"]


class Session(Protocol):
    """A plan ready to run. Thread-safe: `run` may be called from several threads at once.

    Tensors need not be on the host: what already lives on `device` is taken as it is, and outputs
    stay there with `to_host=False`. Both speak DLPack, so they pass between libraries uncopied.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batched_inputs: frozenset[str]
    max_batch: int
    device: str
    options: RunOptions

    def run(self, inputs: Mapping[str, Tensor], *, to_host: bool = True) -> dict[str, Any]:
        """Run one batch, axis 0 of every tensor being the batch; outputs in binding order.

        They are arrays, or with `to_host=False` tensors on `device`.

        Raises:
            EngineError: a tensor is missing, or has the wrong shape or dtype; the runtime failed.
        """
        ...

    def submit(
        self, inputs: Mapping[str, Tensor], *, to_host: bool = True
    ) -> Future[dict[str, Any]]:
        """`run`, without waiting."""
        ...

    def close(self) -> None:
        """Release the runtime's memory; further runs raise."""
        ...
