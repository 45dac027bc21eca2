"""The library that C applications are linked to, and its functions as Python calls them."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_int, c_uint, c_uint64, c_ulong, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from headrace._core import _native
from headrace.gstreamer.pyds.struct import function

NAME = "libheadrace_deepstream.so"
Ask = CFUNCTYPE(c_void_p, c_void_p)
"""Called with a buffer's address; returns that of its batch's structures, or 0."""
AskNumber = CFUNCTYPE(c_void_p, c_uint64)
"""Called with the number of images; returns the address of their structure, or 0."""
CopyFunction = CFUNCTYPE(c_void_p, c_void_p, c_void_p)
ReleaseFunction = CFUNCTYPE(None, c_void_p, c_void_p)


def library_path() -> Path:
    """Return the library's file."""
    return Path(_native.__file__).parents[1] / "lib" / NAME


@cache
def library() -> Any:
    """Load the library; one that the program is linked to is the same."""
    return ctypes.CDLL(str(library_path()))


@cache
def call(name: str, *arguments: type, result: type | None = None) -> Any:
    """Return a function of the library with its types declared."""
    return function(getattr(library(), name), result, *arguments)


@cache
def glib(name: str, *arguments: type, result: type | None = None) -> Any:
    """Return a function of GLib with its types declared."""
    return function(getattr(ctypes.CDLL("libglib-2.0.so.0"), name), result, *arguments)


def allocate(size: int) -> int:
    """Return the address of `size` zeroed bytes of GLib."""
    return int(glib("g_malloc0", ctypes.c_size_t, result=c_void_p)(max(1, size)))


def release(address: int | None) -> None:
    """Give memory of GLib back; nothing at 0."""
    if address:
        glib("g_free", c_void_p)(address)


def new_text(text: str | bytes) -> int:
    """Copy a text into memory of GLib; returns its address."""
    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    return int(glib("g_strdup", ctypes.c_char_p, result=c_void_p)(raw) or 0)


def serve_batches(answer: Any, api: int) -> None:
    """Tell the library whom to ask for a batch, and the type of the elements' metadata."""
    call("headrace_serve_batches", Ask, c_ulong)(answer, api)


def create_batch(most: int) -> int:
    """Make the structures of a batch; returns their address."""
    return int(call("nvds_create_batch_meta", c_uint, result=c_void_p)(most))


def destroy_batch(address: int) -> None:
    """Release everything in a batch."""
    call("nvds_destroy_batch_meta", c_void_p, result=c_int)(address)
