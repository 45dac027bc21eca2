"""The real GLib key-file reader through ctypes: the judge of ours, where it is installed."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["available", "load", "value"]

_NAME = ctypes.util.find_library("glib-2.0")
_glib = ctypes.CDLL(_NAME) if _NAME else None
_SIZE = ctypes.c_size_t


class _Error(ctypes.Structure):
    _fields_ = [("domain", ctypes.c_uint32), ("code", ctypes.c_int), ("message", ctypes.c_char_p)]


def available() -> bool:
    return _glib is not None


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(_glib, name)
    function.restype, function.argtypes = result, arguments
    return function  # type: ignore[no-any-return]


@contextlib.contextmanager
def _open(data: bytes) -> Iterator[ctypes.c_void_p | None]:
    """Yield a key file holding `data`, or None when GLib refuses it."""
    handle = _function("g_key_file_new", ctypes.c_void_p)()
    error = ctypes.POINTER(_Error)()
    load = _function(
        "g_key_file_load_from_data",
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_char_p,
        _SIZE,
        ctypes.c_int,
        ctypes.c_void_p,
    )
    ok = load(handle, data, len(data), 0, ctypes.byref(error))
    try:
        yield handle if ok else None
    finally:
        _function("g_key_file_free", None, ctypes.c_void_p)(handle)


def _strings(array: Any, length: int) -> list[bytes]:
    return [array[n] for n in range(length)]


def load(data: bytes) -> list[tuple[bytes, list[tuple[bytes, bytes]]]] | None:
    """Groups with their (key, last value) pairs in GLib's order; None when it refuses the file."""
    strings = ctypes.POINTER(ctypes.c_char_p)
    pointer = ctypes.c_void_p
    groups_of = _function("g_key_file_get_groups", strings, pointer, pointer)
    keys_of = _function("g_key_file_get_keys", strings, pointer, ctypes.c_char_p, pointer, pointer)
    value_of = _function(
        "g_key_file_get_value", ctypes.c_char_p, pointer, ctypes.c_char_p, ctypes.c_char_p, pointer
    )
    with _open(data) as handle:
        if handle is None:
            return None
        length = _SIZE()
        result = []
        for group in _strings(groups_of(handle, ctypes.byref(length)), length.value):
            keys = _strings(keys_of(handle, group, ctypes.byref(length), None), length.value)
            result.append((group, [(key, value_of(handle, group, key, None)) for key in keys]))
        return result


def value(kind: str, text: bytes) -> Any:
    """What `g_key_file_get_<kind>` makes of `k=<text>`; raises ValueError when it refuses.

    `kind` is integer, boolean, double, string, or one of these with `_list`.
    """
    many = kind.endswith("_list")
    item = {
        "integer": ctypes.c_int,
        "boolean": ctypes.c_int,
        "double": ctypes.c_double,
        "string": ctypes.c_char_p,
    }[kind.removesuffix("_list")]
    arguments: list[Any] = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    arguments += [ctypes.c_void_p, ctypes.c_void_p] if many else [ctypes.c_void_p]
    get = _function(f"g_key_file_get_{kind}", ctypes.POINTER(item) if many else item, *arguments)
    error = ctypes.POINTER(_Error)()
    with _open(b"[g]\nk=" + text + b"\n") as handle:
        if handle is None:
            raise ValueError("refused by the reader")
        length = _SIZE()
        extra = [ctypes.byref(length)] if many else []
        found = get(handle, b"g", b"k", *extra, ctypes.byref(error))
        if error:
            raise ValueError((error.contents.message or b"").decode(errors="replace"))
        return _strings(found, length.value) if many else found
