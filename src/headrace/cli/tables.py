"""Tables of the layers of a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headrace.cli.output import print_table

if TYPE_CHECKING:
    from headrace.network import Network


def layers_of_network(network: Network | None) -> list[dict[str, Any]]:
    """List the layers of a network as data; none where it is too large for that."""
    from headrace.engine.layers import layers_of_model

    if network is None or network.is_large:
        return []
    return [asdict(layer) for layer in layers_of_model(network.graph_proto())]


def counted_layers(rows: Sequence[dict[str, object]], *, shown: bool) -> str:
    """Number of layers by type of computation; unless they are `shown`, how to list them."""
    counted = Counter(row["precision"] or "unknown" for row in rows)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counted.most_common())
    return f"{len(rows)} ({kinds})" + ("" if shown else "; --layers lists them")


def print_layers(rows: Sequence[dict[str, Any]]) -> None:
    """A table of layers, as `headrace.engine.layers` gives them."""
    heads = ("layer", "operator", "precision", "shape", "parameters")
    table = []
    for row in rows:
        dims = ("?" if d is None else str(d) for d in row["shape"] or ())
        names = (row["name"], row["operator"], row["precision"])
        table.append((*names, "x".join(dims), str(row["parameters"] or "")))
    print_table(heads, table, right=("parameters",))
