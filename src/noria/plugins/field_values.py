"""Convert values of a field to the bytes of the field's type.

Buffers of bytes are taken as they are, as the original takes every buffer. Numbers of Python have
no bytes of their own and become the type of the field; arrays of another type do if that keeps
their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import PluginError

_RAW_FORMATS = frozenset({"B", "b", "c", "<B", "<b", "@B", "@b"})
_SHOWN = 5


def raw_bytes(data: Any) -> bytes | None:
    """The bytes of a buffer without an element type; None for anything else."""
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, memoryview) and data.format in _RAW_FORMATS:
        return data.tobytes()
    if isinstance(data, np.ndarray) and (data.dtype == np.uint8 or data.dtype.kind == "V"):
        return data.tobytes()  # kind V: types that NumPy does not have, such as bfloat16
    return None


def values_of(data: Any, dtype: np.dtype[Any], name: str, kind: str) -> npt.NDArray[Any]:
    """Numbers as an array of `dtype`.

    Args:
        data: a number, a list of them, an array, or anything NumPy makes an array of.
        dtype: of the field's elements.
        name: of the field, for messages.
        kind: the field's type, for messages.

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
        made = array.astype(dtype)
        rounds = dtype.kind == "f" and (
            plain or (array.dtype == np.float64 and dtype == np.float32)
        )
        if rounds:
            kept = bool(np.all(np.isfinite(made) | ~np.isfinite(array)))
        else:
            back = made.astype(array.dtype)
            same = (back == array) | ((back != back) & (array != array))
            kept = bool(np.all(same & ((made < 0) == (array < 0))))
    if not kept:
        raise _refused(data if plain else array, name, kind, dtype)
    return made


def _refused(data: Any, name: str, kind: str, dtype: np.dtype[Any]) -> PluginError:
    if isinstance(data, np.ndarray):
        values = data.reshape(-1)[:_SHOWN].tolist()
        rest = ", …" if data.size > _SHOWN else ""
        shown = f"array of {data.dtype}, {str(values)[:-1]}{rest}]"
        hint = f"an array of {dtype}, or one whose values {dtype} keeps"
    else:
        text = repr(data)
        shown = text if len(text) <= 60 else text[:60] + "…"
        hint = "a number or a list of numbers"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        hint += f"; whole ones from {limits.min} to {limits.max}"
    elif dtype.kind == "f":
        hint += f"; up to {float(np.finfo(dtype).max):.5g}"
    return PluginError(f"field {name!r}: {shown}", where="PluginField", expected=f"{kind}: {hint}")
