"""Properties of elements: tables with the ranges and enumerations of the original."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from headrace.gstreamer.elements.bindings import GObject
from headrace.gstreamer.pyds.struct import function

INT_MAX, UINT_MAX = (1 << 31) - 1, (1 << 32) - 1
FLOAT_MAX = 3.4e38
NO_EFFECT = "accepted, without effect yet"


class Choices(NamedTuple):
    """The values of an enumeration.

    Attributes:
        type_name: of the original's type.
        nicks: value and nick of each; both are accepted.
    """

    type_name: str
    nicks: tuple[tuple[int, str], ...]


class Property(NamedTuple):
    """A property of an element.

    Attributes:
        kind: `bool`, `int`, `int64`, `uint`, `uint64`, `float`, `str`, `pointer` or `enum`.
        default: its first value.
        text: for people; `NO_EFFECT` marks one that the original heeds and Headrace does not yet: a
            warning on stderr names it, since an element has no bus when it gets its properties.
        least, most: of a number; GObject refuses others with a warning. None: the kind's.
        choices: of an enumeration.
        idle: values beside the default that ask for what is so anyhow; no warning names them.
    """

    kind: str
    default: Any
    text: str
    least: float | None = None
    most: float | None = None
    choices: Choices | None = None
    idle: tuple[Any, ...] = ()

    @property
    def is_ignored(self) -> bool:
        """True for one that the original heeds and Headrace does not."""
        return self.text == NO_EFFECT


def choice(default: int, text: str, type_name: str, *nicks: str) -> Property:
    """Make a property of an enumeration with nicks numbered from 0."""
    return Property("enum", default, text, choices=Choices(type_name, tuple(enumerate(nicks))))


_LIMITS: dict[str, tuple[float, float]] = {
    "int": (-INT_MAX - 1, INT_MAX),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint": (0, UINT_MAX),
    "uint64": (0, (1 << 64) - 1),
    "float": (-FLOAT_MAX, FLOAT_MAX),
}
_TYPES = {
    "bool": bool, "int": int, "int64": GObject.TYPE_INT64, "uint": GObject.TYPE_UINT,
    "uint64": GObject.TYPE_UINT64, "str": str, "float": float, "pointer": GObject.TYPE_POINTER,
}  # fmt: skip

_MEMORY = (
    "GstNvBufMemoryType", "nvbuf-mem-default", "nvbuf-mem-cuda-pinned", "nvbuf-mem-cuda-device",
    "nvbuf-mem-cuda-unified", "nvbuf-mem-surface-array",
)  # fmt: skip
INTERPOLATION = (
    "GstNvInterpolationMethod",
    "Nearest", "Bilinear", "Algo-1", "Algo-2", "Algo-3", "Algo-4", "Default",
)  # fmt: skip


def unheeded(kind: str, default: object, *names: str) -> dict[str, Property]:
    """Make properties of one kind that the original heeds and Headrace does not."""
    return {name: Property(kind, default, NO_EFFECT) for name in names}


def interpolation(default: int) -> Property:
    """Make the property of a scaling method: images are scaled bilinearly, others are named."""
    return choice(default, NO_EFFECT, *INTERPOLATION)._replace(idle=(1, 6))


COMMON = {
    "gpu-id": Property("uint", 0, "accepted; there is no GPU here"),
    "nvbuf-memory-type": choice(0, "accepted; images lie in main memory", *_MEMORY),
    "compute-hw": choice(
        0, "accepted; the processor computes", "GstNvComputeHWType", "Default", "GPU", "VIC"
    ),
    "interpolation-method": interpolation(6),
    "qos": Property("bool", False, NO_EFFECT),
}


class _EnumValue(ctypes.Structure):
    """GEnumValue of C."""

    _fields_ = (("value", ctypes.c_int), ("name", ctypes.c_char_p), ("nick", ctypes.c_char_p))


@cache
def _enumeration(choices: Choices) -> tuple[GObject.GType, ctypes.Array[_EnumValue]]:
    """The type of an enumeration, and its table, which GObject reads as long as it runs."""
    rows = [_EnumValue(value, nick.encode(), nick.encode()) for value, nick in choices.nicks]
    table = (_EnumValue * (len(rows) + 1))(*rows)
    library = ctypes.CDLL("libgobject-2.0.so.0")
    register = function(
        library.g_enum_register_static, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
    )
    if not register(choices.type_name.encode(), ctypes.addressof(table)):
        raise RuntimeError(f"there is another type called {choices.type_name}")
    return GObject.type_from_name(choices.type_name), table


def _typed(row: Property) -> tuple[object, ...]:
    """The type of a row, and its bounds and default as PyGObject wants them."""
    if row.choices is not None:
        return _enumeration(row.choices)[0], row.default
    if row.kind == "pointer":
        return (_TYPES[row.kind],)
    bounds = _LIMITS.get(row.kind)
    if bounds is None:
        return _TYPES[row.kind], row.default
    least, most = bounds[0] if row.least is None else row.least, row.most
    return _TYPES[row.kind], least, bounds[1] if most is None else most, row.default


def gproperties(table: Mapping[str, Property]) -> dict[str, tuple[object, ...]]:
    """Make PyGObject's `__gproperties__` of a table."""
    flags = GObject.ParamFlags.READWRITE
    specs = {}
    for name, row in table.items():
        kind, *bounds = _typed(row)
        specs[name] = (kind, name, row.text, *bounds, flags)
    return specs
