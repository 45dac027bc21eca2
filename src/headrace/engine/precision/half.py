"""FP16 and BF16, explicit in the graph: weights converted, casts around FP32 nodes.

Inputs and outputs of the model keep their types. A node stays FP32 if ONNX gives its operator no
half-precision form, if it holds a graph of its own, if a weight or a known range does not fit, or
if it sums squares. Tensors between a converted and a kept node are cast once each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper

from headrace.engine.precision.prepare import PrecisionReport, Proto, captured_names, replace_all
from headrace.network.graph_builder import fresh

if TYPE_CHECKING:
    import onnx
    from onnx import NodeProto


Kind = Literal["fp16", "bf16"]
LARGEST_FP16 = 65504.0
_SMALLEST_FP16 = 2.0**-25  # what is smaller becomes 0

# Operators with a half-precision form that should not use it: their sums leave FP16 at once.
_SUMS = {
    "CumSum": "running sums",
    "ReduceL2": "sums of squares",
    "ReduceLogSumExp": "sums of exponentials",
    "ReduceSumSquare": "sums of squares",
    "LpNormalization": "sums of squares",
}


@dataclass(slots=True)
class _Signature:
    """True for each float input and output of a node that may be half."""

    inputs: list[bool]
    outputs: list[bool]


def to_half(
    proto: Proto,
    kind: Kind = "fp16",
    *,
    keep: Collection[str] = (),
    only: Collection[str] | None = None,
    ranges: Mapping[str, float] | None = None,
) -> PrecisionReport:
    """Convert a prepared model in place.

    It comes from `prepare`; for bf16 it is of opset 22 or newer, where convolutions know it. Nodes
    in `keep` stay FP32, with `only` all others too; `ranges` are the largest absolute values of
    activations, as far as known.
    """
    chosen = None if only is None else frozenset(only)
    return _Pass(proto, kind, frozenset(keep), chosen, ranges or {}).run()


class _Pass:
    def __init__(
        self,
        proto: Proto,
        kind: Kind,
        keep: frozenset[str],
        only: frozenset[str] | None,
        ranges: Mapping[str, float],
    ) -> None:
        self.proto, self.graph, self.kind, self.keep = proto, proto.graph, kind, keep
        self.only = only
        self.single = TensorProto.FLOAT
        self.half = TensorProto.FLOAT16 if kind == "fp16" else TensorProto.BFLOAT16
        self.largest = LARGEST_FP16 if kind == "fp16" else float(np.finfo(np.float32).max)
        self.ranges = ranges
        graph = self.graph
        self.opsets = {o.domain or "": o.version for o in proto.opset_import}
        self.weights = {t.name: t for t in graph.initializer}
        values = (*graph.value_info, *graph.input, *graph.output)
        self.types: dict[str, int] = {v.name: v.type.tensor_type.elem_type for v in values}
        self.types.update((t.name, t.data_type) for t in graph.initializer)
        self.taken = set(self.types) | {n for node in graph.node for n in node.output}
        self.captured = captured_names(graph)
        self.report = PrecisionReport()
        self.made: dict[tuple[str, int], str] = {}  # (tensor, type) -> its cast

    def run(self) -> PrecisionReport:
        graph = self.graph
        outputs = {v.name for v in graph.output}
        nodes: list[NodeProto] = []
        native: dict[str, int] = {}
        renamed: dict[str, str] = {}
        for node in graph.node:
            signature = self._signature(node)
            wants = dict(zip(node.input, signature.inputs, strict=True) if signature else ())
            for index, name in enumerate(node.input):
                if not name or self.types.get(name) != self.single:
                    continue
                target = self.half if wants.get(name) else self.single
                nodes += self._cast_to(target, name, native.get(name, self.single), renamed)
                node.input[index] = self.made.get((name, target), renamed.get(name, name))
            after = []
            for index, name in enumerate(node.output):
                if not (signature and signature.outputs[index]) or not name:
                    continue
                native[name] = self.half
                if name in outputs:
                    inner = fresh(f"{name}_{self.kind}", self.taken)
                    renamed[name] = inner
                    node.output[index] = inner
                    after.append(
                        helper.make_node("Cast", [inner], [name], f"{inner}_cast", to=self.single)
                    )
                    self.made[name, self.single] = name
            nodes += [node, *after]
        for value in graph.value_info:
            if native.get(value.name) == self.half:
                value.type.tensor_type.elem_type = self.half
        replace_all(graph.node, nodes)
        used = {n for node in graph.node for n in node.input} | self.captured | outputs
        for name in [t.name for t in graph.initializer if t.name not in used]:
            graph.initializer.remove(self.weights[name])
        return self.report

    def _cast_to(
        self, target: int, name: str, have: int, renamed: Mapping[str, str]
    ) -> Iterator[NodeProto]:
        """The node that makes `name` available as `target`, unless it is or there is one."""
        if have == target or (name, target) in self.made:
            return
        suffix = self.kind if target == self.half else "fp32"
        new_name = fresh(f"{name}_{suffix}", self.taken)
        self.made[name, target] = new_name
        if name in self.weights:
            self._half_weight(name, new_name)
            return
        yield helper.make_node(
            "Cast", [renamed.get(name, name)], [new_name], f"{new_name}_cast", to=target
        )

    def _half_weight(self, name: str, new_name: str) -> None:
        values = numpy_helper.to_array(self.weights[name])
        tensor = self.graph.initializer.add()
        if self.kind == "fp16":
            # only bounds of Clip are beyond; infinities stay what they are
            fits = np.where(np.isfinite(values), values.clip(-self.largest, self.largest), values)
            half = fits.astype(np.float16)
            lost = np.count_nonzero((half == 0) & (values != 0))
            if lost:
                self.report.vanished[name] = lost / values.size
            tensor.CopyFrom(numpy_helper.from_array(half, new_name))
            return
        import ml_dtypes

        tensor.CopyFrom(numpy_helper.from_array(values.astype(ml_dtypes.bfloat16), new_name))

    def _signature(self, node: NodeProto) -> _Signature | None:
        """The parts of the node that become half; None if it stays as it is, the reason noted."""
        touches = [n for n in (*node.input, *node.output) if self.types.get(n) == self.single]
        if not touches or (self.only is not None and node.name not in self.only):
            return None
        reason, signature = self._judge(node)
        if signature is None:
            self.report.kept[node.name] = reason
            return None
        self.report.converted.append(node.name)
        return signature

    def _judge(self, node: NodeProto) -> tuple[str, _Signature | None]:
        if node.name in self.keep:
            return "asked for", None
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            return "holds a graph of its own", None
        if any(name in self.captured for name in node.output):
            return "its result is used by a graph inside a node", None
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            schema = defs.get_schema(node.op_type, self.opsets.get(domain, 1), domain)
        except defs.SchemaError:
            return f"{node.op_type} is no operator of ONNX: its types are not known", None
        unknown = [n for n in node.input if n and not self.types.get(n)]
        if unknown:
            return f"the type of its input {unknown[0]!r} is not known", None
        if node.op_type in _SUMS and self.kind == "fp16":
            return f"{_SUMS[node.op_type]} leave the range of FP16", None
        if why := self._does_not_fit(node):
            return why, None
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        word = "tensor(float16)" if self.kind == "fp16" else "tensor(bfloat16)"

        def ports(
            names: Sequence[str], formal: Sequence[onnx.defs.OpSchema.FormalParameter]
        ) -> list[bool]:
            last = len(formal) - 1
            return [
                self.types.get(name) == self.single
                and word in allowed.get(formal[min(i, last)].type_str, ())
                for i, name in enumerate(names)
            ]

        signature = _Signature(ports(node.input, schema.inputs), ports(node.output, schema.outputs))
        if node.op_type == "Cast":
            self._narrow_cast(node, signature)
        elif any(signature.outputs) and not any(signature.inputs):
            # the type comes from an attribute: a random, constant or range
            return f"{node.op_type} makes FP32 from no FP32 input", None
        if not any(signature.inputs) and not any(signature.outputs):
            return f"{node.op_type} has no {self.kind} form in this opset", None
        return "", signature

    def _narrow_cast(self, node: NodeProto, signature: _Signature) -> None:
        to = next(a for a in node.attribute if a.name == "to")
        if to.i == self.single:
            to.i = self.half
            signature.outputs = [True]

    def _does_not_fit(self, node: NodeProto) -> str | None:
        for name in node.input:
            tensor = self.weights.get(name)
            if tensor is None or tensor.data_type != self.single:
                continue
            values = numpy_helper.to_array(tensor)
            finite = np.abs(values[np.isfinite(values)])
            if finite.size and finite.max() > self.largest and node.op_type != "Clip":
                return f"weight {name!r} reaches {finite.max():.3g}, FP16 ends at {self.largest:g}"
            if node.op_type in ("QuantizeLinear", "DequantizeLinear") and finite.size:
                smallest = finite[finite > 0].min(initial=np.inf)
                if self.kind == "fp16" and smallest < 100 * _SMALLEST_FP16:
                    return f"the scale {name!r} of {smallest:.2g} is too small for FP16"
        for name in (*node.input, *node.output):
            if self.ranges.get(name, 0.0) > self.largest:
                return f"tensor {name!r} reaches {self.ranges[name]:.3g}, FP16 ends at 65504"
        return None
