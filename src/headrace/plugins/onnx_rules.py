"""Rules of TensorRT's ONNX parser for nodes that plugins compute: names, inputs, functions.

Both ways that read a model follow them: a build (`headrace.plugins.nodes`) and `OnnxParser`.
Source: tensorrt-plugins spec 11; tensorrt-oracle spec 3 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._core.errors import ModelError
from headrace._core.findings import Finding

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

SHAPE_INPUTS = "tensorrt_plugin_shape_input_indices"
"""Names, as an attribute of a node, the inputs whose values decide shapes."""


def given_name(node: NodeProto) -> str:
    """Name of a node; of one without a name, one after its first output."""
    if node.name:
        return str(node.name)
    return f"node_of_{node.output[0]}" if node.output else str(node.op_type)


class LayerNames:
    """Names of the layers of one model: the second layer of a name gets a number behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._number = 0

    def unique(self, name: str) -> str:
        """Take the name, or one with the next number if it is taken."""
        unique = name
        while unique in self._taken:
            unique, self._number = f"{name}_{self._number}", self._number + 1
        self._taken.add(unique)
        return unique


def inputs_of(
    node: NodeProto, *, third: bool, where: str
) -> tuple[list[int], list[int], Finding | None]:
    """Positions of the inputs, and of the shape inputs, both in the node's order.

    Args:
        node: of the plugin.
        third: the plugin is of version 3: others have no shape inputs.
        where: the file and the node.

    Returns:
        The positions, and a warning if the attribute has no effect.

    Raises:
        ModelError: the attribute `SHAPE_INPUTS` is no list, or names an input that is not there.
    """
    count = len(node.input)
    chosen: set[int] = set()
    for attribute in node.attribute:
        if attribute.name != SHAPE_INPUTS:
            continue
        if attribute.type != attribute.INTS:
            kind = attribute.AttributeType.Name(attribute.type)
            raise ModelError(
                f"{SHAPE_INPUTS} is a {kind}", where=where,
                expected="a list of whole numbers, the positions of inputs",
            )  # fmt: skip
        for index in attribute.ints:
            if not -count <= index < count:
                raise ModelError(
                    f"{SHAPE_INPUTS} has {index}", where=where,
                    expected=f"{-count} to {count - 1}",
                )  # fmt: skip
            chosen.add(index % count)
    if chosen and not third:
        text = f"{SHAPE_INPUTS} has no effect: the plugin is no IPluginV3, its inputs are all alike"
        data = {"attributes": [SHAPE_INPUTS]}
        notice = Finding("plugin-attribute-left-out", "warning", text, where, data)
        return list(range(count)), [], notice
    return [i for i in range(count) if i not in chosen], sorted(chosen), None


def check_outputs(node: NodeProto, count: int, plugin: str, where: str) -> None:
    """Refuse a node that has more outputs than its plugin.

    Raises:
        ModelError: it has.
    """
    if len(node.output) > count:
        raise ModelError(
            f"the node has {len(node.output)} outputs",
            where=where,
            expected=f"at most {count}: plugin {plugin} has no more",
        )


_COPY = re.compile(r"(.+)__\d+")


@dataclass(slots=True)
class Inlined:
    """A model with its functions in the places of their calls.

    Attributes:
        proto: the model; the one that was given if no function was in the way.
        names: name that a node got in the copy -> its name in the function.
        places: for each node of the graph, the number of the node that it stands for.
        stacks: name of a node in a function -> the functions around it, outermost first; None if
            it is in several.
    """

    proto: ModelProto
    names: dict[str, str] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    stacks: dict[str, tuple[str, ...] | None] = field(default_factory=dict)

    def given_name(self, node: NodeProto) -> str:
        """Name of a node as the file has it."""
        return self.names.get(node.name) or given_name(node)

    def place(self, index: int) -> int:
        """Number of the file's node that the node of that number stands for."""
        return self.places[index] if index < len(self.places) else index

    def stack(self, node: NodeProto) -> tuple[str, ...]:
        """The functions of the model around a node, outermost first."""
        return self.stacks.get(self.names.get(node.name, "")) or ()


def inlined(proto: ModelProto) -> Inlined:
    """Put the functions of a model in the places of their calls, attributes put in."""
    if not proto.functions:
        return Inlined(proto)
    import onnx.inliner

    flat = onnx.inliner.inline_local_functions(proto)
    functions = {(f.domain, f.name): f for f in proto.functions}
    stacks: dict[str, tuple[str, ...] | None] = {}

    def walk(nodes: Iterable[NodeProto], stack: tuple[str, ...]) -> int:
        """Count the nodes that these become; the names of those in functions are noted."""
        count = 0
        for node in nodes:
            called = functions.get((node.domain, node.op_type))
            if called is not None:
                count += walk(called.node, (*stack, called.name))
                continue
            count += 1
            if stack and node.name:
                stacks[node.name] = stack if stacks.get(node.name, stack) == stack else None
        return count

    places = [i for i, node in enumerate(proto.graph.node) for _ in range(walk([node], ()))]
    if len(places) != len(flat.graph.node):  # functions that could not be put in
        places = []
    own = {node.name for node in proto.graph.node}
    names = {
        node.name: copy[1]
        for node in flat.graph.node
        if node.name not in own and (copy := _COPY.fullmatch(node.name)) and copy[1] in stacks
    }
    return Inlined(flat, names, places, stacks)
