"""Growth of shapes through a graph: a few nodes can ask for shapes of a billion axes.

`Gather` adds the axes of its inputs and `Concat` their numbers, so each node may double them.
ONNX's inference holds every one, and neither ends nor hears a signal meanwhile. A bound is counted
first; where it is high, inference runs in a process with limits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.network.shapes.graph_shapes import without_weights

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

MAX_AXES = 64
"""Axes of a tensor: as many as NumPy has."""

_BOUND = 4096  # of axes and numbers, below which nothing is tried
_CPU_S, _WALL_S, _BYTES = 10, 60.0, 1 << 30
_AXES = frozenset(("Gather", "GatherND", "Unsqueeze", "OneHot", "Einsum", "Scan", "Loop"))
_INTEGERS = (6, 7)  # INT32 and INT64 of TensorProto.DataType: ONNX follows these as shapes
_IMAGES = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")  # no result of theirs is a shape
_SHAPED = frozenset(("Reshape", "Expand", "ConstantOfShape", "Resize", "RandomNormal"))


def growth_problem(model: ModelProto) -> str:
    """Say how the shapes of a model grow; empty if they stay small.

    Args:
        model: of which only small constants count.
    """
    counted = _Bounds()
    counted.graph(model.graph)
    for function in model.functions:
        counted.nodes(function.node)
    if counted.most <= _BOUND:
        return ""
    return _tried(without_weights(model))


class _Bounds:
    """Bounds of the axes of every value, and of the numbers in those that may be shapes.

    Attributes:
        most: the largest one.
    """

    def __init__(self) -> None:
        self.most = 0
        self._axes: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def graph(self, graph: GraphProto) -> None:
        """Count a graph and those in it."""
        for value in graph.input:
            self._axes[value.name] = len(value.type.tensor_type.shape.dim)
        for tensor in graph.initializer:
            self._axes[tensor.name] = len(tensor.dims)
            if len(tensor.dims) <= 1 and tensor.data_type in _INTEGERS:
                self._numbers[tensor.name] = prod(tensor.dims)
        self.nodes(graph.node)

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        """Count nodes in their order."""
        for node in nodes:
            axes = [self._axes.get(name, 4) for name in node.input]
            numbers = [self._numbers.get(name, 0) for name in node.input]
            rank, count = max(axes, default=0), max(numbers, default=0)
            op = node.op_type
            written = 0
            for attribute in node.attribute:
                written = max(written, len(attribute.ints), len(attribute.s))
                if op == "Constant":
                    whole = attribute.t.data_type in _INTEGERS
                    count = max(written, prod(attribute.t.dims) if whole else 0)
                for body in (*attribute.graphs, *_body(attribute)):
                    self.graph(body)
            if op == "Shape":
                count = rank
            elif op == "Concat":
                count = sum(numbers)
            elif op == "Gather":
                rank, count = sum(axes), numbers[1] if len(numbers) > 1 else 0
            elif op in _IMAGES:
                count = 0
            elif op in _SHAPED:
                rank = max(rank, *numbers, 0)
            elif op in _AXES:
                rank = sum(axes) + count + written
            for name in node.output:
                self._axes[name], self._numbers[name] = rank, count
            self.most = max(self.most, rank, count)
            if self.most > _BOUND:
                return


def _body(attribute: object) -> list[GraphProto]:
    return [attribute.g] if attribute.HasField("g") else []  # type: ignore[attr-defined]


def _tried(model: ModelProto) -> str:
    import onnx
    from onnx import onnx_cpp2py_export

    script = Path(__file__).with_name("inference_process.py")
    command = [sys.executable, "-I", "-S", str(script), str(onnx_cpp2py_export.__file__)]
    limits = [str(_CPU_S), str(_BYTES)]
    for value in model.graph.input:
        axes = value.type.tensor_type.shape.dim
        if len(axes) == 1 and axes[0].dim_value > _BOUND:
            axes[0].Clear()  # ONNX would make a name for each number of a list
    given = model.SerializeToString()
    try:
        done = subprocess.run(
            command + limits,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"shapes that are not known after {_WALL_S:g} s"
    if done.returncode == 0 and not done.stdout:
        return ""  # refused by ONNX in time, as it is wherever shapes are asked for
    if done.returncode != 0 or len(done.stdout) - len(given) > _BYTES >> 4:
        return f"shapes that grow beyond {_CPU_S} s or {_BYTES >> 30} GiB"
    graph = onnx.ModelProto.FromString(done.stdout).graph
    values: Mapping[str, int] = {
        v.name: len(v.type.tensor_type.shape.dim) for v in (*graph.value_info, *graph.output)
    }
    name, most = max(values.items(), key=lambda item: item[1], default=("", 0))
    return f"{most:,} axes in {name[:80]!r}" if most > MAX_AXES else ""
