"""Values of calls between the emulated program and the host's objects.

The other side, with the same kinds: `native/emulated/asking.cpp`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from headrace.custom.emulated.messages import Body, NonsenseError, Operation, Reader
from headrace.custom.emulated.plugins import EmulatedPlugin, PluginLink
from headrace.plugins.types import MAX_DIMS
from headrace.trt.host.details import LentNumbers
from headrace.trt.host.forwarding import Row

if TYPE_CHECKING:
    from headrace.trt.host.world import World

_MOST: Final = 1 << 24
_OF_HOST: Final = -2
_V3: Final = 10


class ValueKind(IntEnum):
    """Kinds of `headrace_kind` in headrace/host_abi.h."""

    NONE = 0
    BOOL = 1
    INT = 2
    REAL = 3
    TEXT = 4
    BYTES = 5
    DIMS = 6
    INTS = 7
    REALS = 8
    ENUM = 9
    WEIGHTS = 10
    OBJECT = 11
    OBJECTS = 12
    FIELDS = 13
    PLUGIN = 14
    CREATOR = 15
    LOGGER = 16
    CALIBRATOR = 17
    FACTORY = 18
    ADDRESS = 19
    CALLBACK = 20


class KnownObjects(Protocol):
    """The host's objects that a library of the emulated program knows by numbers."""

    world: World
    link: PluginLink

    def object(self, number: int) -> Any:
        """The object of a number; None for 0."""

    def number(self, value: Any) -> int:
        """The number of an object."""


class EmulatedForeign:
    """A logger, a recorder or a calibrator of the library; methods as those of native ones."""

    def __init__(
        self, objects: KnownObjects, kind: ValueKind, number: int, algorithm: int, interface: str
    ) -> None:
        self._objects = objects
        self.value_kind = kind
        self.number = number
        self.algorithm = algorithm
        self.kind = interface

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method by its name."""
        body = Body().add("I", self.number).text(method).add("I", len(arguments))
        for one in arguments:
            write_value(body, one, self._objects)
        answer = self._objects.link.request(Operation.CALL_BACK, body)
        return read_value(answer, self._objects)

    def log(self, severity: int, text: str) -> None:
        """Give the logger a message."""
        self.call("log", severity, text)

    def batch_size(self) -> int:
        """Images of a calibrator's batches."""
        return int(self.call("batch_size"))

    def get_batch(self, _names: list[str]) -> None:
        """Refuse: the batches are in no memory of this processor.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "the batches of a calibrator are in the memory of an emulated library: give a "
            "calibration table, int8-calib-file"
        )

    def read_cache(self) -> bytes | None:
        """The calibrator's table."""
        cache = self.call("read_cache")
        return None if cache is None else bytes(cache)

    def write_cache(self, cache: bytes) -> None:
        """Give the calibrator its table."""
        self.call("write_cache", cache)


def read_value(answer: Reader, objects: KnownObjects) -> Any:
    """Read an argument of a call, or the result of a method of the library."""
    (number,) = answer.numbers("I")
    try:
        kind = ValueKind(number)
    except ValueError:
        raise NonsenseError(f"a value of kind {number}") from None
    return _READERS.get(kind, _nothing)(answer, objects, kind)


def _nothing(_answer: Reader, _objects: KnownObjects, kind: ValueKind) -> None:
    if kind is not ValueKind.NONE:
        raise ValueError(f"a {kind.name.lower()} of an emulated library cannot be taken")


def _int(answer: Reader, *_: object) -> int:
    return answer.numbers("q")[0]


def _axes(answer: Reader, *_: object) -> tuple[int, ...] | None:
    (count,) = answer.numbers("i")
    if count < 0:
        return None
    return answer.numbers(f"{min(count, MAX_DIMS)}q")


def _list(dtype: type) -> Callable[..., Any]:
    return lambda answer, *_: np.frombuffer(_data(answer), dtype).tolist()


def _data(answer: Reader) -> bytes:
    return bytes(answer.bytes(answer.numbers("I")[0]))


def _enum(answer: Reader, objects: KnownObjects, _: ValueKind) -> Any:
    name, (number, named) = answer.text(), answer.numbers("qI")
    member = answer.text()
    return objects.world.enum(name, number, member if named else None)


def _weights(answer: Reader, objects: KnownObjects, _: ValueKind) -> object:
    code, address, count = answer.numbers("iQq")
    return objects.world.weights(code, address, count, objects.link.memory)


def _objects(answer: Reader, objects: KnownObjects, _: ValueKind) -> list[Any]:
    count = min(answer.numbers("I")[0], _MOST)
    return [objects.object(answer.numbers("I")[0]) for _ in range(count)]


def _fields(answer: Reader, objects: KnownObjects, _: ValueKind) -> object:
    rows: list[Row] = []
    for _number in range(min(answer.numbers("I")[0], _MOST)):
        name, (kind, length, there) = answer.name(), answer.numbers("iiI")
        rows.append((name, kind, length, _data(answer) if there else None))
    return objects.world.fields(rows)


def _plugin(answer: Reader, objects: KnownObjects, _: ValueKind) -> Any:
    (generation,) = answer.numbers("i")
    if generation == _OF_HOST:
        return objects.object(answer.numbers("I")[0])
    if generation < 0:
        return None
    native = EmulatedPlugin(objects.link, answer.numbers("I")[0], generation, owned=False)
    made = objects.world.plugin_v3 if generation == _V3 else objects.world.plugin_v2
    return made(native)


def _foreign(answer: Reader, objects: KnownObjects, kind: ValueKind) -> Any:
    number, algorithm = answer.numbers("Ii")
    native = EmulatedForeign(objects, kind, number, algorithm, answer.text())
    return getattr(objects.world, kind.name.lower())(native)


_READERS: Final[dict[ValueKind, Callable[..., Any]]] = {
    ValueKind.BOOL: lambda answer, *_: bool(_int(answer)),
    ValueKind.INT: _int,
    ValueKind.REAL: lambda answer, *_: struct.unpack("<d", answer.bytes(8))[0],
    ValueKind.TEXT: lambda answer, *_: answer.name(),
    ValueKind.BYTES: lambda answer, *_: _data(answer),
    ValueKind.DIMS: _axes,
    ValueKind.INTS: _list(np.int64),
    ValueKind.REALS: _list(np.float32),
    ValueKind.ENUM: _enum,
    ValueKind.WEIGHTS: _weights,
    ValueKind.OBJECT: lambda answer, objects, _: objects.object(answer.numbers("I")[0]),
    ValueKind.OBJECTS: _objects,
    ValueKind.FIELDS: _fields,
    ValueKind.PLUGIN: _plugin,
    ValueKind.LOGGER: _foreign,
    ValueKind.CALIBRATOR: _foreign,
    ValueKind.CALLBACK: _foreign,
    ValueKind.ADDRESS: lambda answer, *_: EmulatedAddress(answer.numbers("Q")[0]),
}


class EmulatedAddress(int):
    """An address in the emulated program: nothing of this process is there."""


def write_value(body: Body, value: Any, objects: KnownObjects) -> None:
    """Write the result of a call, or an argument of a method of the library.

    Raises:
        ValueError: a shape has more axes than the library's struct.
    """
    match value:
        case None:
            body.add("I", ValueKind.NONE)
        case EmulatedForeign():
            body.add("II", value.value_kind, value.number)
        case EmulatedPlugin():
            body.add("II", ValueKind.PLUGIN, value.address)
        case bool():
            body.add("Iq", ValueKind.BOOL, value)
        case float():
            body.add("Id", ValueKind.REAL, value)
        case str():
            body.add("I", ValueKind.TEXT).text(value)
        case _ if type(value) is bytes:  # not IHostMemory
            body.add("II", ValueKind.BYTES, len(value)).raw(value)
        case _ if hasattr(value, "__index__"):
            body.add("Iq", ValueKind.INT, value.__index__())
        case _ if isinstance(value, tuple) or hasattr(value, "MAX_DIMS"):
            _write_axes(body, value)
        case _ if hasattr(value, "__headrace_fields__"):
            _write_fields(body, value.__headrace_fields__)
        case _:
            body.add("II", ValueKind.OBJECT, objects.number(value))


def _write_axes(body: Body, value: Any) -> None:
    axes = [int(axis) for axis in value]
    if len(axes) > MAX_DIMS:
        raise ValueError("more than 8 axes")
    body.add(f"Ii{len(axes)}q", ValueKind.DIMS, len(axes), *axes)
    data = value.array.tobytes() if isinstance(value, LentNumbers) else b""
    body.add("I", bool(data))
    if data:
        body.add("I", len(data)).raw(data)


def _write_fields(body: Body, rows: list[Row]) -> None:
    body.add("II", ValueKind.FIELDS, len(rows))
    for name, kind, length, data in rows:
        body.text(name).add("iiI", kind, length, data is not None)
        if data is not None:
            body.add("I", len(data)).raw(data)
