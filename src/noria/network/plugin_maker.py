"""The interface by which importers make layers that plugins compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from noria.network.graph_builder import Blob, GraphBuilder, Shape
from noria.network.network import Network


class PluginMaker(Protocol):
    """Makes layers that plugins compute; see `noria.plugins.imported`."""

    def takes(self, layer: str) -> bool:
        """Whether a factory makes the layer of that name, whatever its type."""
        ...

    def make_by_factory(
        self,
        name: str,
        weights: Sequence[npt.NDArray[Any]],
        fields: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, Any]],
    ) -> list[tuple[Shape, Any]]:
        """As `make`, for a layer that it takes."""
        ...

    def fields(self, kind: str) -> dict[str, str] | None:
        """Fields of a type of plugins, name to type (INT32 …); None if it is unknown."""
        ...

    def make(
        self, name: str, kind: str, fields: Mapping[str, Any], inputs: Sequence[tuple[Shape, Any]]
    ) -> list[tuple[Shape, Any]] | None:
        """Make a node; return the (shape, type) of its outputs, None if the type is unknown.

        Shapes have the batch first (1 without inputs).
        """
        ...

    def place(self, node: str) -> None:
        """The name of the node in the graph."""
        ...

    def hand_over(self, network: Network) -> None:
        """The network is made."""
        ...

    def close(self) -> None:
        """The import is over."""
        ...


def plugin_nodes(
    plugins: PluginMaker,
    graph: GraphBuilder,
    kind: str,
    inputs: Sequence[Blob],
    outputs: Sequence[tuple[Shape, Any]],
    *,
    name: str,
    picture: Blob,
    domain: str = "",
) -> list[Blob]:
    """Add the node of the plugin that `plugins` made last, and note its place.

    Outputs of a node without inputs are repeated for each item of `picture`, the network's input.
    """
    blobs = graph.nodes(kind, inputs, outputs, domain=domain, name=name)
    producer = blobs[0].value.producer()
    assert producer is not None
    plugins.place(str(producer.name))
    return blobs if inputs else [graph.for_each_picture(b, picture) for b in blobs]
