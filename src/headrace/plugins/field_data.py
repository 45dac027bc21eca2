"""Fields: the named, typed values that creators take and version-3 plugins are saved as.

Buffers of bytes are taken as they are, as the original takes every buffer. Numbers of Python have
no bytes of their own and become the type of the field; arrays of another type do if that keeps
their values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import PluginError
from headrace._core.text import shortened
from headrace._core.types import Array, DType
from headrace.plugins.memory import bfloat16_bits
from headrace.plugins.types import NumberedEnum

if TYPE_CHECKING:
    import numpy.typing as npt


_RAW_FORMATS = frozenset({"B", "b", "c", "<B", "<b", "@B", "@b"})
_SHOWN = 5


def raw_bytes(data: object) -> bytes | None:
    """The bytes of a buffer without an element type; None for anything else."""
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, memoryview) and data.format in _RAW_FORMATS:
        return data.tobytes()
    if isinstance(data, np.ndarray) and (data.dtype == np.uint8 or data.dtype.kind == "V"):
        return data.tobytes()  # kind V: types that NumPy does not have, such as bfloat16
    return None


def values_of(data: object, dtype: DType, name: str, kind: str) -> Array:
    """Numbers as an array of `dtype`.

    `name` and `kind` are those of the field, for messages.

    Raises:
        PluginError: the type cannot hold them, or an array would lose digits (other than
            float64 for a float32 field).
    """
    plain = isinstance(data, (int, float, np.generic, list, tuple))
    try:
        array = np.asarray(data)
    except ValueError as error:  # a ragged list
        raise _refused(data, name, kind, dtype) from error
    if array.dtype == dtype:
        return array
    if array.size == 0 and plain:
        return array.astype(dtype)
    if array.dtype.kind not in "biuf":
        raise _refused(data, name, kind, dtype)
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
        rounds = dtype.kind == "f" and (
            plain or (array.dtype == np.float64 and dtype == np.float32)
        )
        if rounds:
            kept = bool(np.all(np.isfinite(converted) | ~np.isfinite(array)))
        else:
            back = converted.astype(array.dtype)
            same = (back == array) | ((back != back) & (array != array))
            kept = bool(np.all(same & ((converted < 0) == (array < 0))))
    if not kept:
        raise _refused(data if plain else array, name, kind, dtype)
    return converted


def _refused(data: object, name: str, kind: str, dtype: DType) -> PluginError:
    if isinstance(data, np.ndarray):
        values = data.reshape(-1)[:_SHOWN].tolist()
        rest = ", …" if data.size > _SHOWN else ""
        shown = f"array of {data.dtype}, {str(values)[:-1]}{rest}]"
        hint = f"an array of {dtype}, or one whose values {dtype} keeps"
    else:
        shown = shortened(repr(data), 60)
        hint = "a number or a list of numbers"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        hint += f"; whole ones from {limits.min} to {limits.max}"
    elif dtype.kind == "f":
        hint += f"; up to {float(np.finfo(dtype).max):.5g}"
    return PluginError(f"field {name!r}: {shown}", where="PluginField", expected=f"{kind}: {hint}")


class PluginFieldType(NumberedEnum):
    """Element type of a field. Source: tensorrt-plugins spec 8.1."""

    FLOAT16 = 0
    FLOAT32 = 1
    FLOAT64 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    CHAR = 6
    DIMS = 7
    UNKNOWN = 8
    BF16 = 9
    INT64 = 10
    FP8 = 11
    INT4 = 12
    FP4 = 13

    @property
    def numpy(self) -> DType:
        """The NumPy type of the elements: characters and opaque bytes are int8."""
        return _READ_AS.get(self, np.dtype(np.int8))

    @classmethod
    def of(cls, dtype: npt.DTypeLike) -> PluginFieldType:
        """The field type of a NumPy array; UNKNOWN if there is none."""
        return _OF.get(np.dtype(dtype), cls.UNKNOWN)


FLOATS = (PluginFieldType.FLOAT32, PluginFieldType.FLOAT16, PluginFieldType.FLOAT64)
INTEGERS = (
    PluginFieldType.INT8, PluginFieldType.INT16, PluginFieldType.INT32, PluginFieldType.INT64,
)  # fmt: skip
_OF = {np.dtype(kind.name.lower()): kind for kind in (*FLOATS, *INTEGERS)}
_READ_AS: dict[PluginFieldType, DType] = {
    **{kind: dtype for dtype, kind in _OF.items()}, PluginFieldType.BF16: np.dtype(np.uint16),
}  # fmt: skip


_OPAQUE = (
    PluginFieldType.UNKNOWN, PluginFieldType.DIMS, PluginFieldType.FP8, PluginFieldType.INT4,
    PluginFieldType.FP4,
)  # fmt: skip
"""Types whose values are bytes to everyone but the plugin."""


class PluginField:
    """A name and, unless it only declares the name, its values.

    Args:
        name: of the field.
        data: values (a number, a list, an array), text, or None for a declaration. They are
            copied, as elements of `type`. Bytes (`bytes`, `memoryview`, arrays of uint8) and
            structured arrays are taken as they are.
        type: of its elements.

    Raises:
        PluginError: values that `type` cannot hold; an array of another type that would lose
            digits (float64 given as FLOAT32 is rounded).

    Attributes:
        size: number of elements, not bytes; of a structured array its records.
        data: the values, an array of `type.numpy`; None for a declaration. Of bytes that do not
            make whole elements of `type`, the array of their bytes.
    Source: tensorrt-plugins spec 8.1.
    """

    __slots__ = ("_data", "_size", "name", "type")

    def __init__(
        self,
        name: str = "",
        data: object = None,
        type: PluginFieldType = PluginFieldType.UNKNOWN,
    ) -> None:
        self.name = name
        self.type = PluginFieldType(type)
        self._data: bytes | None = None
        self._size = 0
        if data is not None:
            self._take(data)

    def _take(self, data: object) -> None:
        dtype = self.type.numpy
        if isinstance(data, str) and dtype.itemsize == 1:
            data = data.encode()
        raw = raw_bytes(data)
        if raw is not None:
            self._data = raw
            records = isinstance(data, np.ndarray) and data.dtype.names is not None
            if len(raw) % dtype.itemsize == 0 and not records:
                self._size = len(raw) // dtype.itemsize
            else:
                self._size = data.size if isinstance(data, np.ndarray) else 0
            return
        array = self._array(data)
        self._data = array.tobytes()
        self._size = len(self._data) // dtype.itemsize

    def _array(self, data: object) -> Array:
        """Of the field's type, or any array of a type that is bytes only."""
        if self.type in _OPAQUE:
            return np.asarray(data)
        if self.type == PluginFieldType.CHAR:
            array = np.asarray(data)
            if array.dtype.kind in "US":
                return np.char.encode(array) if array.dtype.kind == "U" else array
        if self.type == PluginFieldType.BF16 and getattr(data, "dtype", None) != np.uint16:
            return bfloat16_bits(values_of(data, np.dtype(np.float32), self.name, "BF16"))
        return values_of(data, self.type.numpy, self.name, self.type.name)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._size

    @property
    def data(self) -> Array | None:
        """The values as a new read-only array (size,)."""
        if self._data is None:
            return None
        dtype = self.type.numpy
        if len(self._data) % dtype.itemsize:
            dtype = np.dtype(np.int8)
        return np.frombuffer(self._data, dtype)

    @data.setter
    def data(self, value: object) -> None:
        if value is not None:
            self._take(value)
        else:
            self._data, self._size = None, 0

    @property
    def raw(self) -> bytes:
        """The bytes of the values."""
        return self._data or b""

    def text(self) -> str:
        """A CHAR field as text, without the NUL at its end."""
        return self.raw.rstrip(b"\0").decode("utf-8", "replace")

    def __repr__(self) -> str:
        if self._data is None:
            return f"PluginField({self.name!r}, {self.type.name})"
        if self.type == PluginFieldType.CHAR:
            value = repr(self.text())
        else:
            values = self.data
            assert values is not None
            value = repr(values.tolist() if values.size <= 8 else f"{values.size} values")
        return f"PluginField({self.name!r}, {value}, {self.type.name})"


class PluginFieldCollection(list[PluginField]):
    """Fields in order; behaves as a list.

    Raises:
        TypeError: something in it is not a `PluginField`.
    """

    def __init__(self, fields: Iterable[PluginField] = ()) -> None:
        super().__init__(fields)
        for field in self:
            if not isinstance(field, PluginField):
                raise TypeError(f"a {type(field).__name__} is not a PluginField")

    def get(self, name: str) -> PluginField | None:
        """The field called `name`, None if there is none."""
        return next((field for field in self if field.name == name), None)

    def __repr__(self) -> str:
        return f"PluginFieldCollection({', '.join(field.name for field in self)})"
