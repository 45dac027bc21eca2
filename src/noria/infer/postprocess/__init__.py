"""From output tensors to metadata: one file for each kind of network."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

from noria.infer.items import Items

__all__ = ["Postprocessor"]


class Postprocessor(Protocol):
    """Parses the outputs of one engine batch and attaches the results. One thread at a time."""

    def attach(self, outputs: dict[str, npt.NDArray[Any]], items: Items) -> None:
        """Attach the results of N items to their frames, objects or regions.

        Args:
            outputs: (N, ...) arrays in binding order.
            items: what the rows are about.
        """
        ...
