"""The protocol of a plan that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from noria.engine.backends import RunOptions
from noria.engine.backends.protocol import DLPackTensor
from noria.network.tensor_spec import TensorSpec


class OutputMemory(Protocol):
    """A pool of memory for outputs, for callers that want them in their own memory."""

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any] | None:
        """A new C-contiguous array on the host, its values arbitrary; None: make it elsewhere.

        It is taken back when the array and all views of it are gone. Thread-safe.
        """
        ...


class Session(Protocol):
    """A plan ready to run. Thread-safe: `run` may be called from several threads at once.

    Tensors need not be on the host: what already lives on `device` is taken as it is, and outputs
    stay there with `to_host=False`. Both speak DLPack, so they pass between libraries uncopied.

    Attributes:
        output_memory: where outputs on the host shall be written, if the runtime can write them
            there and their shapes are known before the run; may be set at any time.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batched_inputs: frozenset[str]
    max_batch: int
    device: str
    options: RunOptions
    output_memory: OutputMemory | None

    def run(self, inputs: Mapping[str, DLPackTensor], *, to_host: bool = True) -> dict[str, Any]:
        """Run one batch, axis 0 of every tensor being the batch; outputs in binding order.

        They are arrays, or with `to_host=False` tensors on `device`.

        Raises:
            EngineError: a tensor is missing, or has the wrong shape or dtype; the runtime failed.
        """
        ...

    def submit(
        self, inputs: Mapping[str, DLPackTensor], *, to_host: bool = True
    ) -> Future[dict[str, Any]]:
        """`run`, without waiting."""
        ...

    def close(self) -> None:
        """Release the runtime's memory; further runs raise."""
        ...
