"""Scales of INT8 of the tensors at plugins: of a table, or of Q/DQ pairs beside the plugins.

Source: tensorrt-plugins spec 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


_PAIRS = ("QuantizeLinear", "DequantizeLinear")


class TensorScales:
    """See module.

    Args:
        proto: the graph that plugins are built for.
        table: tensor -> scale.
    """

    def __init__(self, proto: ModelProto, table: Mapping[str, float]) -> None:
        weights = {t.name: t for t in proto.graph.initializer}
        self._table = dict(table)

        def of_pair(node: NodeProto) -> float:
            tensor = weights.get(node.input[1])
            if tensor is None:
                return 0.0
            from onnx import numpy_helper

            values = numpy_helper.to_array(tensor)
            return float(values.reshape(-1)[0]) if values.size == 1 else 0.0

        for node in proto.graph.node:
            if node.op_type in _PAIRS and (scale := of_pair(node)) > 0:
                for name in (node.input[0], *node.output):
                    self._table.setdefault(name, scale)

    def of(self, names: Sequence[str]) -> list[float]:
        """The scale of each tensor, 0 for those without; an empty list if none has any."""
        scales = [self._table.get(name, 0.0) for name in names]
        return scales if any(scales) else []
