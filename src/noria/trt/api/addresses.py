"""Addresses of memory, as scripts hand them over."""

from __future__ import annotations

from typing import Any

import numpy as np

from noria._core.errors import EngineError


class AddressError(EngineError, TypeError):
    """Something was given in an address's place; TensorRT raises a TypeError for it."""


def address_of(value: Any, where: str) -> int:
    """The address that a script gives: a number, or an object that is one, such as an allocation.

    Args:
        value: the script's argument.
        where: the call and the tensor that it is for.

    Raises:
        AddressError: an array, or whatever else is no number.
    """
    if isinstance(value, int | np.integer):
        return int(value)
    kind = type(value).__name__
    module = type(value).__module__.partition(".")[0]
    name = kind if module == "builtins" else f"{module}.{kind}"
    fix = None
    if hasattr(value, "data_ptr"):  # PyTorch
        fix = "pass its address: tensor.data_ptr(), of a tensor that is contiguous"
    elif hasattr(value, "__array_interface__"):
        fix = "pass its address: array.ctypes.data, of an array that is contiguous"
    elif hasattr(value, "__dlpack__"):
        fix = "pass the address of its memory, as its library calls it"
    elif not isinstance(value, float | str | bytes) and hasattr(type(value), "__int__"):
        return int(value)
    elif value is None:
        fix = "memory that is not there yet: allocate it, and pass its address"
    raise AddressError(
        f"{'None' if value is None else f'a {name}'} is no address",
        where=where,
        expected="the address of memory as an integer",
        fix=fix,
    )
