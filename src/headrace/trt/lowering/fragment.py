"""The nodes of one layer in the making, with the type of every tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from onnx import helper

from headrace._core.types import Array, DType
from headrace.network.shapes.node_shapes import InferenceError, Shape, infer_node
from headrace.network.shapes.protos import MAX_VALUES
from headrace.network.tensor_spec import TensorType

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


Inputs = list[str | None]
"""Names of a layer's inputs; None for one that is left out."""


class LoweringError(ValueError):
    """A layer is impossible; the text goes to the logger."""


def bodies(node: NodeProto) -> list[GraphProto]:
    """The graphs inside a node."""
    return [graph for a in node.attribute for graph in (a.g, *a.graphs)]


def required(inputs: Inputs, index: int) -> str:
    """The name of an input that must be there.

    Raises:
        LoweringError: it is left out.
    """
    name = inputs[index] if index < len(inputs) else None
    if name is None:
        raise LoweringError(f"input {index} is missing")
    return name


class Fragment:
    """Nodes and constants of one layer.

    Attributes:
        opset: version of ONNX's operators that the network uses.
        implicit: axis 0 is a batch that the layer's own numbers leave out.
        strong: types are never converted for the user.
        infos: the type of each tensor, by its name inside the network.
        nodes: `onnx.NodeProto`s in order.
        constants: name -> array.
        roles: `KERNEL`, `BIAS` … -> name of the constant that can be refitted.
        placeholders: tensors that the loop around makes.
    """

    def __init__(
        self,
        prefix: str,
        opset: int,
        infos: Mapping[str, TensorType],
        *,
        implicit: bool = False,
        strong: bool = False,
        domains: Mapping[str, int] | None = None,
    ) -> None:
        self.opset = opset
        self.implicit = implicit
        self.strong = strong
        self.domains = dict(domains or {})
        self.infos = dict(infos)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.roles: dict[str, str] = {}
        self.placeholders: list[str] = []
        self._prefix = prefix
        self._count = 0

    @property
    def offset(self) -> int:
        """Axes in front of those that the layer counts."""
        return int(self.implicit)

    def fresh(self, hint: str) -> str:
        """A name that nothing in the network has."""
        self._count += 1
        return f"{self._prefix}.{self._count}:{hint}"

    def const(
        self, array: npt.ArrayLike, dtype: npt.DTypeLike | None = None, *, role: str | None = None
    ) -> str:
        """A constant; with `role` one that a refitter can replace."""
        data = np.asarray(array, dtype)
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data).reshape(data.shape)
        name = self.fresh(role or "constant")
        self.constants[name] = data
        value = data if data.size <= MAX_VALUES else None
        self.infos[name] = TensorType(_elem(data.dtype), data.shape, value)
        if role is not None:
            self.roles[role] = name
        return name

    def placeholder(self, hint: str, info: TensorType) -> str:
        """A tensor that no node here makes: the loop around does."""
        name = self.fresh(hint)
        self.infos[name] = info
        self.placeholders.append(name)
        return name

    def initializer(self, name: str, array: Array) -> str:
        """A constant of a parsed model: the same name in every layer that uses it."""
        inner = f"%w:{name}"
        if inner not in self.constants:
            self.constants[inner] = array
            value = array if array.size <= MAX_VALUES else None
            self.infos[inner] = TensorType(_elem(array.dtype), array.shape, value)
        return inner

    def op(self, op: str, *inputs: str | None, **attributes: Any) -> str:
        """One operator with one output; its name."""
        return self.ops(op, inputs, 1, **attributes)[0]

    def ops(
        self, op: str, inputs: Sequence[str | None], count: int, **attributes: Any
    ) -> list[str]:
        """One operator with `count` outputs; attributes that are None are left out.

        Raises:
            LoweringError: ONNX refuses the inputs.
        """
        settings = {k: v for k, v in attributes.items() if v is not None}
        outputs = [self.fresh(op) for _ in range(count)]
        node = helper.make_node(op, [i or "" for i in inputs], outputs, **settings)
        self.append(node)
        return outputs

    def append(self, node: NodeProto) -> None:
        """Append a node as it is and infer the types of its outputs."""
        try:
            types = infer_node(node, self.infos, self.opset, self.domains)
        except InferenceError as error:
            raise LoweringError(str(error)) from error
        self.nodes.append(node)
        for name, info in zip(node.output, types, strict=True):
            if name and info is not None:
                self.infos[name] = info

    def shape(self, name: str) -> Shape:
        """Extents of a tensor.

        Raises:
            LoweringError: its number of axes is not known.
        """
        shape = self.infos[name].shape if name in self.infos else None
        if shape is None:
            raise LoweringError("the number of axes of an input is not known")
        return shape

    def rank(self, name: str) -> int:
        """Number of axes."""
        return len(self.shape(name))

    def known(self, name: str | None) -> Array | None:
        """All values of a tensor, if they are known."""
        return None if name is None or name not in self.infos else self.infos[name].known

    def dtype(self, name: str) -> DType:
        """Element type."""
        return self.infos[name].dtype

    def is_float(self, name: str) -> bool:
        """Whether a tensor holds floating-point numbers of any width."""
        kind = self.dtype(name)
        return kind.kind == "f" or "float" in kind.name

    def cast(self, name: str, dtype: npt.DTypeLike) -> str:
        """The same values in a NumPy type."""
        kind = np.dtype(dtype)
        return name if self.dtype(name) == kind else self.op("Cast", name, to=_elem(kind))

    def cast_to_elem(self, name: str, elem: int) -> str:
        """The same values in an ONNX type, which NumPy need not have."""
        return name if self.infos[name].elem == elem else self.op("Cast", name, to=elem)

    def like(self, array: npt.ArrayLike, other: str) -> str:
        """A constant of the type of another tensor."""
        return self.const(np.asarray(array).astype(self.dtype(other)))

    def ints(self, *numbers: int) -> str:
        """A list of int64."""
        return self.const(np.array(numbers, np.int64))

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        """New axes of extent 1 at these places of the result."""
        if self.opset < 13:
            return self.op("Unsqueeze", name, axes=list(axes))
        return self.op("Unsqueeze", name, self.ints(*axes))

    def squeeze(self, name: str, axes: Sequence[int]) -> str:
        """Without these axes of extent 1."""
        if self.opset < 13:
            return self.op("Squeeze", name, axes=list(axes))
        return self.op("Squeeze", name, self.ints(*axes))

    def reduce(self, op: str, name: str, axes: Sequence[int], *, keep: bool = True) -> str:
        """`ReduceSum`, `ReduceMean` … over axes."""
        if self.opset >= 18 or (op == "ReduceSum" and self.opset >= 13):
            return self.op(op, name, self.ints(*axes), keepdims=int(keep))
        return self.op(op, name, axes=list(axes), keepdims=int(keep))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The same elements; 0 copies an axis, -1 is worked out."""
        return self.op("Reshape", name, self.ints(*shape))

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """Axes in another order."""
        if list(order) == list(range(len(order))):
            return name
        return self.op("Transpose", name, perm=list(order))

    def extents(self, name: str) -> str:
        """The shape as a tensor of int64; a constant where it is known."""
        shape = self.shape(name)
        return self.op("Shape", name) if -1 in shape else self.ints(*shape)

    def extent(self, name: str, axis: int) -> str:
        """One axis' extent as a tensor of one int64."""
        length = self.shape(name)[axis]
        if length >= 0:
            return self.ints(length)
        return self.op("Gather", self.op("Shape", name), self.ints(axis), axis=0)

    def axes(self, mask: int, rank: int) -> list[int]:
        """Axes of a bit mask, counted with the batch."""
        return [i + self.offset for i in range(rank - self.offset) if mask >> i & 1]

    def same_type(self, a: str, b: str) -> tuple[str, str]:
        """Bring two tensors to one type.

        Integers go to the wider type, floats to FP32 unless the network is strongly typed; others
        stay as they are.
        """
        left, right = self.dtype(a), self.dtype(b)
        if left != right and left.kind in "iu" and right.kind in "iu":
            wide = np.promote_types(left, right)
            return self.cast(a, wide), self.cast(b, wide)
        if left != right and self.is_float(a) and self.is_float(b):
            if self.strong:
                raise LoweringError(
                    f"{left.name} and {right.name} meet in a strongly typed network; add a cast"
                )
            return self.cast(a, np.float32), self.cast(b, np.float32)
        return a, b


def _elem(dtype: npt.DTypeLike) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
