"""The nodes of one layer of a format: what the lowerings of all formats make them with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import ModelError
from noria.network.graph_builder import Blob, GraphBuilder, Shape


class LayerNodes:
    """A layer on its way into a graph.

    Attributes:
        graph: where nodes go.
    """

    graph: GraphBuilder

    def error(
        self, found: str, *, expected: str | None = None, fix: str | Sequence[str] | None = None
    ) -> ModelError:
        """An error about this layer."""
        return self.graph.error(found, expected=expected, fix=fix)

    def op(self, name: str, inputs: Sequence[Blob | None], shape: Shape, **attributes: Any) -> Blob:
        """A node with one output."""
        return self.graph.node(name, inputs, shape, **attributes)

    def same(self, name: str, *inputs: Blob, **attributes: Any) -> Blob:
        """A node whose output is shaped like its first input."""
        return self.graph.node(name, inputs, inputs[0].shape, **attributes)

    def constant(self, array: npt.ArrayLike, dtype: Any = np.float32, name: str = "") -> Blob:
        """A constant tensor."""
        return self.graph.constant(array, dtype, name)
