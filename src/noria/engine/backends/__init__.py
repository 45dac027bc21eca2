"""Runtimes. Each is one file here behind this protocol; nothing else imports a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy.typing as npt

from noria.errors import EngineError
from noria.network.tensor_spec import TensorSpec

__all__ = ["BACKENDS", "DEFAULT_BACKEND", "Backend", "RunOptions", "Runner", "get_backend"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run; nothing of it is part of the plan.

    Attributes:
        threads: threads of one run; None lets the runtime take every core.
        spinning: idle threads wait busily for the next operator. Faster on a machine of one's
            own; takes time from decoding and parsing when cores are few.
    """

    threads: int | None = None
    spinning: bool = False


class Runner(Protocol):
    """A loaded model: fixed names and types in, arrays out. `run` is thread-safe."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """All outputs, in binding order; new arrays at each run.

        Raises:
            EngineError: the runtime failed.
        """
        ...

    def close(self) -> None:
        """Release the model. Runs that are under way finish."""
        ...


class Backend(Protocol):
    """One runtime."""

    name: str

    def version(self) -> str:
        """Version of the runtime, as it says itself."""
        ...

    def open(self, model: bytes, options: RunOptions) -> Runner:
        """Load an ONNX model (one message, all weights inside).

        Raises:
            EngineError: the runtime refuses the model.
        """
        ...


DEFAULT_BACKEND = "onnxruntime"
BACKENDS = {"onnxruntime": "noria.engine.backends.onnxruntime"}
"""Backend name -> module with an object `backend`; imported on first use."""


def get_backend(name: str) -> Backend:
    """The backend called `name`.

    Raises:
        EngineError: there is none, or its runtime is not installed.
    """
    if name not in BACKENDS:
        raise EngineError(
            f"no runtime is called {name!r}", expected=f"one of {', '.join(sorted(BACKENDS))}"
        )
    try:
        return cast(Backend, importlib.import_module(BACKENDS[name]).backend)
    except ImportError as error:
        raise EngineError(
            f"the runtime {name} cannot be loaded: {error}", fix=f"pip install {name}"
        ) from error
