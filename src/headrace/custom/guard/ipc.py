"""Exchange of application and worker: memory that both map, messages, results of parsers.

There are three parts of memory: a control page, whose first words `GuardChannel` keeps; an input
region, which the application makes larger; an output region, which the worker does. Both regions
only grow: the kernel refuses to shrink them, so that neither side can take memory from under the
other. The words of the control page hold the numbers of a request or an answer. The application
trusts none of them: it holds lengths against the region, counts against the limits of
`headrace.custom.validate`.

Calls of parsers have arrays and numbers only. Any other request is a message, a JSON text:
`{"do": "module:function", "payload": {...}, "arrays": [[dtype, shape, offset], ...]}`, answered by
`{"payload": {...}, "arrays": [...]}` or `{"error": {...}}`. Answers to both may have `decisions`
and `notices`, too.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import (
    ConfigError,
    CustomLibraryError,
    EngineError,
    HeadraceError,
    ModelError,
    ParserError,
    PluginError,
)
from headrace._core.findings import Finding
from headrace._core.text import error_text
from headrace._core.types import Array, DType, Message
from headrace.custom.cpp_parsers import ParserReturnedFalseError
from headrace.custom.user_calls import ParserKind
from headrace.custom.validate import (
    MAX_ATTRIBUTES,
    MAX_KEYPOINTS,
    MAX_MAP_PIXELS,
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    MAX_TEXT,
    NO_MASK,
    DecodedBoxes,
)
from headrace.meta import Classification, Detections, Segmentation

Arrays: TypeAlias = "list[Array]"

CONTROL_BYTES = 4096
PAGE = mmap.PAGESIZE
GAP = _native.GUARD_GAP
INPUT_BYTES = 1 << 16  # at the start
MAX_RESULT_BYTES = (1 << 30) + (1 << 26)
"""Most bytes of one result: masks of a frame may have 1 GiB, and its boxes come with them."""

_AT = _native.GUARD_WORDS  # their numbers, see `native/src/guard/channel.h`
# Words of a request.
OP, MESSAGE_BYTES, INPUT_SIZE = _AT["OP"], _AT["MESSAGE_BYTES"], _AT["INPUT_SIZE"]
MESSAGE, CALL = _AT["MESSAGE"], _AT["CALL"]
# Words of an answer: whether it is an error, place and length of its JSON in the output region,
# size of that region, and up to 12 numbers of the kind of result, whose arrays begin at 0.
STATUS, SIDE_START, SIDE_BYTES = _AT["STATUS"], _AT["SIDE_START"], _AT["SIDE_BYTES"]
OUTPUT_SIZE, VALUES = _AT["OUTPUT_SIZE"], _AT["VALUES"]
# In an answer: 1 if the library wrote into tensors that it only shares, NOT_SHARED if it
# cannot share them: nothing was called. Places: of the tensors of a call.
WROTE, NOT_SHARED = _AT["WROTE"], 2
PLACES, MAX_PLACES = _native.GUARD_PLACES_AT, _native.GUARD_MAX_PLACES
HAS_ANGLES, HAS_MASKS = _AT["HAS_ANGLES"], _AT["HAS_MASKS"]  # second value of boxes
HAS_KEYPOINTS = HAS_MASKS << 1  # behind the masks, written and read here alone
HAS_RAW_MASKS = HAS_KEYPOINTS << 1  # the same

_MAX_REGION = 1 << 36  # networks come with their weights; much of it may be holes

_MAX_NOTICES = 4096
_MAX_FINDING = 1 << 20  # letters
_FORMATS = re.compile(r"\{\w+:([^{}]+)\}")
_MAX_FORMAT = 4  # as in {time_s:.1f}

_SEAL, _SHRINK, _GROW = 1, 2, 4
AGAINST_WRITERS = 16 | _SHRINK | _GROW | _SEAL
"""Seals of memory that only those write to who have mapped it; F_SEAL_FUTURE_WRITE: Linux 5.1."""


class ProtocolError(Exception):
    """The worker gave an answer that no sound worker gives: its memory was overwritten."""


class ResultTooLargeError(Exception):
    """A result is larger than `MAX_RESULT_BYTES`."""


def new_memory(name: str, size: int, *, fixed: bool = False) -> int:
    """Make `size` bytes of anonymous memory that can be shared and never shrinks; a descriptor.

    `fixed`: it never grows, either.
    """
    fd = open_memory(name, size)
    try:
        seal(fd, _SHRINK | (_GROW if fixed else 0) | _SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_memory(name: str, size: int) -> int:
    """Make anonymous memory that is not sealed yet; a descriptor."""
    fd = os.memfd_create(f"headrace-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def seal(fd: int, seals: int) -> None:
    """Let the kernel refuse changes of anonymous memory, for good."""
    fcntl.fcntl(fd, getattr(fcntl, "F_ADD_SEALS", 1033), seals)


def control_words(fd: int) -> memoryview:
    """Map the 64-bit words of a control page that requests and answers are written into."""
    return memoryview(mmap.mmap(fd, CONTROL_BYTES)).cast("B")[64:].cast("Q")


def page_ceil(size: int) -> int:
    """Round `size` up to whole pages."""
    return -(-size // PAGE) * PAGE


class SharedRegion:
    """Memory that both sides have mapped. Views of it stay valid when it grows.

    Attributes:
        size: bytes that are mapped here.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = 0
        self.follow(os.fstat(fd).st_size)

    def follow(self, size: int) -> bool:
        """Map as much as the other side has made; return whether the mapping changed.

        Raises:
            ProtocolError: there is less.
        """
        if size <= self.size:
            return False
        if size > _MAX_REGION:
            raise ProtocolError(f"{size} bytes of memory")
        if size > os.fstat(self.fd).st_size:
            raise ProtocolError(f"{size} bytes of memory that are not there")
        self._memory = mmap.mmap(self.fd, size)
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self.address = _native.address_of(self._bytes)
        self.size = size
        return True

    def ensure(self, size: int) -> bool:
        """Make it at least `size` bytes; return whether the mapping changed."""
        if size <= self.size:
            return False
        size = page_ceil(max(size, min(2 * self.size, 1 << 26)))
        if os.fstat(self.fd).st_size < size:
            os.ftruncate(self.fd, size)
        return self.follow(size)

    def put(self, start: int, data: bytes) -> None:
        """Write bytes that fit."""
        self._bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def take(self, start: int, count: int) -> bytes:
        """Copy bytes out.

        Raises:
            ProtocolError: they are not within the region.
        """
        return self.view(start, np.dtype(np.uint8), (count,)).tobytes()

    def view(self, start: int, dtype: DType, shape: Sequence[int]) -> Array:
        """View an array in the region.

        Raises:
            ProtocolError: it is not within the region.
        """
        count = 1
        for n in shape:
            if n < 0 or n > self.size:
                raise ProtocolError(f"an array of shape {tuple(shape)}")
            count *= n
        if start < 0 or count * dtype.itemsize > self.size - start:
            raise ProtocolError(f"an array of shape {tuple(shape)} at {start} of {self.size} bytes")
        if not count:
            return np.empty(tuple(shape), dtype)
        return np.frombuffer(self._memory, dtype, count, start).reshape(tuple(shape))


class Writer:
    """Writes arrays one after the other into a region that grows, up to `MAX_RESULT_BYTES`."""

    def __init__(self, region: SharedRegion, start: int = 0) -> None:
        self.region = region
        self.start = self.end = -(-start // 64) * 64

    def add(self, array: Array) -> int:
        """Write an array; return its offset.

        Raises:
            ResultTooLargeError: the region would be too large.
        """
        start = -(-self.end // 64) * 64
        end = start + array.nbytes
        if end > MAX_RESULT_BYTES:
            raise ResultTooLargeError(f"a result of more than {MAX_RESULT_BYTES >> 20} MiB")
        self.region.ensure(end)
        if array.nbytes:
            np.copyto(self.region.view(start, array.dtype, array.shape), array)
        self.end = end
        return start


_ERRORS: dict[str, type[HeadraceError]] = {
    kind.__name__: kind
    for kind in (
        ConfigError, CustomLibraryError, ParserError, ParserReturnedFalseError, EngineError,
        PluginError, ModelError,
    )
}  # fmt: skip


def error_json(error: BaseException, where: str) -> Message:
    """Write an error as JSON; one that is not Headrace's becomes a CustomLibraryError."""
    if not isinstance(error, HeadraceError):
        error = CustomLibraryError(error_text(error), where=where)
    names = [kind.__name__ for kind in type(error).__mro__]
    return {
        "type": next((name for name in names if name in _ERRORS), "CustomLibraryError"),
        "finding": msgspec.to_builtins(error.finding),
    }


def error_from(entries: Any) -> HeadraceError:
    """Read the error that `error_json` wrote.

    Raises:
        ProtocolError: it is no such description.
    """
    try:
        kind = _ERRORS[entries["type"]]
        finding = checked_finding(msgspec.convert(entries["finding"], Finding))
        if not finding.wording:
            raise ProtocolError("an error without a text")
        return kind(finding)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"an error that cannot be read: {error}") from error


def checked_finding(finding: Finding) -> Finding:
    """Return a finding of a worker that can be written out.

    Raises:
        ProtocolError: it cannot, or would be too long.
    """
    try:
        if any(len(spec) > _MAX_FORMAT for spec in _FORMATS.findall(finding.wording)):
            raise ProtocolError("a finding with a number of absurd width")
        size = len(str(finding)) + len(json.dumps(dict(finding.data)))
        finding.to_json()
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise ProtocolError(f"a finding that cannot be written out: {error}") from error
    if size > _MAX_FINDING:
        raise ProtocolError(f"a finding of {size} letters")
    return finding


def notices_json(notices: list[Finding]) -> list[Message]:
    """Write notices as JSON."""
    rows: list[Message] = msgspec.to_builtins(notices)
    return rows


def notices_from(entries: object) -> list[Finding]:
    """Read the notices that `notices_json` wrote.

    Raises:
        ProtocolError: it is no such list.
    """
    try:
        notices = msgspec.convert(entries, list[Finding])
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"notices that cannot be read: {error}") from error
    if len(notices) > _MAX_NOTICES:
        raise ProtocolError(f"{len(notices)} notices")
    return [checked_finding(notice) for notice in notices]


def put_arrays(arrays: Arrays, out: Writer) -> list[list[object]]:
    """Write arrays; return dtype, shape and offset of each."""
    return [[a.dtype.str, list(a.shape), out.add(a)] for a in arrays]


_PLAIN = re.compile(r"[<|=]?(?:b1|[iu][1248]|f[248])")


def arrays_in(entries: Any, region: SharedRegion) -> Arrays:
    """View arrays that `put_arrays` wrote.

    Raises:
        ProtocolError: they are not in the region, or of no plain type.
    """
    arrays: Arrays = []
    try:
        for dtype, shape, start in msgspec.convert(entries, list[tuple[str, list[int], int]]):
            # NumPy evaluates other texts, and raises whatever comes of that.
            if _PLAIN.fullmatch(dtype) is None:
                raise ProtocolError(f"an array of {dtype[:40]!r}")
            arrays.append(region.view(start, np.dtype(dtype), shape))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"arrays that cannot be read: {error}") from error
    return arrays


_F32, _I32, _U8 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.uint8)
_MAX_LETTERS = 4 * (MAX_TEXT + MAX_ATTRIBUTES * 4096)


def _write_detections(result: Detections, out: Writer) -> list[int]:
    if not len(result.scores):
        return [0, 0]
    flags = (
        (HAS_ANGLES if result.angles is not None else 0)
        | (HAS_MASKS if result.masks is not None else 0)
        | (HAS_KEYPOINTS if result.keypoints is not None else 0)
        | (HAS_RAW_MASKS if result.raw_masks is not None else 0)
    )
    for array in (result.boxes, result.scores, result.class_ids):
        out.add(array)
    if result.angles is not None:
        out.add(result.angles)
    if result.masks is not None:
        _write_masks(result.masks, out)
    if result.keypoints is not None:
        out.add(np.array(result.keypoints.shape[1:2], np.int32))
        out.add(result.keypoints)
    if result.raw_masks is not None:
        _write_masks([mask.reshape(1, -1) for mask in result.raw_masks], out)
    return [len(result.scores), flags]


def _write_masks(masks: Sequence[Array], out: Writer) -> None:
    out.add(np.array([mask.shape for mask in masks], np.int32).reshape(-1, 2))
    for mask in masks:
        out.add(mask)


class _Reader:
    def __init__(self, region: SharedRegion, start: int = 0) -> None:
        self._region, self._at = region, start

    def take(self, dtype: DType, *shape: int) -> Array:
        start = -(-self._at // 64) * 64
        array = self._region.view(start, dtype, shape)
        self._at = start + array.nbytes
        return array.copy()


def _read_detections(values: Sequence[int], region: SharedRegion) -> DecodedBoxes:
    count, flags = values[0], values[1]
    if count > MAX_OBJECTS or flags >= HAS_RAW_MASKS << 1:
        raise ProtocolError(f"{count} boxes")
    if not count:
        none = Detections.unchecked(np.empty((0, 4), _F32), np.empty(0, _F32), np.empty(0, _I32))
        return DecodedBoxes(none, sound=True)
    detections: Any = _native.guard_boxes(
        region.address, region.size, count, bool(flags & HAS_ANGLES)
    )
    if detections is None:
        raise ProtocolError(f"{count} boxes in {region.size} bytes")
    (boxes, scores, ids, angles, sound), end = detections
    detections = Detections.unchecked(boxes, scores, ids, angles=angles)
    if not flags & (HAS_MASKS | HAS_KEYPOINTS | HAS_RAW_MASKS):
        return DecodedBoxes(detections, sound)
    reader = _Reader(region, end)
    if flags & HAS_MASKS:
        detections.masks = _read_masks(reader, count)
    if flags & HAS_KEYPOINTS:
        points = int(reader.take(_I32, 1)[0])
        if not 0 <= points <= MAX_KEYPOINTS:
            raise ProtocolError(f"{points} keypoints of an object")
        detections.keypoints = reader.take(_F32, count, points, 3)
    if flags & HAS_RAW_MASKS:
        detections.raw_masks = [mask.reshape(-1) for mask in _read_masks(reader, count)]
    return DecodedBoxes(detections, sound=False)


def _read_masks(reader: _Reader, count: int) -> list[Array]:
    sizes = reader.take(_I32, count, 2)
    pixels = sizes[:, 0].astype(np.int64) * sizes[:, 1]
    if sizes.min() < 0 or pixels.max() > MAX_MASK_PIXELS or pixels.sum() > MAX_MASKS_PIXELS:
        raise ProtocolError("masks of absurd size")
    return [reader.take(_F32, h, w) if h * w else NO_MASK for h, w in sizes.tolist()]


def _write_classification(result: Classification, out: Writer) -> list[int]:
    data = json.dumps([result.attributes, result.text]).encode()
    out.add(np.frombuffer(data, np.uint8))
    return [len(data)]


def _read_classification(values: Sequence[int], region: SharedRegion) -> Classification:
    size = values[0]
    if size > _MAX_LETTERS:
        raise ProtocolError(f"a classification of {size} bytes")
    try:
        attributes, text = json.loads(region.take(0, size))
        return Classification([(a, v, c, label) for a, v, c, label in attributes], text)
    except (ValueError, TypeError) as error:
        raise ProtocolError(f"a classification that cannot be read: {error}") from error


def _write_segmentation(result: Segmentation, out: Writer) -> list[int]:
    out.add(result.class_map)
    values = [*result.class_map.shape]
    if result.probabilities is None:
        return [*values, 0]
    shape = result.probabilities.shape
    if len(shape) > 8:
        shape = (result.probabilities.size,)
    out.add(np.ascontiguousarray(result.probabilities, np.float32).reshape(shape))
    return [*values, 1, len(shape), *shape]


def _read_segmentation(values: Sequence[int], region: SharedRegion) -> Segmentation:
    height, width, more, axes = values[:4]
    if height * width > MAX_MAP_PIXELS:
        raise ProtocolError(f"a class map of {height}x{width}")
    reader = _Reader(region)
    class_map = reader.take(_I32, height, width)
    if not more:
        return Segmentation(class_map)
    if axes > 8:
        raise ProtocolError(f"probabilities of {axes} axes")
    return Segmentation(class_map, reader.take(_F32, *values[4 : 4 + axes]))


RESULT_WRITERS: dict[ParserKind, Callable[[Any, Writer], list[int]]] = {
    "bbox": _write_detections,
    "instance": _write_detections,
    "classifier": _write_classification,
    "segmentation": _write_segmentation,
}
"""Kind of parser -> (result, writer of the output region) -> numbers for the answer."""

RESULT_READERS: dict[ParserKind, Callable[[Sequence[int], SharedRegion], Any]] = {
    "bbox": _read_detections,
    "instance": _read_detections,
    "classifier": _read_classification,
    "segmentation": _read_segmentation,
}
"""Kind of parser -> (numbers of the answer, output region) -> result."""
