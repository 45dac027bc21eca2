"""Places of boxes in a drawing of a graph: links go down, from layer to layer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
_SWEEPS = 8


def layers_of(nodes: Sequence[Node], links: Sequence[tuple[Node, Node]]) -> dict[Node, int]:
    """Give each node a layer below those of all nodes that lead to it.

    A node that nothing leads to stands right above what it leads to. A link that closes a circle
    counts for nothing.
    """
    following: dict[Node, list[Node]] = {node: [] for node in nodes}
    for source, target in links:
        following[source].append(target)
    order = _without_circles(nodes, following)
    layer = dict.fromkeys(nodes, 0)
    positions = {node: position for position, node in enumerate(order)}
    for node in order:
        for target in following[node]:
            if positions[target] > positions[node]:
                layer[target] = max(layer[target], layer[node] + 1)
    entered = {target for _, target in links}
    for node in nodes:
        if node not in entered and following[node]:
            layer[node] = min(layer[target] for target in following[node]) - 1
    return layer


def _without_circles(nodes: Sequence[Node], following: Mapping[Node, list[Node]]) -> list[Node]:
    """The nodes, each before those that it leads to; deep graphs need no deep stack."""
    seen: set[Node] = set()
    order: list[Node] = []
    for first in nodes:
        stack = [(first, iter(following[first]))] if first not in seen else []
        seen.add(first)
        while stack:
            node, targets = stack[-1]
            target = next((one for one in targets if one not in seen), None)
            if target is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(following[target])))
    return order[::-1]


def arranged(
    rows: Sequence[Sequence[Node]],
    links: Sequence[tuple[Node, Node]],
    widths: Mapping[Node, float],
    gap: float,
) -> dict[Node, float]:
    """Order each row so that few links cross, and place its nodes near those that they lead to.

    Args:
        rows: the nodes of each layer.
        links: from one row to the next.
        widths: of each node.
        gap: least distance of neighbours.

    Returns:
        The middle of each node; the leftmost edge is at 0.
    """
    above: dict[Node, list[Node]] = {node: [] for row in rows for node in row}
    below: dict[Node, list[Node]] = {node: [] for row in rows for node in row}
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    ordered = [list(row) for row in rows]
    middles: dict[Node, float] = {}
    for row in ordered:
        middles |= _spread(row, {n: float(i) for i, n in enumerate(row)}, widths, gap)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in ordered if down else reversed(ordered):
            near = above if down else below
            wished = {
                node: fmean(middles[other] for other in near[node]) if near[node] else middles[node]
                for node in row
            }
            if sweep < _SWEEPS - 2:  # the last two only place
                row.sort(key=wished.__getitem__)
            middles |= _spread(row, wished, widths, gap)
    left = min((middles[n] - widths[n] / 2 for n in middles), default=0.0)
    return {node: middle - left for node, middle in middles.items()}


def _spread(
    row: Sequence[Node], wished: Mapping[Node, float], widths: Mapping[Node, float], gap: float
) -> dict[Node, float]:
    """Places as near to the wished ones as the widths allow, by least squares."""
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (widths[one] + widths[other]) / 2 + gap)
    blocks: list[
        tuple[float, int]
    ] = []  # mean of the wishes of neighbours that touch, and how many
    for node, offset in zip(row, offsets, strict=False):
        mean, count = wished[node] - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, number = blocks.pop()
            mean, count = (before * number + mean * count) / (number + count), number + count
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    return {n: s + o for n, s, o in zip(row, starts, offsets, strict=False)}
