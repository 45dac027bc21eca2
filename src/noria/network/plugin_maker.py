"""What importers ask for the layers that plugins compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from noria.network.network import Network

Shape = tuple[int, ...]


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
        """Fields of a type of plugins, name to type (INT32 …); None if nobody knows it."""
        ...

    def make(
        self, name: str, kind: str, fields: Mapping[str, Any], inputs: Sequence[tuple[Shape, Any]]
    ) -> list[tuple[Shape, Any]] | None:
        """(shape, type) of the outputs of a node, batch first (1 without inputs); None if nobody
        knows it."""
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


def handed_over(plugins: PluginMaker | None, make: Callable[[], Network]) -> Network:
    """The network that `make` gives, with the plugins it was made with; the import is over."""
    try:
        network = make()
        if plugins is not None:
            plugins.hand_over(network)
        return network
    finally:
        if plugins is not None:
            plugins.close()
