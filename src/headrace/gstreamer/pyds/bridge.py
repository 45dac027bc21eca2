"""Metadata on GStreamer's buffers: a GstMeta that refers to a Python object.

A meta without tags is copied by every element that copies buffers, encoders and decoders too. It
holds a number; a table here holds the object of each number, once for each live meta.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint64, c_ulong, c_void_p
from functools import cache
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from headrace.gstreamer.pyds.loading import gstreamer
from headrace.gstreamer.pyds.struct import function

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.meta import NvDsBatchMeta


_API, _NAME = b"HeadraceBatchMetaAPI", b"HeadraceBatchMeta"
_HEADER_BYTES = 16  # of GstMeta on machines of 64 bits

_Init = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
_Free = CFUNCTYPE(None, c_void_p, c_void_p)
_Transform = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p)


class Bridge:
    """Attaches Python objects to buffers, by their addresses.

    Attributes:
        table: number -> object of each meta that is alive.
        api: GStreamer's number of this kind of metadata.
    """

    def __init__(self) -> None:
        gstreamer()
        # Its calls are short and wait for nothing: they keep the interpreter's lock.
        library = ctypes.PyDLL("libgstreamer-1.0.so.0")
        self.table: dict[int, NvDsBatchMeta] = {}
        self._numbers = count(1)
        self._add = function(library.gst_buffer_add_meta, c_void_p, c_void_p, c_void_p, c_void_p)
        self._get = function(library.gst_buffer_get_meta, c_void_p, c_void_p, c_ulong)
        # GStreamer keeps the callbacks' addresses and that of the tags for ever.
        self._callbacks = _Init(self._init), _Free(self._free), _Transform(self._transform)
        self._tags = (c_char_p * 1)(None)
        register_api = function(
            library.gst_meta_api_type_register, c_ulong, c_char_p, POINTER(c_char_p)
        )
        register_meta = function(
            library.gst_meta_register,
            c_void_p, c_ulong, c_char_p, c_size_t, _Init, _Free, _Transform,
        )  # fmt: skip
        self.api = register_api(_API, self._tags)
        self._info = register_meta(self.api, _NAME, _HEADER_BYTES + 16, *self._callbacks)

    def attach(self, address: int, value: NvDsBatchMeta) -> None:
        """Attach an object to a buffer of one owner."""
        meta = self._add(address, self._info, None)
        number = next(self._numbers)
        self.table[number] = value
        c_uint64.from_address(meta + _HEADER_BYTES).value = number

    def replace(self, address: int, value: NvDsBatchMeta) -> None:
        """Put another object in place of the one that is attached to a buffer."""
        meta = self._get(address, self.api)
        self.table[c_uint64.from_address(meta + _HEADER_BYTES).value] = value

    def get(self, address: int) -> NvDsBatchMeta | None:
        """Return the object attached to a buffer, or None."""
        meta = self._get(address, self.api)
        return self.table.get(c_uint64.from_address(meta + _HEADER_BYTES).value) if meta else None

    def _init(self, meta: int, params: int, buffer: int) -> int:
        c_uint64.from_address(meta + _HEADER_BYTES).value = 0
        c_uint64.from_address(meta + _HEADER_BYTES + 8).value = 0  # of C code, see `cmeta`
        return 1

    def _free(self, meta: int, buffer: int) -> None:
        self.table.pop(c_uint64.from_address(meta + _HEADER_BYTES).value, None)

    def _transform(self, target: int, meta: int, buffer: int, kind: int, data: int) -> int:
        value = self.table.get(c_uint64.from_address(meta + _HEADER_BYTES).value)
        if value is not None:
            self.attach(target, value)
        return 1


_once = Lock()


@cache
def _made() -> Bridge:
    return Bridge()


def bridge() -> Bridge:
    """Return the one bridge of the process: a type of metadata can be registered once."""
    with _once:  # several streaming threads may want it first
        return _made()
