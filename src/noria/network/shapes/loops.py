"""Shapes of the outputs of `Loop`: values that it hands on, and values that it stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from noria.network.shapes.protos import constant_type
from noria.network.tensor_spec import TensorType

_BOOL, _INT64 = 9, 7

Walk = Callable[[Any, dict[str, TensorType]], None]
"""(nodes, infos): adds the types of the nodes' outputs."""


def loop_types(node: Any, infos: dict[str, TensorType], walk: Walk) -> list[TensorType | None]:
    """Describe the outputs of a `Loop`; None for an output of which nothing is known.

    Axes of a handed-on value that the body changes are unknown. The walk through the body is
    repeated with the shapes that it found until none changes: at most one time more than there are
    axes.

    Args:
        node: the `NodeProto`.
        infos: types of all tensors before it.
        walk: goes through the nodes of the body.
    """
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    names = list(node.input[2:])
    if body is None or len(body.input) != len(names) + 2 or any(n not in infos for n in names):
        return [None] * len(node.output)
    outer = infos | {tensor.name: constant_type(tensor) for tensor in body.initializer}
    outer[body.input[0].name] = TensorType(_INT64, ())
    outer[body.input[1].name] = TensorType(_BOOL, (), _first_condition(node, infos))
    state = [TensorType(infos[n].elem, infos[n].shape) for n in names]
    while True:
        inner = dict(outer)
        for value, info in zip(body.input[2:], state, strict=True):
            inner[value.name] = info
        walk(body.node, inner)
        made = [inner.get(value.name) for value in body.output]
        merged = [_either(a, b) for a, b in zip(state, made[1:], strict=False)]
        if len(merged) != len(state) or merged == state:
            break
        state = merged
    if len(merged) != len(state):
        return [None] * len(node.output)
    turns = _turns(node, infos, made[0])
    stacked = [_stacked(info, turns) for info in made[1 + len(state) :]]
    return [*state, *stacked]


def _first_condition(node: Any, infos: dict[str, TensorType]) -> Any:
    if len(node.input) < 2 or not node.input[1]:
        return np.array(True)
    info = infos.get(node.input[1])
    return None if info is None or info.known is None else info.known.reshape(())


def _turns(node: Any, infos: dict[str, TensorType], going: TensorType | None) -> int:
    """Number of turns if it is a constant and nothing ends the loop before; else -1."""
    first = _first_condition(node, infos)
    count = infos.get(node.input[0]) if node.input[0] else None
    if first is not None and not first:
        return 0
    if first is None or going is None or going.known is None or not going.known.all():
        return -1
    if count is None or count.known is None:
        return -1
    return max(0, int(count.known.reshape(-1)[0]))


def _either(before: TensorType, after: TensorType | None) -> TensorType:
    now = None if after is None else after.shape
    shape: tuple[int, ...] | None = None
    if now is not None and before.shape is not None and len(now) == len(before.shape):
        shape = tuple(a if a == b else -1 for a, b in zip(before.shape, now, strict=True))
    return TensorType(before.elem, shape)


def _stacked(info: TensorType | None, turns: int) -> TensorType | None:
    if info is None:
        return None
    return TensorType(info.elem, None if info.shape is None else (turns, *info.shape))
