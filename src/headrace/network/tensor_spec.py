"""Two descriptions of a tensor: the contract of a session's, and the findings of inference."""

from __future__ import annotations

import re

import numpy as np

from headrace._core.plain_record import PlainRecord, set_frozen
from headrace._core.types import Array, DType

Axes = tuple[int | str | None, ...]
"""Extents; a free axis is its name, or None."""

# Names that a person chose; exporters make up unk__7, Concatoutput_dim_2 and whole formulas.
_CHOSEN = re.compile(r"(?!unk__)(?!.*_dim_[0-9]+$)[A-Za-z]\w{0,23}")


# Texts that exporters write in the place of a name: axes that have one of them are unrelated.
_NO_NAMES = frozenset(("", "?", "None", "-1"))


def axis_name(text: str | None) -> str | None:
    """The name of a free axis; None if `text` stands for none, as the "?" of Paddle2ONNX."""
    return None if text is None or text in _NO_NAMES else text


class TensorSpec(PlainRecord, frozen=True):
    """Name, element type and shape of an input or output of a network, session or plugin.

    A free axis is its name, or None. An output of which not even the number of axes is known
    before the network has run has the shape ().
    """

    name: str
    dtype: DType
    shape: Axes

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape with -1 for each free axis."""
        return tuple(d if isinstance(d, int) else -1 for d in self.shape)

    def __str__(self) -> str:
        kind = "text" if self.dtype.kind == "O" else self.dtype.name
        if not self.shape:
            return f"{self.name} {kind}[...]"
        dims = ", ".join("?" if not _is_readable(d) else str(d) for d in self.shape)
        return f"{self.name} {kind}[{dims}]"


def _is_readable(axis: int | str | None) -> bool:
    return isinstance(axis, int) or (axis is not None and bool(_CHOSEN.fullmatch(axis)))


class TensorType(PlainRecord, frozen=True):
    """Type, shape and, for small tensors, elements of a value inside a graph.

    Beside a `TensorSpec`, which a caller can rely on, it may know less (no shape at all) or more
    (elements), and its element type may be one that NumPy does not have.

    Attributes:
        elem: ONNX element type (`onnx.TensorProto.FLOAT` …).
        axes: extents, -1 is taken for None; None if even the number of axes is unknown.
        value: the elements as far as they are known: of the tensor's own NumPy type if all are,
            else float64 with NaN for each unknown one.
    """

    elem: int
    axes: Axes | None
    value: Array | None = None

    def __post_init__(self) -> None:
        if self.axes is not None and -1 in self.axes:
            set_frozen(self, "axes", tuple(None if d == -1 else d for d in self.axes))

    @classmethod
    def of(cls, dtype: DType, axes: Axes | None) -> TensorType:
        """Describe a tensor of a NumPy type."""
        from onnx import helper

        return cls(int(helper.np_dtype_to_tensor_dtype(dtype)), axes)

    @property
    def dtype(self) -> DType:
        """Element type as NumPy has it."""
        from onnx import helper

        return np.dtype(helper.tensor_dtype_to_np_dtype(self.elem))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The axes with -1 for each free one."""
        if self.axes is None:
            return None
        return tuple(d if isinstance(d, int) else -1 for d in self.axes)

    def without_names(self) -> TensorType:
        """The same with nameless free axes, so that inference takes no two for equal."""
        return TensorType(self.elem, self.shape, self.value)

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The shape if every axis is a number."""
        shape = self.shape
        return None if shape is None or -1 in shape else shape

    @property
    def known(self) -> Array | None:
        """The value if every element is known."""
        value = self.value
        if value is None or (self.is_partial and np.isnan(value).any()):
            return None
        return value

    @property
    def is_partial(self) -> bool:
        """True if the value is kept as float64 because some element was unknown."""
        from onnx import TensorProto

        return (
            self.value is not None
            and self.value.dtype == np.float64
            and self.elem != TensorProto.DOUBLE
        )
