"""Layers that sum up."""

from __future__ import annotations

from noria.plugins.types import DataType, Dims
from noria.trt.api.enums import CumulativeOperation, MatrixOperation, ReduceOperation
from noria.trt.layers.base import ILayer, param


class IMatrixMultiplyLayer(ILayer):
    """Batched product; leading axes are broadcast."""

    op0 = param("op0", MatrixOperation, "How the first input is read.")
    op1 = param("op1", MatrixOperation, "How the second input is read.")


class IEinsumLayer(ILayer):
    """Einstein's sum."""

    equation = param("equation", str)


class IReduceLayer(ILayer):
    """Over the axes of a mask."""

    op = param("op", ReduceOperation)
    axes = param("axes", int, "Mask.")
    keep_dims = param("keep_dims", bool, "Reduced axes stay, with extent 1.")


class ISoftMaxLayer(ILayer):
    """Along one axis."""

    @property
    def axes(self) -> int:
        """Mask of the axis; by default max(0, rank - 3)."""
        mask = self._params.get("axes")
        if mask is not None:
            return int(mask)
        first = self._inputs[0]
        return 1 << max(0, len(first.shape) - 3) if first is not None else 1

    @axes.setter
    def axes(self, value: int) -> None:
        self._set_param("axes", int(value))


class IRaggedSoftMaxLayer(ILayer):
    """Inputs: x, elements that count in each row."""


class ICumulativeLayer(ILayer):
    """Running sums. Input 1: the axis."""

    op = param("op", CumulativeOperation)
    exclusive = param("exclusive", bool)
    reverse = param("reverse", bool)


class INormalizationLayer(ILayer):
    """Inputs: x, scale, bias."""

    epsilon = param("epsilon", float)
    axes = param("axes", int, "Mask.")
    num_groups = param("num_groups", int)
    compute_precision = param("compute_precision", DataType)


class IQuantizeLayer(ILayer):
    """Inputs: x, scale."""

    axis = param("axis", int, "Axis of a scale for each channel; -1 for one scale.")
    to_type = param("to_type", DataType)


class IDequantizeLayer(ILayer):
    """Inputs: q, scale."""

    axis = param("axis", int, "Axis of a scale for each channel; -1 for one scale.")
    to_type = param("to_type", DataType)


class IDynamicQuantizeLayer(ILayer):
    """Outputs: the rounded numbers, a scale for each block."""

    axis = param("axis", int, "Axis that is cut into blocks.")
    block_size = param("block_size", int, "Elements of a block along it.")
    block_shape = param("block_shape", Dims, "Extents of a block along every axis; -1 is all.")
    to_type = param("to_type", DataType)
    scale_type = param("scale_type", DataType)
