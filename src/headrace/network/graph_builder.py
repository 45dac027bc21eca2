"""Making an ONNX graph node by node, with shapes known at each step.

Shared by the importers of other formats. Their layers define output shapes by rules of their own,
so every node is given its shape; nothing is inferred and nothing can silently differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ModelError
from headrace._core.types import Array, DType
from headrace.network.ir import ir

OPSET = 17  # everything used here is in it, and every runtime takes it
PLUGIN_DOMAIN = "trt.plugins"
"""Domain of nodes that plugins compute; TensorRT's parser looks at the type alone."""
_IR_VERSION = 8

Shape = tuple[int, ...]
"""Axes of a tensor; a negative one, -k, is k times the batch. The batch alone is -1."""

BATCH = -1
MAX_ELEMENTS = 2**28
"""Most elements of one tensor, for one item of a batch: 1 GiB. More is a mistake or an attack."""

MAX_FIXED_ELEMENTS = 2**24
"""The same for tensors that no input decides: runtimes compute them when they load the model."""


def size(shape: Shape) -> int:
    """Elements of a tensor; negative if that is a multiple of the batch."""
    return prod(shape)


def fresh(name: str, taken: set[str]) -> str:
    """Return `name`, with a number behind it if it is taken, and add it to `taken`."""
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate


def shape_text(shape: Shape) -> str:
    """A shape for people: `batch x 3 x 240 x 320`."""
    parts = [("batch" if d == -1 else f"{-d}*batch") if d < 0 else str(d) for d in shape]
    return " x ".join(parts) or "scalar"


@dataclass(frozen=True, slots=True)
class Blob:
    """A tensor in the making: the graph's value, its shape, its content if that is constant.

    `fixed`: it does not depend on the network's input.
    """

    value: ir.Value
    shape: Shape
    array: Array | None = None
    fixed: bool = False

    @property
    def rank(self) -> int:
        """Number of axes, the batch included."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """Element type."""
        if self.array is not None:
            return self.array.dtype
        assert self.value.dtype is not None
        return np.dtype(self.value.dtype.numpy())


class GraphBuilder:
    """Collects nodes, constants, inputs and outputs, then makes the model.

    Attributes:
        where: the object being built, for error messages; importers set it for each layer.
        label: prefix of the names of nodes, values and constants; likewise.
    """

    def __init__(self, name: str, *, producer: str) -> None:
        self.where: str | None = None
        self.label = ""
        self._name = name
        self._producer = producer
        self._inputs: list[Blob] = []
        self._outputs: list[ir.Value] = []
        self._nodes: list[ir.Node] = []
        self._names: dict[str, int] = {}
        self._small: dict[tuple[str, Shape, bytes], Blob] = {}

    def error(
        self, problem: str, *, expected: str | None = None, fix: str | Sequence[str] | None = None
    ) -> ModelError:
        """Make an error about the object being built."""
        return ModelError(problem, where=self.where, expected=expected, fix=fix)

    def input(self, name: str, shape: Shape) -> Blob:
        """A float32 input of the network."""
        blob = self._blob(name, shape, np.float32)
        self._inputs.append(blob)
        return blob

    def constant(
        self, array: npt.ArrayLike, dtype: npt.DTypeLike = np.float32, name: str = ""
    ) -> Blob:
        """A constant tensor; equal small ones are shared."""
        data = np.ascontiguousarray(array, dtype=dtype)
        if np.ndim(array) == 0:
            data = data.reshape(())
        key = (data.dtype.str, data.shape, data.tobytes()) if data.size <= 16 else None
        if key in self._small:
            return self._small[key]
        full = self._unique(f"{self.label}/{name}" if name else f"{self.label}/constant")
        value = ir.val(full, const_value=ir.tensor(data, name=full))
        blob = Blob(value, data.shape, data, fixed=True)
        if key is not None:
            self._small[key] = blob
        return blob

    def node(
        self,
        op: str,
        inputs: Sequence[Blob | None],
        shape: Shape | None,
        *,
        dtype: npt.DTypeLike = np.float32,
        **attributes: Any,
    ) -> Blob:
        """One operator with one output of this shape; None: known only when it runs."""
        return self.nodes(op, inputs, [(shape, dtype)], **attributes)[0]

    def nodes(
        self,
        op: str,
        inputs: Sequence[Blob | None],
        outputs: Sequence[tuple[Shape | None, npt.DTypeLike]],
        *,
        domain: str = "",
        name: str = "",
        **attributes: Any,
    ) -> list[Blob]:
        """One operator with outputs of (shape, dtype) each. `name`: if it must have one."""
        fixed = all(b is None or b.fixed for b in inputs)
        for shape, _ in outputs:
            if shape is not None:
                self.check_shape(shape, MAX_FIXED_ELEMENTS if fixed else MAX_ELEMENTS)
        name = self._unique(name or f"{self.label}/{op}")
        blobs = [self._blob(f"{name}:{i}", s, d, fixed) for i, (s, d) in enumerate(outputs)]
        values = [b.value if b is not None else None for b in inputs]
        node = ir.node(
            op, values, attributes, domain=domain, outputs=[b.value for b in blobs], name=name
        )
        self._nodes.append(node)
        return blobs

    def check_shape(self, shape: Shape, most: int = MAX_ELEMENTS) -> None:
        """Refuse a shape that cannot be meant."""
        if any(d == 0 for d in shape):
            raise self.error(f"the result would be empty: {shape_text(shape)}")
        if abs(size(shape)) > most:
            raise self.error(
                f"the result would have {abs(size(shape))} elements: {shape_text(shape)}",
                expected=f"at most {most}",
            )

    def reshape(self, blob: Blob, shape: Shape) -> Blob:
        """The same elements in another shape."""
        if shape == blob.shape:
            return blob
        if size(shape) != size(blob.shape):
            raise self.error(
                f"{shape_text(blob.shape)} cannot become {shape_text(shape)}",
                expected="the same number of elements",
            )
        if blob.array is not None:
            return self.constant(blob.array.reshape(shape), blob.array.dtype)
        target = [
            0 if d < 0 and i < blob.rank and blob.shape[i] == d else -1 if d < 0 else d
            for i, d in enumerate(shape)
        ]
        inputs = [blob, self.constant(target, np.int64)]
        return self.node("Reshape", inputs, shape, dtype=blob.dtype)

    def transpose(self, blob: Blob, order: Sequence[int]) -> Blob:
        """Axes in another order."""
        if list(order) == list(range(blob.rank)):
            return blob
        if blob.array is not None:
            return self.constant(blob.array.transpose(order), blob.array.dtype)
        shape = tuple(blob.shape[i] for i in order)
        return self.node("Transpose", [blob], shape, dtype=blob.dtype, perm=list(order))

    def slice(self, blob: Blob, axis: int, start: int, end: int) -> Blob:
        """Elements `start` to `end` of one axis."""
        bounds = [self.constant([n], np.int64) for n in (start, end, axis)]
        shape = (*blob.shape[:axis], end - start, *blob.shape[axis + 1 :])
        return self.node("Slice", [blob, *bounds], shape, dtype=blob.dtype)

    def for_each_image(self, blob: Blob, like: Blob) -> Blob:
        """Repeat a tensor of one item along the batch of `like`."""
        lengths = self.node("Shape", [like], (like.rank,), dtype=np.int64)
        batch = self.slice(lengths, 0, 0, 1)
        rest = self.constant([1] * (blob.rank - 1), np.int64)
        target = self.node("Concat", [batch, rest], (blob.rank,), dtype=np.int64, axis=0)
        return self.node("Expand", [blob, target], (BATCH, *blob.shape[1:]), dtype=blob.dtype)

    def output(self, name: str, blob: Blob) -> None:
        """Make `blob` an output of the network under this very name."""
        taken = any(blob.value is v for v in self._outputs)
        made_here = blob.value.producer() is not None
        if taken or not made_here:
            blob = self.node("Identity", [blob], blob.shape, dtype=blob.dtype)
        blob.value.name = name
        self._outputs.append(blob.value)

    def finish(self) -> ir.Model:
        """Make the model, without nodes that no output needs."""
        constants: dict[int, ir.Value] = {}
        kept: list[ir.Node] = []
        needed = {id(v) for v in self._outputs}
        for node in reversed(self._nodes):  # they stand in the order of their making
            if not any(id(v) in needed for v in node.outputs):
                continue
            kept.append(node)
            for value in node.inputs:
                if value is None:
                    continue
                needed.add(id(value))
                if value.const_value is not None:
                    constants[id(value)] = value
        inputs = [b.value for b in self._inputs]
        graph = ir.Graph(
            [v for v in inputs if id(v) in needed] or inputs[:1],
            self._outputs,
            nodes=kept[::-1],
            initializers=list(constants.values()),
            opset_imports={"": OPSET, **{n.domain: 1 for n in kept if n.domain}},
            name=self._name or "network",
        )
        return ir.Model(graph, ir_version=_IR_VERSION, producer_name=self._producer)

    def _blob(
        self, name: str, shape: Shape | None, dtype: npt.DTypeLike, fixed: bool = False
    ) -> Blob:
        kind = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
        if shape is None:
            return Blob(ir.Value(name=name, type=kind), (), fixed=fixed)
        axes = [None if d < -1 else "batch" if d == -1 else d for d in shape]
        return Blob(ir.Value(name=name, shape=ir.Shape(axes), type=kind), shape, fixed=fixed)

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"
