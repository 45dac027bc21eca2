"""Plain records: classes of named values, as dataclasses are, made in C.

A dataclass compiles up to six functions when its module is imported. A record compiles none; a
run imports over a hundred of them. Its instances are made several times faster, too.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, ClassVar, cast, dataclass_transform

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    Fields = dict[str, dataclasses.Field[object]]

    @dataclass_transform(field_specifiers=(field,))
    class PlainRecord:
        """The base of records. `dataclasses.replace`, `fields` and `asdict` know them."""

        __dataclass_fields__: ClassVar[Fields]

        def __init_subclass__(
            cls,
            *,
            frozen: bool = False,
            eq: bool = True,
            kw_only: bool = False,
            weakref: bool = False,
        ) -> None: ...

else:

    class _Fields:
        def __get__(self, record, kind):
            return _dataclass_fields(kind)

    PlainRecord = type(Struct)("PlainRecord", (Struct,), {"__dataclass_fields__": _Fields()})


def set_frozen(record: PlainRecord, name: str, value: object) -> None:
    """Set a field of a record that is frozen, as its `__post_init__` may."""
    force_setattr(cast("Struct", record), name, value)


@cache
def _dataclass_fields(kind: type[Struct]) -> Fields:
    """The fields of a record, as `dataclasses` describes them."""
    types: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        types |= vars(base).get("__annotations__", {})
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    all_defaults = (NODEFAULT,) * (len(names) - len(defaults)) + defaults
    made = dataclasses.make_dataclass(
        kind.__name__,
        [(n, types[n], _dataclass_field(d)) for n, d in zip(names, all_defaults, strict=True)],
        init=False,
        repr=False,
        eq=False,
        kw_only=True,
        namespace={"__doc__": kind.__doc__ or kind.__name__},  # else it makes the signature
    )
    fields: Fields = vars(made)["__dataclass_fields__"]
    return fields


def _dataclass_field(default: object) -> object:
    if default is NODEFAULT:
        return dataclasses.field()
    if factory := getattr(default, "factory", None):
        return dataclasses.field(default_factory=factory)
    return dataclasses.field(default=default)
