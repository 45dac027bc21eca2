"""What is known about a tensor before it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_VALUES = 4096
"""Most elements of a tensor whose values are followed: shapes, indices, scales."""

Axes = tuple[int, ...]
"""Extents; -1 for one that is known only at run time."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Type, shape and, for small tensors, values.

    Attributes:
        elem: ONNX element type (`onnx.TensorProto.FLOAT` …).
        shape: None if even the number of axes is unknown.
        value: the elements as far as they are known: of the tensor's own NumPy type if all are,
            else float64 with NaN for each that is not.
    """

    elem: int
    shape: Axes | None
    value: npt.NDArray[Any] | None = None

    @property
    def rank(self) -> int | None:
        """Number of axes."""
        return None if self.shape is None else len(self.shape)

    @property
    def known(self) -> npt.NDArray[Any] | None:
        """The value if every element is known."""
        value = self.value
        if value is None or (self.is_partial and np.isnan(value).any()):
            return None
        return value

    @property
    def is_partial(self) -> bool:
        """The value is kept as float64 because some element was unknown."""
        from onnx import TensorProto

        return (
            self.value is not None
            and self.value.dtype == np.float64
            and self.elem != TensorProto.DOUBLE
        )


def type_proto(info: TensorInfo) -> Any:
    """The ONNX type; axes that are not known have no name, so no two are taken for equal."""
    from onnx import helper

    shape = None if info.shape is None else [None if d < 0 else d for d in info.shape]
    return helper.make_tensor_type_proto(info.elem, shape)
