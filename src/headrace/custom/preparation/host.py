"""Calls of a library of `nvdspreprocess`, in the process that has loaded it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p as pointer
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.types import Array, DType
from headrace.binary.elf import ElfFile
from headrace.custom.original import load_beside, original_functions
from headrace.custom.stand_ins import note_calls

LIFE_CYCLE = ("initLib", "deInitLib")
NOT_READY = 10
_FAILED = (
    "SUCCESS", "CONFIG_FAILED", "CUSTOM_LIB_FAILED", "CUSTOM_TRANSFORMATION_FAILED",
    "CUSTOM_TENSOR_FAILED", "INVALID_PARAMS", "OUTPUT_PARSING_FAILED", "CUDA_ERROR",
    "TENSORRT_ERROR", "RESOURCE_ERROR", "TENSOR_NOT_READY",
)  # fmt: skip
_MOST_DIMS = 16
MOST_REGIONS = 1 << 12
"""Of one answer."""


class _Settings(ctypes.Structure):
    _fields_ = [
        ("buffer_size", c_uint64), ("tensor_name", c_char_p), ("config_path", c_char_p),
        ("texts", POINTER(c_char_p)), ("shape", POINTER(c_int32)), ("dims", c_int32),
        ("pairs", c_int32), ("unique_id", c_uint32), ("order", c_int32), ("color", c_int32),
        ("data_type", c_int32),
    ]  # fmt: skip


class _Frame(ctypes.Structure):
    _fields_ = [
        ("pts_ns", c_uint64), ("image", c_uint64), ("image_size", c_uint64),
        ("source_id", c_uint32), ("width", c_uint32), ("height", c_uint32), ("pitch", c_uint32),
        ("chroma_offset", c_uint32), ("number", c_int32),
    ]  # fmt: skip


class _Object(ctypes.Structure):
    _fields_ = [
        ("object_id", c_uint64), ("left", c_float), ("top", c_float), ("width", c_float),
        ("height", c_float), ("confidence", c_float), ("class_id", c_int32),
        ("component_id", c_int32), ("frame", c_int32), ("label", ctypes.c_char * 128),
    ]  # fmt: skip


class _Region(ctypes.Structure):
    _fields_ = [
        ("ratio_x", c_double), ("ratio_y", c_double), ("offset_left", c_double),
        ("offset_top", c_double), ("left", c_float), ("top", c_float), ("width", c_float),
        ("height", c_float), ("frame", c_int32), ("object", c_int32),
    ]  # fmt: skip


# a row's label is a text, not 128 letters as ctypes has it
_LABELLED = [field[:2] for field in _Object._fields_ if field[0] != "label"]
FRAME, REGION = np.dtype(_Frame), np.dtype(_Region)
OBJECT = np.dtype([*_LABELLED, ("label", "S128")])
"""Rows of frames, objects and regions as the native side reads them."""
# A row's numbers of a type in the original's enumeration NvDsDataType.
_DATA_TYPES = {
    np.dtype(kind): number
    for number, kind in enumerate(
        (np.float32, np.uint8, np.int8, np.uint32, np.int32, np.int64, np.uint64, np.float16)
    )
}


@cache
def _native_library() -> Any:
    library = original_functions()
    library.headrace_preparation_error.restype = c_char_p
    library.headrace_preparation_open.restype = pointer
    library.headrace_preparation_open.argtypes = [pointer] * 3 + [POINTER(_Settings)]
    library.headrace_preparation_close.argtypes = [pointer]
    library.headrace_preparation_close.restype = None
    rows: list[Any] = [pointer, c_size_t]
    library.headrace_preparation_call.argtypes = [
        pointer, *(3 * rows), pointer, *(3 * [c_uint32]), *(4 * [pointer]), c_size_t
    ]  # fmt: skip
    return library


class PreparationHost:
    """A loaded library and its context.

    Args:
        path: the library.
        settings: `function`, `shape`, `dtype`, `order`, `color`, `tensor_name`, `unique_id`,
            `config` and `user`, as the config file has them.

    Attributes:
        notices: about what stands in for missing libraries.

    Raises:
        CustomLibraryError: it cannot be loaded, lacks a function, or refuses to start.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._where, self._function = str(path), str(settings["function"])
        self.notices: list[Finding] = []
        required = (*LIFE_CYCLE, self._function)
        self._library = load_beside(path, required, "a library of nvdspreprocess", self.notices)
        self._shape: list[int] = settings["shape"]
        self._dtype = np.dtype(settings["dtype"])
        self._context = self._open(settings)
        note_calls(ElfFile.read(path), self.notices, _native.stand_in_calls())

    def _open(self, settings: dict[str, Any]) -> int:
        texts = [t.encode(errors="surrogateescape") for kv in settings["user"].items() for t in kv]
        row = _Settings(
            buffer_size=int(np.prod(self._shape)) * self._dtype.itemsize,
            tensor_name=settings["tensor_name"].encode(),
            config_path=settings["config"].encode(errors="surrogateescape"),
            texts=(c_char_p * len(texts))(*texts),
            shape=(c_int32 * len(self._shape))(*self._shape),
            dims=len(self._shape),
            pairs=len(texts) // 2,
            unique_id=settings["unique_id"],
            order=settings["order"],
            color=settings["color"],
            data_type=_DATA_TYPES[self._dtype],
        )
        names = [*LIFE_CYCLE, self._function]
        addresses = [ctypes.cast(getattr(self._library, name), pointer) for name in names]
        context = _native_library().headrace_preparation_open(*addresses, ctypes.byref(row))
        if context is None:
            raise CustomLibraryError(f"its function initLib failed: {_error()}", where=self._where)
        return int(context)

    def call(
        self, frames: Array, images: Sequence[Array], objects: Array, regions: Array, scaled: Array
    ) -> tuple[Array, Array] | None:
        """Make a tensor of regions.

        Args:
            frames: (F,) `FRAME`; the addresses of their images are filled in here.
            images: F images in NV12, uint8.
            objects: (M,) `OBJECT`, by frame.
            regions: (N,) `REGION`.
            scaled: (N, height, width, 4) uint8 RGBA, or with one value a pixel gray.

        Returns:
            The tensor, and a `REGION` for each of its rows; None while the library waits for more.

        Raises:
            CustomLibraryError: the function raised, or says that it failed, or its answer cannot
                be right.
        """
        for row, image in zip(frames, images, strict=True):
            row["image"], row["image_size"] = _native.address_of(image), image.nbytes
        _, height, width, pixel = scaled.shape
        tensor = np.empty(int(np.prod(self._shape)), self._dtype)
        shape, dims = (c_int32 * _MOST_DIMS)(), c_int32()
        rows = np.zeros(MOST_REGIONS, REGION)
        sent = (frames, objects, regions)
        status = _native_library().headrace_preparation_call(
            self._context, *(v for a in sent for v in (a.ctypes.data, len(a))),
            scaled.ctypes.data, width, height, pixel, tensor.ctypes.data, ctypes.byref(shape),
            ctypes.byref(dims), rows.ctypes.data, len(rows),
        )  # fmt: skip
        if status == NOT_READY:
            return None
        if status:
            name = f"NVDSPREPROCESS_{_FAILED[status]}" if 0 < status < len(_FAILED) else str(status)
            raise CustomLibraryError(
                f"{self._function} {f'failed: {_error()}' if status < 0 else f'returned {name}'}",
                where=self._where,
                expected="NVDSPREPROCESS_SUCCESS with a buffer of the acquirer, its shape and a"
                " region for each row",
            )
        made = list(shape)[: dims.value]
        return tensor[: int(np.prod(made))].reshape(made), rows[: made[0]]

    def close(self) -> None:
        """End the library's context."""
        if self._context:
            _native_library().headrace_preparation_close(self._context)
            self._context = 0


def _error() -> str:
    text: bytes = _native_library().headrace_preparation_error()
    return text.decode(errors="replace")


def rows_of(data: Array, kind: DType) -> npt.NDArray[np.void]:
    """Read rows that came as bytes."""
    return np.frombuffer(bytearray(data.tobytes()), kind)
