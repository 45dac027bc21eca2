"""Plugins in the bodies of If, Loop and Scan are brought up into the graph, where they can run.

Both branches of an `If` move out of it, and a small `If` is left that chooses between what they
give; a `Loop` or `Scan` whose number of turns is known is written out. Bodies without plugins stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from noria._core.errors import ModelError
from noria._core.notices import Notice
from noria.network.fresh import fresh
from noria.plugins.body_checks import (
    check_node,
    check_scan_axes,
    checked_scalar,
    constant_value,
    goes_on,
)

MOST_TURNS = 64
"""A loop of more turns is not written out; for loops inside loops, all turns together."""
MOST_WRITTEN = 4096
"""So many nodes are written out in a graph."""
MOST_NODES = 32
"""So many constant nodes are computed to learn a number of turns."""
_AWAY = (
    "export the model without the control flow or with a fixed number of turns, or give the "
    "plugin a to_onnx method"
)


def raise_bodies(
    proto: Any,
    wanted: Callable[[Any], bool],
    extents: Callable[[str], Sequence[int | str | None] | None],
    where: str,
) -> tuple[list[Notice], dict[str, str]]:
    """Change a graph so that no body has a plugin in it any more.

    Args:
        proto: the `ModelProto`; changed.
        wanted: whether a `NodeProto` is a plugin's.
        extents: the shape of a value of the graph, as far as it is known.
        where: the model, for messages.

    Returns:
        What was done; name of a node that was brought up -> its name in the body.

    Raises:
        ModelError: a plugin in a loop whose number of turns is not known, or is too large; the
            node, the body and the ways out are named.
    """
    if not any(_plugin_inside(node, wanted) for node in proto.graph.node):
        return [], {}
    raiser = _Raiser(proto, wanted, extents, where)
    raiser.run()
    return raiser.notices, raiser.origins


def bodies_of(node: Any) -> list[Any]:
    """The graphs inside a `NodeProto`."""
    found = []
    for attribute in node.attribute:
        found += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]
    return found


def _plugin_inside(node: Any, wanted: Callable[[Any], bool]) -> Any | None:
    """The first plugin in a body of a node, at any depth."""
    for graph in bodies_of(node):
        for inner in graph.node:
            found = inner if wanted(inner) else _plugin_inside(inner, wanted)
            if found is not None:
                return found
    return None


class _Raiser:
    def __init__(self, proto: Any, wanted: Any, extents: Any, where: str) -> None:
        self.proto, self.graph, self.wanted, self.where = proto, proto.graph, wanted, where
        self.extents = extents
        opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in proto.opset_import}
        self.opset = opsets.get("", 1)
        self.values = {t.name: t for t in self.graph.initializer}
        self.notices: list[Notice] = []
        self.origins: dict[str, str] = {}
        self.made: list[Any] = []
        self.producer: dict[str, Any] = {}
        self.written = 0
        self.outer = 1
        self.raised: set[str] = set()
        self.taken_nodes: set[str] = set()
        self.taken: set[str] = set()
        self._take(self.graph)

    def run(self) -> None:
        for node in self.graph.node:
            if _plugin_inside(node, self.wanted) is not None:
                self._share(node)
        waiting = [(node, 1) for node in self.graph.node]
        while waiting:
            node, self.outer = waiting.pop(0)
            inner = _plugin_inside(node, self.wanted)
            if inner is None:
                self.made.append(node)
                self.producer.update(dict.fromkeys(node.output, node))
                continue
            node.name = node.name or f"{node.op_type}_{''.join(node.output[:1])}"
            if node.name in self.raised:
                node.name = fresh(node.name, self.taken_nodes)
            self.raised.add(node.name)
            kinds = {"If": self._if, "Loop": self._loop, "Scan": self._scan}
            if node.op_type not in kinds:
                self._refuse(node, inner, f"a body of {node.op_type}", "is not taken apart")
            if node.op_type == "Scan" and self.opset < 9:
                self._refuse(node, inner, "the body of a Scan", f"is of opset {self.opset}")
            check_node(node, self.where)
            turns, nodes = kinds[node.op_type](node, inner)
            waiting[:0] = [(made, self.outer * turns) for made in nodes]
        del self.graph.node[:]
        self.graph.node.extend(self.made)

    def _refuse(self, node: Any, inner: Any, body: str, why: str) -> None:
        raise ModelError(
            f"plugin {inner.op_type} (node {inner.name!r}) stands in {body} (node "
            f"{node.name!r}), which {why}",
            where=self.where,
            expected="plugins in the graph itself, in branches of If, or in loops of at most "
            f"{MOST_TURNS} turns (loops inside loops: all together), known beforehand",
            fix=_AWAY,
        )

    def _tell(self, text: str) -> None:
        self.notices.append(Notice("info", text, self.where))

    # names and weights

    def _take(self, graph: Any) -> None:
        self.taken |= {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
        for node in graph.node:
            self.taken_nodes.add(node.name)
            self.taken |= {*node.input, *node.output}
            for body in bodies_of(node):
                self._take(body)

    def _share(self, node: Any) -> None:
        """Weights of bodies move into the graph, where all turns share them."""
        moved = _plugin_inside(node, self.wanted) is not None
        for graph in bodies_of(node):
            if graph.sparse_initializer:
                raise ModelError(
                    f"a body of {node.op_type} (node {node.name!r}) with a plugin in it has the "
                    f"sparse initializer {graph.sparse_initializer[0].values.name!r}",
                    where=self.where,
                    expected="dense initializers",
                    fix=_AWAY,
                )
            fed = {v.name for v in graph.input}
            stays = fed if moved else fed | {v.name for v in graph.output}
            names = {}
            kept: list[Any] = []
            for tensor in graph.initializer:
                if tensor.name in stays:
                    kept.append(tensor)
                else:
                    names[tensor.name] = self._weight(node, tensor, tensor.name)
            nodes = []
            for inner in graph.node:
                value = [a.t for a in inner.attribute if a.name == "value" and a.HasField("t")]
                constant = inner.op_type == "Constant" and len(inner.output) == 1
                if constant and value and inner.output[0] not in stays:
                    names[inner.output[0]] = self._weight(node, value[0], inner.output[0])
                else:
                    nodes.append(inner)
            del graph.initializer[:]
            graph.initializer.extend(kept)
            del graph.node[:]
            graph.node.extend(nodes)
            infos = [v for v in graph.value_info if v.name not in names]
            del graph.value_info[:]
            graph.value_info.extend(infos)
            for inner in graph.node:
                inner.input[:] = [names.get(n, n) for n in inner.input]
                _rename_captured(inner, names)
            for output in graph.output:
                output.name = names.get(output.name, output.name)
            for inner in graph.node:
                self._share(inner)

    def _weight(self, node: Any, tensor: Any, name: str) -> str:
        copy = self.graph.initializer.add()
        copy.CopyFrom(tensor)
        owner = node.name or f"{node.op_type}_{''.join(node.output[:1])}"
        copy.name = fresh(f"{owner}/{name}", self.taken)
        self.values[copy.name] = copy
        return str(copy.name)

    # what bodies become

    def _body(
        self, graph: Any, prefix: str, bound: Mapping[str, str]
    ) -> tuple[list[Any], list[str]]:
        """The nodes of a body under names of the graph, and the names of what it gives.

        Args:
            bound: names inside -> names in the graph, for what the body is fed with.
        """
        import onnx

        names = dict(bound)
        nodes = []
        for number, original in enumerate(graph.node):
            node = onnx.NodeProto()
            node.CopyFrom(original)
            name = original.name or f"{original.op_type}_{number}"
            node.name = fresh(f"{prefix}/{name}", self.taken_nodes)
            self.origins[node.name] = self.origins.get(original.name, original.name)
            node.input[:] = [names.get(n, n) for n in original.input]
            _rename_captured(node, names)
            for name in original.output:
                if name:
                    names[name] = fresh(f"{prefix}/{name}", self.taken)
            node.output[:] = [names.get(n, n) for n in original.output]
            nodes.append(node)
        for value in graph.value_info:
            if value.name in names:
                copy = onnx.ValueInfoProto()
                copy.CopyFrom(value)
                copy.name = names[value.name]
                self.graph.value_info.append(copy)
        return nodes, [names.get(v.name, v.name) for v in graph.output]

    def _if(self, node: Any, inner: Any) -> tuple[int, list[Any]]:
        """Both branches, then an `If` that chooses; only one of them if it is known which."""
        from onnx import helper

        branches = {a.name: a.g for a in node.attribute}
        known = self._constant(node.input[0])
        if known is not None:
            taken = checked_scalar(node, "condition", known, np.bool_, self.where)
            name = "then_branch" if taken else "else_branch"
            self._tell(f"node {node.name!r}: the If is always its {name}")
            nodes, ends = self._body(branches[name], f"{node.name}/{name}", {})
            return 1, [*nodes, *_same(ends, node.output)]
        sides: list[Any] = []
        choosing = {}
        for name in ("then_branch", "else_branch"):
            graph = branches[name]
            nodes, ends = self._body(graph, f"{node.name}/{name}", {})
            sides += nodes
            kept = [fresh(f"{node.name}/{name}/chosen_{i}", self.taken) for i in range(len(ends))]
            outputs = []
            for value, given in zip(graph.output, kept, strict=True):
                copy = type(value)()
                copy.CopyFrom(value)
                copy.name = given
                outputs.append(copy)
            choosing[name] = helper.make_graph(_same(ends, kept), name, [], outputs)
        self._tell(
            f"node {node.name!r}: both branches of the If are computed, because plugin "
            f"{inner.op_type} (node {inner.name!r}) stands in one"
        )
        chosen = helper.make_node("If", node.input, node.output, node.name, **choosing)
        return 1, [*sides, chosen]

    def _loop(self, node: Any, inner: Any) -> tuple[int, list[Any]]:
        (body,) = bodies_of(node)
        turns = self._constant(node.input[0]) if node.input[0] else None
        if turns is None:
            self._refuse(node, inner, "the body of a Loop", "has no trip count that is a constant")
        assert turns is not None
        going = self._constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        begins = len(node.input) < 2 or not node.input[1]
        if going is not None:
            begins = bool(checked_scalar(node, "condition", going, np.bool_, self.where))
        if not begins or not goes_on(body, self._constant):
            self._refuse(node, inner, "the body of a Loop", "may end by a condition of its own")
        count = int(checked_scalar(node, "trip count", turns, np.int64, self.where))
        states = list(node.input[2:])
        scans = len(body.output) - 1 - len(states)
        self._check_turns(node, inner, body, count, scans)
        names = [v.name for v in body.input]
        made: list[Any] = []
        kept: list[list[str]] = [[] for _ in range(scans)]
        for turn in range(count):
            prefix = f"{node.name}/{turn}"
            bound = dict(zip(names[2:], states, strict=True))
            bound[names[0]] = self._value(f"{prefix}/number", np.int64(turn))
            bound[names[1]] = self._value(f"{prefix}/going", np.bool_(True))
            nodes, ends = self._body(body, prefix, bound)
            made += nodes
            states = ends[1 : 1 + len(states)]
            for row, name in zip(kept, ends[1 + len(states) :], strict=True):
                row.append(name)
        self._written_out(node, inner, count)
        outputs = list(node.output)
        made += _same(states, outputs[: len(states)])
        for row, name in zip(kept, outputs[len(states) :], strict=False):
            made += self._stacked(row, name, 0) if name else []
        return max(1, count), made

    def _scan(self, node: Any, inner: Any) -> tuple[int, list[Any]]:
        from onnx import helper

        (body,) = bodies_of(node)
        values = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "body"}
        count = int(values["num_scan_inputs"])
        states, given = list(node.input[:-count]), list(node.input[-count:])
        kept: list[list[str]] = [[] for _ in range(len(body.output) - len(states))]
        axes = list(values.get("scan_input_axes", [0] * count))
        back = list(values.get("scan_input_directions", [0] * count))
        shapes = [self.extents(name) for name in given]
        check_scan_axes(node, body, shapes, self.where)
        lengths = [s[axis] for s, axis in zip(shapes, axes, strict=True) if s is not None]
        turns = next((n for n in lengths if isinstance(n, int)), None)
        if not isinstance(turns, int):
            self._refuse(node, inner, "the body of a Scan", "has no fixed number of turns")
        assert isinstance(turns, int)
        self._check_turns(node, inner, body, turns, len(kept))
        names = [v.name for v in body.input]
        made: list[Any] = []
        for turn in range(turns):
            prefix = f"{node.name}/{turn}"
            bound = dict(zip(names, states, strict=False))
            for name, source, axis, reverse in zip(
                names[len(states) :], given, axes, back, strict=True
            ):
                at = self._value(
                    f"{prefix}/{name}_at", np.int64(turns - 1 - turn if reverse else turn)
                )
                bound[name] = fresh(f"{prefix}/{name}_slice", self.taken)
                made.append(helper.make_node("Gather", [source, at], [bound[name]],
                                             bound[name], axis=axis))  # fmt: skip
            nodes, ends = self._body(body, prefix, bound)
            made += nodes
            states = ends[: len(states)]
            for row, name in zip(kept, ends[len(states) :], strict=True):
                row.append(name)
        self._written_out(node, inner, turns)
        made += _same(states, node.output[: len(states)])
        out_axes = list(values.get("scan_output_axes", [0] * len(kept)))
        out_back = list(values.get("scan_output_directions", [0] * len(kept)))
        for row, name, axis, reverse in zip(
            kept, node.output[len(states) :], out_axes, out_back, strict=False
        ):
            made += self._stacked(row[::-1] if reverse else row, name, axis) if name else []
        return max(1, turns), made

    def _check_turns(self, node: Any, inner: Any, body: Any, count: int, scans: int) -> None:
        kind = f"the body of a {node.op_type}"
        if count > MOST_TURNS or count < 0 or (count == 0 and scans):
            self._refuse(node, inner, kind, f"has {count} turns")
        if count * self.outer > MOST_TURNS:
            why = f"has {count} turns in each of {self.outer} turns around it"
            self._refuse(node, inner, kind, why)
        self.written += count * (_size(body) + len(body.input))
        if self.written > MOST_WRITTEN:
            why = f"with its {count} turns makes more than {MOST_WRITTEN} nodes to write out"
            self._refuse(node, inner, kind, why)

    def _written_out(self, node: Any, inner: Any, count: int) -> None:
        self._tell(
            f"node {node.name!r}: the {count} turns of the {node.op_type} are written out, because "
            f"plugin {inner.op_type} (node {inner.name!r}) stands in its body"
        )

    def _stacked(self, names: Sequence[str], output: str, axis: int) -> list[Any]:
        """Values joined along a new axis."""
        from onnx import helper

        rows = [fresh(f"{output}/row_{i}", self.taken) for i in range(len(names))]
        if self.opset < 13:
            made = [helper.make_node("Unsqueeze", [n], [r], r, axes=[axis])
                    for n, r in zip(names, rows, strict=True)]  # fmt: skip
        else:
            at = self._value(f"{output}/axis", np.array([axis], np.int64))
            made = [helper.make_node("Unsqueeze", [n, at], [r], r)
                    for n, r in zip(names, rows, strict=True)]  # fmt: skip
        return [*made, helper.make_node("Concat", rows, [output], f"{output}/rows", axis=axis)]

    def _value(self, name: str, array: Any) -> str:
        from onnx import numpy_helper

        name = fresh(name, self.taken)
        self.values[name] = numpy_helper.from_array(np.asarray(array), name)
        self.graph.initializer.append(self.values[name])
        return name

    def _constant(self, name: str) -> Any | None:
        """A value that depends on no input, if that takes a few small nodes to see."""
        nodes: list[Any] = []
        weights: dict[str, Any] = {}
        stack = [name]
        while stack:
            at = stack.pop()
            if at in self.values:
                weights[at] = self.values[at]
            elif at in self.producer:
                node = self.producer[at]
                if bodies_of(node) or self.wanted(node) or len(nodes) >= MOST_NODES:
                    return None
                if not any(n is node for n in nodes):
                    nodes.append(node)
                    stack += [i for i in node.input if i]
            else:
                return None
        order = [n for n in self.made if any(n is m for m in nodes)]
        return constant_value(order, weights, name, self.proto.opset_import)


def _size(graph: Any) -> int:
    """The number of nodes, at any depth."""
    return sum(1 + sum(map(_size, bodies_of(node))) for node in graph.node)


def _same(names: Sequence[str], outputs: Sequence[str]) -> list[Any]:
    from onnx import helper

    return [
        helper.make_node("Identity", [name], [output], f"{output}/same")
        for name, output in zip(names, outputs, strict=True)
        if output
    ]


def _rename_captured(node: Any, names: Mapping[str, str]) -> None:
    """What the bodies of a node take from around them, under the graph's names."""
    for graph in bodies_of(node):
        own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        own |= {o for inner in graph.node for o in inner.output}
        outer = {old: new for old, new in names.items() if old not in own}
        for inner in graph.node:
            inner.input[:] = [outer.get(n, n) for n in inner.input]
            _rename_captured(inner, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)
