"""The base of the standard plugins, apart from the generation of their interface.

A `StandardLayer` has fields, shapes and arithmetic, all with the batch axis. `adapters.py` makes a
plugin of any of the five classes of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headrace._core.errors import ModelError
from headrace._core.types import Array, DType
from headrace.plugins.expressions import DimsExprs, IDimensionExpr, SymbolicExtent
from headrace.plugins.standard.fields import Field, Given
from headrace.plugins.types import DataType, DimensionOperation

if TYPE_CHECKING:
    import numpy.typing as npt
    from onnx import NodeProto


class Decomposition:
    """Collects the nodes that replace one plugin node.

    Args:
        label: prefix of the names of new nodes and values.
        inputs, outputs: names of the values that the plugin reads and writes; "" is left out.
        shapes: of the inputs as far as they are known, None for free axes; None where nothing is.
        dtypes: of the inputs as far as they are known.
        opset: of the network, for the standard domain.

    Attributes:
        nodes: the `NodeProto`s so far.
    """

    def __init__(
        self,
        label: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        shapes: Sequence[tuple[int | None, ...] | None] = (),
        dtypes: Sequence[DType | None] = (),
        opset: int,
    ) -> None:
        self.label, self.opset = label, opset
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.shapes = (*shapes, *[None] * (len(inputs) - len(shapes)))
        self.dtypes = (*dtypes, *[None] * (len(inputs) - len(dtypes)))
        self.nodes: list[NodeProto] = []

    @property
    def dtype(self) -> DType:
        """Type of the first input; float32 if it is not known."""
        return self.dtypes[0] or np.dtype(np.float32)

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """A node with one output, called `out` or something new; gives its name."""
        return self.ops(kind, inputs, [out or self._name(kind)], **attributes)[0]

    def ops(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> Sequence[str]:
        """A node with several outputs."""
        from onnx import helper

        name = f"{self.label}/{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), name, **attributes))
        return outputs

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> str:
        """A constant; of the type of the first input unless `dtype` is given."""
        from onnx import numpy_helper

        array = np.asarray(value, dtype or self.dtype)
        return self.op("Constant", value=numpy_helper.from_array(array))

    def integers(self, value: npt.ArrayLike) -> str:
        """An INT64 constant: axes, shapes, indices."""
        return self.constant(value, np.int64)

    def reduce_sum(self, x: str, axes: Sequence[int]) -> str:
        """Sum over axes, which stay with extent 1."""
        if self.opset >= 13:
            return self.op("ReduceSum", x, self.integers(list(axes)), keepdims=1)
        return self.op("ReduceSum", x, axes=list(axes), keepdims=1)

    def _name(self, kind: str) -> str:
        return f"{self.label}/{kind}_{len(self.nodes)}_out"


Interface = Literal["V2", "V2Ext", "IOExt", "Dyn", "V3"]


Extent = int | SymbolicExtent
"""The extent of an axis: a number, or an expression where it is known only at run time."""
Shape = tuple[Extent, ...]


def product(axes: Iterable[Extent]) -> Extent:
    """All axes multiplied; 1 for none."""
    total: Extent = 1
    for axis in axes:
        total = axis * total
    return total


def smaller(a: Extent, b: Extent) -> Extent:
    """The smaller of two extents."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    first, second = (b, a) if isinstance(a, int) else (a, b)
    return SymbolicExtent(first).apply(DimensionOperation.MIN, second)


def extents(shape: Iterable[IDimensionExpr]) -> Shape:
    """The axes of a `DimsExprs`: numbers where they are known."""
    return tuple(e.get_constant_value() if e.is_constant() else SymbolicExtent(e) for e in shape)


def expressions(shape: Shape) -> DimsExprs:
    """The reverse of `extents`."""
    return DimsExprs(SymbolicExtent(extent).expr for extent in shape)


class StandardLayer(ABC):
    """A standard plugin: fields, shapes, arithmetic. Immutable, usable from any thread.

    Attributes:
        name, version: what it is registered as.
        interface: the class of plugin that the original is.
        later: version and interface of the same plugin in later releases.
        fields: what its creator takes, in the original's order.
        inputs: least and greatest number of inputs.
        integer_inputs, integer_outputs: places of tensors of INT32 (inputs may be INT64 too);
            the others are FLOAT or HALF, all the same. Where fields decide it, `check` sets it.
        outputs: number of outputs; where fields decide it, `check` sets it.
        any_type: tensors that are not integers may be of any type, all the same.
        half: whether floats may be HALF.
        refused: fields of the original that are an error here, and why.
        native: whether its loops are C++.

    Raises:
        ModelError: values that contradict each other.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    interface: ClassVar[Interface]
    later: ClassVar[tuple[tuple[str, Interface], ...]] = ()
    fields: ClassVar[tuple[Field, ...]] = ()
    inputs: ClassVar[tuple[int, int]] = (1, 1)
    integer_inputs: frozenset[int] = frozenset()
    integer_outputs: ClassVar[frozenset[int]] = frozenset()
    any_type: ClassVar[bool] = False
    half: ClassVar[bool] = True
    refused: ClassVar[Mapping[str, str]] = MappingProxyType({})
    native: ClassVar[bool] = False
    outputs: int = 1

    def __init__(self, values: Given, where: str = "") -> None:
        self.given = values
        self.where = where
        self._known: dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]] = {}
        self.check()

    def check(self) -> None:  # noqa: B027  (most have nothing to add)
        """Look at the fields together."""

    @abstractmethod
    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        """Shapes of the outputs, batch included.

        Raises:
            ModelError: as far as it is known, the inputs do not fit.
        """

    @abstractmethod
    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """The outputs. The inputs are of the shapes that `shapes` accepted, float32 where float."""

    def decompose(self, graph: Decomposition) -> bool:
        """Add the ONNX nodes that compute exactly the same; False if there are none."""
        return False

    # --- types -------------------------------------------------------------------------------

    def accepts(self, pos: int, types: Sequence[DataType | None], num_inputs: int) -> bool:
        """Whether tensor `pos` may be `types[pos]`, given those before it; inputs come first."""
        asked = types[pos]
        index, integers = (pos, self.integer_inputs)
        if pos >= num_inputs:
            index, integers = (pos - num_inputs, self.integer_outputs)
        if index in integers:
            return asked == DataType.INT32 or (pos < num_inputs and asked == DataType.INT64)
        first = next(
            (i for i in range(pos) if i >= num_inputs or i not in self.integer_inputs), None
        )
        if first is not None:
            return asked == types[first]
        if self.any_type:
            return asked in _COPIED
        return asked == DataType.FLOAT or (self.half and asked == DataType.HALF)

    def output_type(self, index: int, input_types: Sequence[DataType]) -> DataType:
        """Type of output `index`."""
        if index in self.integer_outputs:
            return DataType.INT32
        kinds = [t for i, t in enumerate(input_types) if i not in self.integer_inputs]
        return kinds[0] if kinds else DataType.FLOAT

    # --- checks of shapes --------------------------------------------------------------------

    def error(
        self, problem: str, *, expected: str | None = None, fix: str | None = None
    ) -> ModelError:
        """An error about this layer."""
        return ModelError(problem, where=self.where or self.name, expected=expected, fix=fix)

    def count(self, inputs: Sequence[object]) -> None:
        """Refuse a wrong number of inputs."""
        low, high = self.inputs
        if not low <= len(inputs) <= high:
            expected = f"{low}" if low == high else f"{low} to {high}"
            raise self.error(f"{self.name} has {len(inputs)} inputs", expected=expected)

    def rank(
        self, inputs: Sequence[Shape], index: int, *ranks: int, fix: str | None = None
    ) -> Shape:
        """The shape of an input that must have one of `ranks` axes, batch included."""
        shape = inputs[index]
        if len(shape) not in ranks:
            raise self.error(
                f"input {index} of {self.name} has {len(shape)} axes",
                expected=f"{' or '.join(map(str, ranks))}, the batch included",
                fix=fix,
            )
        return shape

    def agree(self, a: Extent, b: Extent, what: str) -> None:
        """Refuse two extents that are known to differ."""
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise self.error(f"{self.name}: {what}: {a} and {b}", expected="the same number")

    def require_ones(self, axes: Iterable[Extent]) -> None:
        """Refuse axes behind the hidden units that are known to be other than 1."""
        for size in axes:
            self.agree(size, 1, "an axis behind the units, and 1")

    def countable(self, boxes: Extent, classes: Extent) -> None:
        """Refuse more scores than the native suppression counts."""
        if isinstance(boxes, int) and isinstance(classes, int) and boxes * classes >= 2**31:
            raise self.error(
                f"{boxes} boxes of {classes} classes", expected="less than 2^31 scores"
            )

    def number(self, extent: Extent, what: str) -> int:
        """An extent that must be known while building."""
        if isinstance(extent, int) and extent >= 0:
            return extent
        raise self.error(f"{self.name}: {what} is known only at run time",
                         expected="a fixed number")  # fmt: skip

    # --- running -----------------------------------------------------------------------------

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Fill the outputs. Shapes are judged first, so that nothing native meets wrong ones.

        Raises:
            ModelError: the shapes do not fit.
        """
        key = tuple(a.shape for a in inputs)
        shapes = self._known.get(key)
        if shapes is None:
            self.count(inputs)
            shapes = [tuple(map(int, s)) for s in self.shapes(key)]  # type: ignore[arg-type]
            if len(self._known) > 64:
                self._known.clear()
            self._known[key] = shapes
        for i, (output, shape) in enumerate(zip(outputs, shapes, strict=False)):
            if output.shape != shape:
                raise self.error(
                    f"output {i} of {self.name} is {output.shape}", expected=f"{shape}"
                )
        if not any(output.size for output in outputs):
            return
        with np.errstate(all="ignore"):
            floats = [a.astype(np.float32) if a.dtype == np.float16 else a for a in inputs]
            for output, result in zip(outputs, self.compute(floats), strict=False):
                np.copyto(output, result, casting="unsafe")


class ScalarCount(StandardLayer):
    """In front of a class: without a batch axis the number is a scalar of each image."""

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        first, *others = super().shapes(inputs)  # type: ignore[safe-super]
        return [first[:1], *others]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        count, *others = super().compute(inputs)  # type: ignore[safe-super]
        return [count[:, 0], *others]


_COPIED = frozenset(
    (DataType.FLOAT, DataType.HALF, DataType.INT32, DataType.INT8, DataType.BOOL, DataType.UINT8,
     DataType.INT64)
)  # fmt: skip
