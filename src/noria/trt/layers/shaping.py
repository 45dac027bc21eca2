"""Layers that make and change shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noria.plugins.types import DataType, Dims
from noria.trt.api.enums import (
    FillOperation,
    InterpolationMode,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
)
from noria.trt.api.values import Permutation
from noria.trt.layers.base import ILayer, param, weights_param


def _dims(key: str, doc: str = "") -> Any:
    def get(self: ILayer) -> Dims:
        return Dims(self._params.get(key) or ())

    def put(self: ILayer, value: Any) -> None:
        self._set_param(key, tuple(Dims(value)))

    return property(get, put, doc=doc)


def _permutation(key: str, doc: str) -> Any:
    def get(self: ILayer) -> Permutation:
        value = self._params.get(key)
        return Permutation(range(8)) if value is None else Permutation(value)

    def put(self: ILayer, value: Any) -> None:
        self._set_param(key, tuple(Permutation(value)))

    return property(get, put, doc=doc)


class IShuffleLayer(ILayer):
    """Transpose, reshape, transpose. Input 1: the shape as a tensor."""

    first_transpose = _permutation("first_transpose", "Order of the axes before reshaping.")
    second_transpose = _permutation("second_transpose", "Order of the axes afterwards.")
    reshape_dims = _dims("reshape_dims", "0 copies an axis, -1 is worked out.")
    zero_is_placeholder = param("zero_is_placeholder", bool, "0 copies instead of being empty.")


class ISliceLayer(ILayer):
    """Inputs 1 to 4: start, shape, stride, fill value, instead of the attributes."""

    start = _dims("start", "First element of each axis.")
    shape = _dims("shape", "Elements of each axis.")
    stride = _dims("stride", "Steps along each axis.")
    axes = _dims("axes", "Axes that the numbers are for; all by default.")
    mode = param("mode", SampleMode, "Values outside the tensor.")


class IConcatenationLayer(ILayer):
    """Joins along `axis`."""

    @property
    def axis(self) -> int:
        """The axis; by default that of the channels."""
        axis = self._params.get("axis")
        if axis is not None:
            return int(axis)
        first = self._inputs[0]
        return max(0, len(first.shape) - 3) if first is not None else 0

    @axis.setter
    def axis(self, value: int) -> None:
        self._set_param("axis", int(value))


class IConstantLayer(ILayer):
    """`shape`, `weights`."""

    shape = _dims("shape", "Extents.")
    weights = weights_param("CONSTANT", "The elements.")


class IShapeLayer(ILayer):
    """The extents of a tensor as a tensor."""


class ISqueezeLayer(ILayer):
    """Input 1: axes that go."""


class IUnsqueezeLayer(ILayer):
    """Input 1: axes that come."""


class IAssertionLayer(ILayer):
    """Refuses the network if a condition is false."""

    message = param("message", str, "Text of the error.")


class IFillLayer(ILayer):
    """Inputs 0 to 2: shape, alpha, beta, instead of the attributes."""

    shape = _dims("shape", "Extents.")
    operation = param("operation", FillOperation, "The numbers that fill it.")
    alpha = param("alpha", float, "Start, least value or mean.")
    beta = param("beta", float, "Step, greatest value or deviation.")
    to_type = param("to_type", DataType, "Element type.")

    def set_alpha(self, value: float) -> None:
        """Set `alpha`."""
        self.alpha = value

    def set_beta(self, value: float) -> None:
        """Set `beta`."""
        self.beta = value

    def is_alpha_beta_int64(self) -> bool:
        """Whether they are integers."""
        return bool(self._params["to_type"] == DataType.INT64)


class IResizeLayer(ILayer):
    """To a `shape`, or by `scales`. Input 1: the shape as a tensor."""

    shape = _dims("shape", "Extents of the output.")
    resize_mode = param("resize_mode", InterpolationMode, "How pixels are mixed.")
    coordinate_transformation = param(
        "coordinate_transformation", ResizeCoordinateTransformation, "Where pixels come from."
    )
    selector_for_single_pixel = param("selector_for_single_pixel", ResizeSelector)
    nearest_rounding = param("nearest_rounding", ResizeRoundMode)
    exclude_outside = param("exclude_outside", bool)
    cubic_coeff = param("cubic_coeff", float)

    @property
    def scales(self) -> list[float]:
        """Factor of each axis; empty if a shape is set."""
        return list(self._params.get("scales") or ())

    @scales.setter
    def scales(self, value: Sequence[float]) -> None:
        self._params.pop("shape", None)
        self._set_param("scales", tuple(float(v) for v in value))

    @property
    def align_corners(self) -> bool:
        """The corner pixels' centres are mapped onto each other."""
        return bool(self._params["coordinate_transformation"].name == "ALIGN_CORNERS")

    @align_corners.setter
    def align_corners(self, value: bool) -> None:
        kind = ResizeCoordinateTransformation["ALIGN_CORNERS" if value else "ASYMMETRIC"]
        self._set_param("coordinate_transformation", kind)


class IGridSampleLayer(ILayer):
    """Inputs: pictures, grid of places in -1 … 1."""

    interpolation_mode = param("interpolation_mode", InterpolationMode)
    align_corners = param("align_corners", bool)
    sample_mode = param("sample_mode", SampleMode)

    def set_align_corners(self, value: bool) -> None:
        """Set `align_corners`."""
        self.align_corners = value
