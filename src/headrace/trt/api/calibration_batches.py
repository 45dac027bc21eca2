"""Checks of the batches that a calibrator gives, before memory is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core._native import memory_view
from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import AnyMemory
from headrace._core.types import Array
from headrace.plugins.memory import read_at

if TYPE_CHECKING:
    from headrace.trt.types.tensor import ITensor

_EXPECTED = "a list of one address for each input, in the order of its argument, or None at the end"
_FIX = "return [int(allocation)]: ctypes.data of a contiguous array, or a device pointer"
_PAGE = 4096
_LARGEST = 1 << 63


def batch_size_of(returned: object, where: str) -> int:
    """The batch size that a calibrator gives.

    Raises:
        EngineError: it is no whole number; 0 is one, of calibrators that have a table alone.
    """
    if isinstance(returned, int | np.integer) and not isinstance(returned, bool) and returned >= 0:
        return int(returned)
    raise EngineError(
        f"get_batch_size returned {_short(returned)}", where=where, expected="a whole number"
    )


def read_batch(
    returned: Any, inputs: Sequence[ITensor], shapes: Mapping[str, tuple[int, ...]], where: str
) -> dict[str, Array] | None:
    """Copy one batch out of memory.

    Args:
        returned: by `get_batch`.
        inputs: of the network.
        shapes: of one batch, by input.
        where: the calibrator, for messages.

    Returns:
        Input -> values; None at the end.

    Raises:
        EngineError: it returned something else than addresses, or addresses of no memory; all
            values of an input are NaN or infinite.
    """
    if returned is None:
        return None
    names = ", ".join(t._name for t in inputs)
    if isinstance(returned, np.ndarray) and returned.ndim == 1 and returned.dtype.kind in "iu":
        returned = returned.tolist()  # as pybind11 reads it
    if not isinstance(returned, list | tuple):
        raise _refused(f"get_batch returned {_short(returned)} for {names}", where)
    if not returned:
        return None
    if len(returned) != len(inputs):
        text = f"get_batch gave {len(returned)} addresses for {len(inputs)} inputs ({names})"
        raise _refused(text, where)
    feeds = {}
    for tensor, item in zip(inputs, returned, strict=True):
        name, shape = tensor._name, shapes[tensor._name]
        address = _address(item, name, where)
        size = prod(shape) * np.dtype(tensor.dtype.numpy).itemsize
        if not AnyMemory(0).on_device(address) and not _readable(address, size):
            text = f"get_batch gave {address:#x} for {name}, where {size:,} bytes cannot be read"
            raise _refused(text, where)
        values = feeds[name] = read_at(address, shape, tensor.dtype).copy()
        if values.dtype.kind == "f" and values.size and not np.isfinite(values).any():
            text = f"the batch at {address:#x} for {name} has no finite value: NaN and infinity"
            raise EngineError(text, where=where, fix="check the images, and that they are copied")
    return feeds


def _refused(text: str, where: str) -> EngineError:
    return EngineError(text, where=where, expected=_EXPECTED, fix=_FIX)


def _short(returned: object) -> str:
    kind = type(returned).__name__
    if isinstance(returned, np.ndarray):
        return f"an array {returned.dtype}{list(returned.shape)}"
    return f"{kind} {repr(returned)[:40]}"


def _address(item: Any, name: str, where: str) -> int:
    """The address: a whole number, or an object that is one, as PyCUDA's allocations are."""
    number = None
    if not isinstance(item, bool | float | str | bytes | np.ndarray | np.floating):
        try:
            number = int(item)
        except (TypeError, ValueError):
            number = None
    if number is None or not 0 < number < _LARGEST:
        raise _refused(f"get_batch gave {_short(item)} for {name}: no address", where)
    return number


def _readable(address: int, size: int) -> bool:
    """Whether this process may read the bytes: the kernel is asked, which answers no fault."""
    end = address + size
    pages = range(address - address % _PAGE + _PAGE, end, _PAGE)
    reader, writer = os.pipe()
    with closing(os.fdopen(reader, "rb", 0)) as source, closing(os.fdopen(writer, "wb", 0)) as sink:
        for start in (address, *pages, end - 1) if size else ():
            try:
                sink.write(memory_view(start, 1, False))
            except OSError:  # EFAULT
                return False
            source.read(1)
    return True
