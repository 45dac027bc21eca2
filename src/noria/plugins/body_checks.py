"""Whether If, Loop and Scan are as ONNX wants them, before they are taken apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from noria._core.errors import ModelError

MOST_ELEMENTS = 1024
"""Larger tensors are not computed to learn a number of turns."""
_NAMES = """Abs Add And ArgMax ArgMin BitShift Cast CastLike Ceil Clip Concat Constant
ConstantOfShape
CumSum Div Equal Expand Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual
Identity Less LessOrEqual Max Mean Min Mod Mul Neg Not Or Pow Range ReduceMax ReduceMean
ReduceMin ReduceProd ReduceSum Relu Reshape Round Shape Sign Size Slice Split Sqrt Squeeze Sub
Sum Tile TopK Transpose Unsqueeze Where Xor"""
_COMPUTED = frozenset(_NAMES.split())
_BODIES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}
_LISTS = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")


def check_node(node: Any, where: str) -> None:
    """Refuse an If, Loop or Scan whose attributes, inputs, outputs and bodies do not fit together.

    Raises:
        ModelError: the node, what was found and what must be.
    """
    check = _Check(node, where)
    bodies = check.bodies()
    if not node.output:
        check.refuse("has no outputs", "at least one output")
    {"If": check.branches, "Loop": check.loop, "Scan": check.scan}[node.op_type](*bodies)


def check_scan_axes(
    node: Any, body: Any, shapes: Sequence[Sequence[Any] | None], where: str
) -> None:
    """Refuse axes that the tensors of a Scan lack, and scanned inputs of different lengths."""
    check = _Check(node, where)
    axes = check.integers("scan_input_axes", len(shapes))
    lengths = set()
    for number, (axis, shape) in enumerate(zip(axes, shapes, strict=True)):
        if shape is None:
            continue
        check.axis("scan_input_axes", number, axis, len(shape))
        if isinstance(shape[axis], int):
            lengths.add(shape[axis])
    if len(lengths) > 1:
        found = " and ".join(str(n) for n in sorted(lengths))
        check.refuse(f"scans inputs of lengths {found}", "one length, the number of turns")
    outputs = body.output[len(node.input) - len(shapes) :]
    axes = check.integers("scan_output_axes", len(outputs))
    for number, (axis, value) in enumerate(zip(axes, outputs, strict=True)):
        if value.type.tensor_type.HasField("shape"):
            rank = len(value.type.tensor_type.shape.dim) + 1
            check.axis("scan_output_axes", number, axis, rank)


def checked_scalar(node: Any, what: str, value: Any, dtype: Any, where: str) -> Any:
    """The one element of a constant that a node is steered by."""
    if value.dtype != np.dtype(dtype) or value.size != 1:
        _Check(node, where).refuse(
            f"has a {what} of type {value.dtype} and shape {list(value.shape)}",
            f"one element of type {np.dtype(dtype)}",
        )
    return value.reshape(-1)[0].item()


def constant_value(nodes: Sequence[Any], weights: dict[str, Any], name: str, opsets: Any) -> Any:
    """What a few nodes give; None if it is random, large on the way, or cannot be computed.

    Args:
        nodes: in the order in which they run.
        weights: name -> `TensorProto`, all that the nodes take from elsewhere.
    """
    import onnx
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    tensors = dict(weights)
    if any(math.prod(t.dims) > MOST_ELEMENTS for t in tensors.values()):
        return None
    try:
        for node in nodes:
            if node.op_type not in _COMPUTED:
                return None
            fed = [tensors[n] for n in dict.fromkeys(node.input) if n]
            names = [n for n in node.output if n]
            ends = [helper.make_empty_tensor_value_info(n) for n in names]
            graph = helper.make_graph([node], "constant", [], ends, fed)
            model = helper.make_model(graph, opset_imports=opsets)
            seen = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
            for value in seen:  # before anything of that size is made
                dims = value.type.tensor_type.shape.dim
                known = value.type.tensor_type.HasField("shape") and all(
                    d.HasField("dim_value") for d in dims
                )
                if not known or math.prod(d.dim_value for d in dims) > MOST_ELEMENTS:
                    return None
            with np.errstate(all="ignore"):
                results = ReferenceEvaluator(model).run(None, {})
            for given, result in zip(names, results, strict=True):
                tensors[given] = numpy_helper.from_array(np.asarray(result), given)
        return numpy_helper.to_array(tensors[name])
    except Exception:  # an operator that the evaluator lacks, or a damaged tensor: not known
        return None


def goes_on(body: Any, value: Callable[[str], Any]) -> bool:
    """Whether a loop's body never says that it is over.

    Args:
        value: a constant of the graph, or None.
    """
    end = body.output[0].name
    producer: dict[str, Any] = {o: n for n in body.node for o in n.output}
    for _ in body.node:
        node = producer.get(end)
        if node is None or node.op_type != "Identity" or len(node.input) != 1:
            break
        end = node.input[0]
    if end == body.input[1].name:
        return True
    constant = None if end in producer else value(end)
    return constant is not None and constant.dtype == np.bool_ and bool(constant.all())


class _Check:
    def __init__(self, node: Any, where: str) -> None:
        self.node, self.where = node, where

    def refuse(self, found: str, expected: str) -> None:
        raise ModelError(
            f"{self.node.op_type} (node {self.node.name!r}) {found}",
            where=self.where,
            expected=expected,
            fix="export the model again; onnx.checker.check_model shows whether it is valid",
        )

    def bodies(self) -> list[Any]:
        names = [a.name for a in self.node.attribute]
        for name in names:
            if names.count(name) > 1:
                self.refuse(f"has the attribute {name} {names.count(name)} times", "it once")
        found = {a.name: a.g for a in self.node.attribute if a.HasField("g") and not a.graphs}
        wanted = _BODIES[self.node.op_type]
        for name in wanted:
            if name not in found:
                self.refuse(f"has no {name}", f"a graph in the attribute {name}")
        for attribute in self.node.attribute:
            if attribute.name not in wanted and (attribute.HasField("g") or attribute.graphs):
                self.refuse(
                    f"has a graph in the attribute {attribute.name}",
                    f"one in {' and '.join(wanted)}",
                )
        for name in wanted:
            self.body(name, found[name])
        return [found[name] for name in wanted]

    def body(self, name: str, graph: Any) -> None:
        inputs = [v.name for v in graph.input]
        if "" in inputs or "" in [v.name for v in graph.output]:
            self.refuse(f"has inputs or outputs without a name in its {name}", "names")
        weights = [t.name for t in graph.initializer]
        for value in inputs:
            if inputs.count(value) > 1:
                self.refuse(f"has two inputs {value!r} in its {name}", "one of that name")
            if value in weights:
                self.refuse(
                    f"has {value!r} both as an input and as an initializer of its {name}", "one"
                )

    def same(self, what: str, found: int, expected: int, why: str) -> None:
        if found != expected:
            self.refuse(f"has {found} {what}", f"{expected}: {why}")

    def branches(self, *graphs: Any) -> None:
        if len(self.node.input) != 1 or not self.node.input[0]:
            self.refuse(f"has the inputs {list(self.node.input)}", "one, the condition")
        for name, graph in zip(_BODIES["If"], graphs, strict=True):
            self.same(f"inputs in its {name}", len(graph.input), 0, "branches have none")
            self.same(f"outputs in its {name}", len(graph.output), len(self.node.output),
                      "as many as the node has")  # fmt: skip

    def loop(self, body: Any) -> None:
        if not self.node.input:
            self.refuse("has no inputs", "a trip count, a condition, the initial states")
        states = len(self.node.input) - 2 if len(self.node.input) > 2 else 0
        if "" in self.node.input[2:]:
            self.refuse("has an initial state without a name", "a tensor for each state")
        self.same("inputs in its body", len(body.input), 2 + states,
                  f"turn, condition and {states} states")  # fmt: skip
        if len(body.output) < 1 + states:
            self.refuse(f"has {len(body.output)} outputs in its body",
                        f"at least {1 + states}: condition and {states} states")  # fmt: skip
        self.same("outputs", len(self.node.output), len(body.output) - 1,
                  "all that its body gives but the condition")  # fmt: skip

    def scan(self, body: Any) -> None:
        count = self.attribute("num_scan_inputs")
        total = len(self.node.input)
        if count is None or count.type != count.INT or not 1 <= count.i <= total:
            found = "no num_scan_inputs" if count is None else f"num_scan_inputs {count.i}"
            self.refuse(f"has {found}", f"an integer from 1 to {total}, the number of its inputs"
                        if total else "inputs, and how many of them are scanned")  # fmt: skip
        assert count is not None
        if "" in self.node.input:
            self.refuse("has an input without a name", "a tensor for each input")
        self.same("inputs in its body", len(body.input), total, "as many as the node has")
        states = total - count.i
        if len(body.output) < states:
            self.refuse(f"has {len(body.output)} outputs in its body", f"at least {states} states")
        self.same("outputs", len(self.node.output), len(body.output), "as many as its body has")
        for name in _LISTS:
            length = count.i if "input" in name else len(body.output) - states
            values = self.integers(name, length)
            if "directions" in name and not set(values) <= {0, 1}:
                self.refuse(f"has {name} {values}", "0 (forward) or 1 (backward) for each")

    def attribute(self, name: str) -> Any | None:
        return next((a for a in self.node.attribute if a.name == name), None)

    def integers(self, name: str, length: int) -> list[int]:
        found = self.attribute(name)
        if found is None:
            return [0] * length
        if found.type != found.INTS or len(found.ints) != length:
            self.refuse(f"has {name} {list(found.ints)}", f"{length} integers")
        return list(found.ints)

    def axis(self, name: str, number: int, axis: int, rank: int) -> None:
        if not -rank <= axis < rank:
            self.refuse(f"has {axis} in {name} (number {number}), of a tensor of {rank} axes",
                        f"from {-rank} to {rank - 1}" if rank else "tensors with axes")  # fmt: skip
