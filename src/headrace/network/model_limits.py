"""Limits of an ONNX file, checked before anything walks its graph: no network comes near them.

A small file can ask for endless work: functions that call each other, graphs in graphs, a million
nodes of 20 bytes. ONNX's shape inference, the runtimes and Python's own walks would take hours, or
their stack would overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from headrace._core.errors import ModelError
from headrace._core.text import shortened
from headrace.network.shapes.growth import growth_problem

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

MAX_NODES = 40_000
"""Nodes of all graphs, those of functions as often as these are called. Large language models have
some 20,000."""

MAX_DEPTH = 12
"""Graphs inside of graphs, and functions that call functions. Exporters nest four or five."""

MAX_PARTS = 400_000
"""Attributes, tensors, values, names of inputs and outputs, and entries of the file's head."""

MAX_TENSORS = 100_000
"""Weights and inner tensors that one graph lists."""

MAX_ENDS = 10_000
"""Inputs or outputs of a graph; operator sets, properties or functions of a model."""

MAX_ATTRIBUTES = 1_000
"""Attributes of one node: operators have ten or so, plugins some dozens."""

MAX_NUMBERS = 4_000_000
"""Numbers and texts in attributes, and dimensions. Weights are bytes, and are not counted."""

MAX_NAME = 10_000
"""Characters of an operator's or a value's name."""

_Function = tuple[str, str, str]


class _Graph(NamedTuple):
    """Nodes that are counted once: those of a graph, of its branches, or of a function's body."""

    nodes: int
    calls: Counter[_Function]


def check_limits(model: ModelProto, where: str) -> None:
    """Refuse a model that nothing should walk.

    Args:
        model: as it was read.
        where: the file, for the message.

    Raises:
        ModelError: more nodes, nested graphs, calls or parts than a network has; a function that
            calls itself. Code `model-too-large`.
    """
    _Check(where).run(model)


class _Check:
    def __init__(self, where: str) -> None:
        self._where = where
        self._parts = self._numbers = 0
        self._names: set[_Function] = set()

    def run(self, model: ModelProto) -> None:
        head = (model.opset_import, model.metadata_props, model.functions, model.training_info)
        self._add_parts(head)
        kinds = "operator sets, properties or functions"
        self._at_most(MAX_ENDS, kinds, max(map(len, head)))
        bodies = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        self._names = set(bodies)
        main = self._graph(model.graph)
        functions: dict[_Function, _Graph] = {}
        for name, function in bodies.items():
            self._add_parts((function.input, function.output, function.attribute, function.node))
            functions[name] = self._nodes(function.node, 0)
        self._expand(main, functions)
        if problem := growth_problem(model):
            self._refuse(problem, "tensors of some axes")

    def _graph(self, graph: GraphProto, depth: int = 0) -> _Graph:
        if depth > MAX_DEPTH:
            self._refuse(f"graphs nested more than {MAX_DEPTH} deep")
        self._add_parts((graph.node, graph.initializer, graph.sparse_initializer))
        self._add_parts((graph.value_info, graph.input, graph.output))
        tensors = max(len(graph.initializer), len(graph.value_info))
        self._at_most(MAX_TENSORS, "tensors in one graph", tensors)
        ends = max(len(graph.input), len(graph.output))
        self._at_most(MAX_ENDS, "inputs or outputs", ends)
        self._numbers += sum(len(tensor.dims) for tensor in graph.initializer)
        for value in (*graph.input, *graph.output, *graph.value_info):
            self._numbers += len(value.type.tensor_type.shape.dim)
        self._check_numbers()
        return self._nodes(graph.node, depth)

    def _nodes(self, nodes: Sequence[NodeProto], depth: int) -> _Graph:
        count, calls = len(nodes), Counter[_Function]()
        self._at_most(MAX_NODES, "nodes in one graph", count)
        for node in nodes:
            if len(node.op_type) > MAX_NAME:
                self._refuse(f"an operator's name of {len(node.op_type):,} characters")
            self._parts += len(node.input) + len(node.output) + len(node.attribute)
            self._at_most(MAX_ATTRIBUTES, "attributes of one node", len(node.attribute))
            if self._parts > MAX_PARTS:
                self._refuse_parts()
            if self._names:
                name = node.domain, node.op_type, getattr(node, "overload", "")
                if name in self._names:
                    calls[name] += 1
            for attribute in node.attribute:
                for branch in self._branches(attribute):
                    inner = self._graph(branch, depth + 1)
                    count += inner.nodes
                    calls += inner.calls
        return _Graph(count, calls)

    def _branches(self, attribute: AttributeProto) -> Iterable[GraphProto]:
        """Count the numbers of an attribute, and return its graphs."""
        self._numbers += len(attribute.ints) + len(attribute.floats) + len(attribute.strings)
        if attribute.HasField("t"):
            self._numbers += len(attribute.t.dims)
        self._add_parts((attribute.tensors, attribute.graphs, attribute.sparse_tensors))
        self._check_numbers()
        return (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ()))

    def _expand(self, main: _Graph, functions: dict[_Function, _Graph]) -> None:
        """Count the nodes with every call replaced by its function's body."""
        total, calls, depth = main.nodes, main.calls, 0
        while calls:
            depth += 1
            if depth > MAX_DEPTH:
                self._refuse_calls(calls, functions)
            total += sum(functions[name].nodes * number for name, number in calls.items())
            if total > MAX_NODES:
                self._refuse(
                    f"functions that call each other come to more than {MAX_NODES:,} nodes",
                    f"at most {MAX_NODES:,}, with the bodies of functions in place of their calls",
                )
            inner = Counter[_Function]()
            for name, number in calls.items():
                for called, times in functions[name].calls.items():
                    inner[called] += times * number
            calls = inner

    def _refuse_calls(
        self, calls: Iterable[_Function], bodies: dict[_Function, _Graph]
    ) -> NoReturn:
        for name in calls:
            reached, ahead = set[_Function](), set(bodies[name].calls)
            while ahead and name not in reached:
                reached |= ahead
                ahead = {c for n in ahead for c in bodies[n].calls} - reached
            if name in reached:
                self._refuse(f"the function {shortened(name[1], 80)!r} calls itself")
        self._refuse(f"functions that call each other more than {MAX_DEPTH} deep")

    def _add_parts(self, fields: Iterable[Sequence[object]]) -> None:
        self._parts += sum(map(len, fields))
        if self._parts > MAX_PARTS:
            self._refuse_parts()

    def _refuse_parts(self) -> NoReturn:
        self._refuse(
            f"more than {MAX_PARTS:,} attributes, tensors, values and names",
            f"at most {MAX_PARTS:,}",
        )

    def _at_most(self, most: int, kind: str, count: int) -> None:
        if count > most:
            self._refuse(f"{count:,} {kind}", f"at most {most:,}")

    def _check_numbers(self) -> None:
        if self._numbers > MAX_NUMBERS:
            self._refuse(
                f"more than {MAX_NUMBERS:,} numbers in attributes and shapes",
                f"at most {MAX_NUMBERS:,}; large constants are tensors",
            )

    def _refuse(self, problem: str, expected: str = "") -> NoReturn:
        whole = problem.startswith(("the ", "functions "))
        raise ModelError(
            problem if whole else f"the model has {problem}",
            where=self._where,
            expected=expected or "a network as exporters write them",
            code="model-too-large",
        )
