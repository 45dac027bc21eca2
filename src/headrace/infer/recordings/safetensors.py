"""The safetensors format: a header as JSON, then the tensors one after the other.

The `safetensors` package writes a file from tensors that are all in memory, and reads names into a
mapping without a bound on the header. Here tensors are written as they come, and a file of any
origin is checked before one byte of it is used.

Source: https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import os
import shutil
import tempfile
from math import prod
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.files import os_reason
from headrace._core.json_record import JsonRecord, RecordError
from headrace._core.text import quoted
from headrace._core.types import Array
from headrace.binary.regular_files import open_regular
from headrace.media.sinks.base import create, part_of, require_there

MAX_HEADER = 64 << 20  # bytes
_METADATA = "__metadata__"
_DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2",
    "U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]


class TensorEntry(JsonRecord, frozen=True):
    """One tensor of the header; offsets count from the end of the header."""

    dtype: Literal[
        "BOOL", "U8", "I8", "U16", "I16", "F16", "U32", "I32", "F32", "U64", "I64", "F64"
    ]
    shape: Annotated[list[_Size], msgspec.Meta(max_length=32)]
    data_offsets: tuple[_Size, _Size]

    @property
    def nbytes(self) -> int:
        """Bytes that the shape and the type need."""
        return prod(self.shape) * np.dtype(_DTYPES[self.dtype]).itemsize


class SafetensorsWriter:
    """Writes tensors as they come; the file has its name once it is whole.

    The header stands first and is known last: the tensors wait in an unnamed file beside the
    destination, so the disk holds them twice for a moment at the end.

    Raises:
        MediaError: the file cannot be created, or another run is writing it.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._part = part_of(path, name, "recording")
        self._file = os.fdopen(create(self._part.path, name, follow=False), "wb")
        self._name = name
        try:
            # Open as long as the recording: closed with it, no `with` can hold it.
            self._data = tempfile.TemporaryFile(dir=self._part.target.parent)  # noqa: SIM115
        except OSError as error:
            self._file.close()
            self._part.discard()
            raise MediaError(f"cannot be created: {os_reason(error)}", where=name) from error
        self._entries: dict[str, TensorEntry] = {}
        self._end = 0
        self._header = 0

    def add(self, name: str, array: Array, *, also: int = 0) -> None:
        """Append a tensor.

        Args:
            name: no other one of this file has it.
            array: of booleans, integers or floats of IEEE.
            also: bytes that the metadata grows by, for the limit of the header.

        Raises:
            MediaError: the format has no such type; the header grows beyond its limit.
            OSError: as the system says.
        """
        entry, data = _entry(name, array, self._end, self._name)
        self._header += 100 + len(name) + 20 * array.ndim + also
        if self._header > MAX_HEADER:
            raise MediaError(
                f"more than {MAX_HEADER >> 20} MiB describe the tensors", where=self._name,
                fix="record fewer frames: --limit, --frames",
            )  # fmt: skip
        self._data.write(data.data)
        self._entries[name] = entry
        self._end = entry.data_offsets[1]

    def finish(self, metadata: dict[str, str]) -> None:
        """Write the header, then the tensors, and give the file its name.

        Raises:
            OSError: as the system says.
        """
        self._file.write(_header(self._entries, metadata))
        self._data.seek(0)
        shutil.copyfileobj(self._data, self._file, 1 << 20)
        self._file.flush()
        require_there(self._file.fileno())
        self._part.finish()
        self._file.close()
        self._data.close()

    def give_up(self) -> None:
        """Discard the file; an earlier one at the destination stays."""
        for file in (self._file, self._data):
            try:
                file.close()
            except OSError:  # what it still holds does not fit either
                continue
        self._part.discard()


def safetensors_bytes(tensors: dict[str, Array], metadata: dict[str, str]) -> bytes:
    """A small file whole."""
    entries, blobs, end = {}, [], 0
    for name, array in tensors.items():
        entries[name], data = _entry(name, array, end, name)
        blobs.append(data.tobytes())
        end = entries[name].data_offsets[1]
    return _header(entries, metadata) + b"".join(blobs)


def _entry(
    name: str, array: Array, start: int, where: str
) -> tuple[TensorEntry, npt.NDArray[np.uint8]]:
    kind = _NAMES.get(array.dtype.newbyteorder("<"))
    if kind is None:
        raise MediaError(
            f"tensor {quoted(name)} has type {array.dtype}", where=where,
            expected="booleans, integers or floats of 8 to 64 bits",
        )  # fmt: skip
    plain = np.ascontiguousarray(array, np.dtype(_DTYPES[kind])).reshape(-1)
    entry = TensorEntry(kind, list(array.shape), (start, start + plain.nbytes))  # type: ignore[arg-type] # a key of _DTYPES
    return entry, plain.view(np.uint8)


def _header(entries: dict[str, TensorEntry], metadata: dict[str, str]) -> bytes:
    text = msgspec.json.encode({_METADATA: metadata, **entries})
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


class SafetensorsFile:
    """A file that was checked; tensors are read when they are asked for.

    Attributes:
        path: the file.
        entries: name -> tensor.
        metadata: texts by name.

    Raises:
        MediaError: it cannot be read, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
                length = _header_length(file.read(8), size)
                raw = file.read(length)
            fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            self.metadata = msgspec.json.decode(
                fields.pop(_METADATA, msgspec.Raw(b"{}")), type=dict[str, str]
            )
            self.entries = {n: TensorEntry.from_json(bytes(v)) for n, v in fields.items()}
            _require_whole(self.entries, size - 8 - length)
        except (OSError, ValueError, RecursionError) as error:
            raise no_recording(path, error) from error
        self._start = 8 + length

    def read(self, name: str) -> Array:
        """Read one tensor.

        Raises:
            MediaError: the file was changed since, or cannot be read.
        """
        entry = self.entries[name]
        try:
            with open_regular(self.path) as file:
                file.seek(self._start + entry.data_offsets[0])
                data = file.read(entry.nbytes)
        except (OSError, ValueError) as error:
            raise no_recording(self.path, error) from error
        if len(data) != entry.nbytes:
            raise no_recording(self.path, "it was cut off while it was read")
        array = np.frombuffer(bytearray(data), _DTYPES[entry.dtype]).reshape(entry.shape)
        if entry.dtype == "BOOL" and array.view(np.uint8).max(initial=0) > 1:
            raise no_recording(self.path, f"{quoted(name)} has booleans beyond 0 and 1")
        return array


def _header_length(head: bytes, size: int) -> int:
    """Bytes of the header of a file of `size` bytes, as its first eight tell."""
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length < 2 or length + 8 > size:
        raise ValueError(f"{size} bytes hold no header of {length} bytes")
    if length > MAX_HEADER:
        raise ValueError(f"its header has {length} bytes, and at most {MAX_HEADER} are read")
    return length


def _require_whole(entries: dict[str, TensorEntry], size: int) -> None:
    """Refuse tensors that overlap, leave holes, or do not fill the file."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda e: e[1].data_offsets):
        start, stop = entry.data_offsets
        if start != end:
            kind = "overlaps the one before" if start < end else "leaves a hole before it"
            raise ValueError(f"tensor {quoted(name)} at byte {start} {kind}, which ends at {end}")
        if stop - start != entry.nbytes:
            text = f"tensor {quoted(name)} has {stop - start} bytes; {entry.dtype} "
            raise ValueError(f"{text}{quoted(str(entry.shape))} are {entry.nbytes}")
        end = stop
    if end != size:
        raise ValueError(f"its tensors are {end} bytes, and {size} follow the header")


def no_recording(path: Path, error: Exception | str) -> MediaError:
    """Make the error for a file that cannot be believed."""
    reason = os_reason(error)
    if isinstance(error, RecursionError):
        reason = "its JSON is nested too deeply"
    elif isinstance(error, msgspec.MsgspecError | RecordError):
        reason = f"its header is damaged: {reason}"
    return MediaError(
        f"no recording can be read: {quoted(reason, limit=300)}",
        where=str(path),
        expected="a file that headrace record wrote",
    )
