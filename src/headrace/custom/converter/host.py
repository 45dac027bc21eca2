"""Calls of a library of message payloads, in the process that has loaded it."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.binary.elf import ElfFile
from headrace.custom.original import load_beside, original_functions
from headrace.custom.stand_ins import note_calls

_PREFIX = "nvds_msg2p_"
REQUIRED = tuple(_PREFIX + name for name in ("ctx_create", "ctx_destroy", "release"))
OF_EVENTS, OF_METADATA = _PREFIX + "generate", _PREFIX + "generate_new"


class _Functions(ctypes.Structure):
    _fields_ = [
        (name, c_void_p) for name in ("create", "destroy", "release", "of_events", "of_metadata")
    ]


@cache
def _native_library() -> Any:
    library = original_functions()
    library.headrace_converter_error.restype = c_char_p
    library.headrace_converter_open.restype = c_void_p
    library.headrace_converter_open.argtypes = [POINTER(_Functions), c_char_p, c_int]
    library.headrace_converter_close.argtypes = [c_void_p]
    library.headrace_converter_close.restype = None
    library.headrace_converter_call.argtypes = [
        c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_char_p, c_char_p, c_void_p, c_void_p
    ]  # fmt: skip
    return library


class ConverterHost:
    """A loaded library and its context.

    Args:
        path: the library.
        config: path of the converter's file, handed over as it is; empty for none.
        payload_type: number of the original's NvDsPayloadType.
        of_metadata: payloads are made of metadata (`msg2p-newapi`), else of events.

    Attributes:
        notices: about what stands in for missing libraries.

    Raises:
        CustomLibraryError: it cannot be loaded, lacks a function, or refuses to start.
    """

    def __init__(self, path: Path, config: str, payload_type: int, of_metadata: bool) -> None:
        self._where, self._of_metadata = str(path), of_metadata
        self.notices: list[Finding] = []
        maker = OF_METADATA if of_metadata else OF_EVENTS
        library = load_beside(
            path, (*REQUIRED, maker), "a library of message payloads", self.notices
        )
        addresses = [ctypes.cast(getattr(library, name), c_void_p).value for name in REQUIRED]
        own = ctypes.cast(getattr(library, maker), c_void_p).value
        makers = [None, own] if of_metadata else [own, None]
        self._functions = _Functions(*addresses, *makers)
        self._maker = maker
        context = _native_library().headrace_converter_open(
            ctypes.byref(self._functions), config.encode(errors="surrogateescape") or None,
            payload_type,
        )  # fmt: skip
        if context is None:
            raise CustomLibraryError(
                f"its function nvds_msg2p_ctx_create failed: {_error()}", where=self._where
            )
        self._context = int(context)
        note_calls(ElfFile.read(path), self.notices, _native.stand_in_calls())

    def call(
        self, frame: Array, objects: Array, whole: bool, time: str, sensor: str
    ) -> list[Array]:
        """Make the payloads of a frame.

        Args:
            frame: one row of `preparation.host.FRAME`.
            objects: (N,) rows of `preparation.host.OBJECT`.
            whole: one payload of all objects, else one for each.
            time: of the frame, as ISO 8601 has it.
            sensor: its id.

        Returns:
            Payloads, uint8.

        Raises:
            CustomLibraryError: the function raised, or returned what cannot be.
        """
        data, sizes = c_void_p(), c_void_p()
        count = _native_library().headrace_converter_call(
            self._context, frame.ctypes.data, objects.ctypes.data, len(objects),
            self._of_metadata, whole, time.encode(), sensor.encode(errors="replace"),
            ctypes.byref(data), ctypes.byref(sizes),
        )  # fmt: skip
        if count < 0:
            raise CustomLibraryError(f"{self._maker} failed: {_error()}", where=self._where)
        if not count:
            return []
        lengths = list((c_uint64 * count).from_address(sizes.value or 0))
        whole_bytes = ctypes.string_at(data.value or 0, sum(lengths)) if data.value else b""
        ends = np.cumsum(lengths).tolist()
        parts = [whole_bytes[end - size : end] for end, size in zip(ends, lengths, strict=True)]
        return [np.frombuffer(part, np.uint8) for part in parts]

    def close(self) -> None:
        """End the library's context."""
        if self._context:
            _native_library().headrace_converter_close(self._context)
            self._context = 0


def _error() -> str:
    text: bytes = _native_library().headrace_converter_error()
    return text.decode(errors="replace")
