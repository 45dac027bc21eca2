"""Standard ONNX operators in a plugin's place, where they compute exactly the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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
        dtypes: Sequence[np.dtype[Any] | None] = (),
        opset: int,
    ) -> None:
        self.label, self.opset = label, opset
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.shapes = (*shapes, *[None] * (len(inputs) - len(shapes)))
        self.dtypes = (*dtypes, *[None] * (len(inputs) - len(dtypes)))
        self.nodes: list[Any] = []

    @property
    def dtype(self) -> np.dtype[Any]:
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

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant; of the type of the first input unless `dtype` is given."""
        from onnx import numpy_helper

        array = np.asarray(value, dtype or self.dtype)
        return self.op("Constant", value=numpy_helper.from_array(array))

    def integers(self, value: Any) -> str:
        """An INT64 constant: axes, shapes, indices."""
        return self.constant(value, np.int64)

    def reduce_sum(self, x: str, axes: Sequence[int]) -> str:
        """Sum over axes, which stay with extent 1."""
        if self.opset >= 13:
            return self.op("ReduceSum", x, self.integers(list(axes)), keepdims=1)
        return self.op("ReduceSum", x, axes=list(axes), keepdims=1)

    def _name(self, kind: str) -> str:
        return f"{self.label}/{kind}_{len(self.nodes)}_out"
