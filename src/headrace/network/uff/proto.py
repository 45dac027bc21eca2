"""UFF files: nodes with named fields, and data that fields refer to.

Field numbers of the messages are in the tables below; the numbers of `Data` are those of its
alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.network.model_bytes import foreign
from headrace.network.wire import (
    VARINT,
    WireError,
    doubles,
    fields,
    message,
    number,
    signed,
    text,
    varints,
)

WHAT = "a UFF model"
_GRAPHS, _REFERENCED = 4, 5
_GRAPH_NODES = 2
_NODE_ID, _NODE_INPUTS, _NODE_OPERATION, _NODE_FIELDS = 1, 2, 3, 4
_S, _S_LIST, _D, _D_LIST, _B, _B_LIST, _I, _I_LIST, _BLOB = range(1, 10)
_REF, _DTYPE, _ORDERS, _ORDERS_LIST = 100, 101, 103, 104

DTYPES: dict[int, npt.DTypeLike] = {
    65544: np.int8,
    65552: np.int16,
    65568: np.int32,
    65600: np.int64,
    131088: np.float16,
    131104: np.float32,
}
"""The format's element types: bits in the low bytes, integer or float above."""


@dataclass(slots=True)
class Node:
    """One node; field values are text, numbers, lists, or bytes (memoryview)."""

    name: str
    operation: str
    inputs: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Uff:
    """The nodes of the graph by name, in the file's order; references are resolved."""

    nodes: dict[str, Node]


@dataclass(frozen=True, slots=True)
class _Ref:
    name: str


def read_uff(data: bytes, path: Path) -> Uff:
    """Read the bytes of a file. Weights are views on `data`."""
    try:
        return Uff(_nodes(data))
    except WireError as error:
        raise foreign(data, path, WHAT, str(error)) from error


def _nodes(data: bytes) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    shared: dict[str, Any] = {}
    for key, wire, value in fields(memoryview(data)):
        if key == _GRAPHS:
            for inner, inner_wire, node in fields(message(wire, value)):
                if inner == _GRAPH_NODES:
                    read = _node(message(inner_wire, node))
                    if read.name in nodes:
                        raise WireError(f"two nodes are called {read.name!r}")
                    nodes[read.name] = read
        elif key == _REFERENCED:
            name, content = _entry(message(wire, value))
            shared[name] = content
    if not nodes:
        raise WireError("there are no nodes")
    for node in nodes.values():
        node.fields = {k: _resolved(v, shared) for k, v in node.fields.items()}
    return nodes


def _node(data: memoryview) -> Node:
    node = Node("", "")
    for key, wire, value in fields(data):
        if key == _NODE_ID:
            node.name = text(wire, value)
        elif key == _NODE_INPUTS:
            node.inputs.append(text(wire, value))
        elif key == _NODE_OPERATION:
            node.operation = text(wire, value)
        elif key == _NODE_FIELDS:
            name, content = _entry(message(wire, value))
            node.fields[name] = content
    return node


def _entry(data: memoryview) -> tuple[str, Any]:
    name, content = "", None
    for key, wire, value in fields(data):
        if key == 1:
            name = text(wire, value)
        elif key == 2:
            content = _content(message(wire, value))
    return name, content


def _content(data: memoryview) -> Any:
    """The value of a Data message; None if it is empty."""
    content: Any = None
    for key, wire, value in fields(data):
        if key == _S:
            content = text(wire, value)
        elif key in (_D,):
            content = number(wire, value)
        elif key in (_B, _I, _DTYPE):
            if wire != VARINT:
                raise WireError("an integer has another kind")
            content = bool(value) if key == _B else signed(value)
        elif key in (_I_LIST, _B_LIST):
            content = _integers(message(wire, value))
        elif key == _D_LIST:
            content = [float(v) for _, w, part in fields(message(wire, value))
                     for v in doubles(w, part)]  # fmt: skip
        elif key == _S_LIST:
            content = [text(w, part) for _, w, part in fields(message(wire, value))]
        elif key == _BLOB:
            content = message(wire, value)
        elif key == _REF:
            content = _Ref(text(wire, value))
        elif key == _ORDERS:
            content = [_orders(message(wire, value))]
        elif key == _ORDERS_LIST:
            parts = fields(message(wire, value))
            content = [_orders(message(w, part)) for _, w, part in parts]
    return content


def _integers(data: memoryview) -> list[int]:
    return [v for key, wire, part in fields(data) if key == 1 for v in varints(wire, part)]


def _orders(data: memoryview) -> list[int]:
    """The order of one tensor's axes, as the file's code: see `lowering.permutation`."""
    for key, wire, value in fields(data):
        if key == 1:
            for inner, inner_wire, part in fields(message(wire, value)):
                if inner == 2:
                    return _integers(message(inner_wire, part))
    return []


def _resolved(value: Any, shared: dict[str, object]) -> Any:
    seen = 0
    while isinstance(value, _Ref):
        seen += 1
        if value.name not in shared or seen > 8:
            raise WireError(f"a field refers to {value.name!r}, which is not there")
        value = shared[value.name]
    return value
