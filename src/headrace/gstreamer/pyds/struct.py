"""Fields of the C structures that applications read and write: plain, nested, and text."""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar, overload

_libc = ctypes.CDLL(None)
_libc.malloc.restype = _libc.calloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]

S = TypeVar("S", bound="Struct")


def function(call: Any, result: type | None, *arguments: type) -> Any:
    """Declare the types of a function of C and return it."""
    call.restype, call.argtypes = result, arguments
    return call


def duplicate(text: str | bytes) -> int:
    """Copy a text into memory of C; returns its address, which `free` gives back."""
    raw = text if isinstance(text, bytes) else text.encode(errors="replace")
    address = allocate(len(raw) + 1)
    ctypes.memmove(address, raw, len(raw))
    return address


def allocate(size: int) -> int:
    """Return the address of `size` zeroed bytes of C."""
    return int(_libc.calloc(max(1, size), 1) or 0)


def free(address: int) -> None:
    """Give memory of C back."""
    _libc.free(address)


def text_at(address: int) -> str | None:
    """Read the text at an address; None at 0."""
    return ctypes.string_at(address).decode(errors="replace") if address else None


def capsule_of(address: int) -> Any:
    """Return an address as a capsule, the form of a pointer that Python's bindings take."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, None, None)


class Struct:
    """Base of the structures.

    A plain field is an attribute of the class, its default; a write makes one of the instance.
    """

    @classmethod
    def cast(cls: type[S], data: Any) -> S:
        """Return `data`, as the capsules of a list's nodes are cast in the original."""
        instance: S = data
        return instance

    def copy_from(self, other: Struct) -> None:
        """Take over all fields of a structure of the same type; nested ones are copied."""
        for name, value in other._written().items():
            if isinstance(value, Held):
                setattr(self, name, text_at(value.address) or "")
            else:
                setattr(self, name, value)

    def _written(self) -> dict[str, Any]:
        """Return the fields that were written or touched."""
        return vars(self)

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{k}={v!r}" for k, v in self._written().items() if not k.startswith("_")
        )
        return f"{type(self).__name__}({fields})"


def plain_kind(struct: S) -> type[S]:
    """Return the class of a structure as applications make it, where its memory is C's too."""
    kind: type[S] = getattr(type(struct), "_plain", type(struct))
    return kind


class Nested:
    """A structure inside of a structure: made when first touched; assigning copies."""

    def __init__(self, kind: type[Struct]) -> None:
        self.kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, struct: None, owner: type) -> Nested: ...
    @overload
    def __get__(self, struct: Struct, owner: type) -> Any: ...
    def __get__(self, struct: Struct | None, owner: type) -> Any:
        if struct is None:
            return self
        nested = struct.__dict__.get(self._name)
        if nested is None:
            nested = struct.__dict__[self._name] = self.kind()
        return nested

    def __set__(self, struct: Struct, value: Struct) -> None:
        nested = struct.__dict__[self._name] = self.kind()
        nested.copy_from(value)


class Text:
    """A pointer to a text: reads as its address, 0 without; a text that is written is copied.

    The memory is freed when another text is written and when the structure goes.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, struct: None, owner: type) -> Text: ...
    @overload
    def __get__(self, struct: Struct, owner: type) -> int: ...
    def __get__(self, struct: Struct | None, owner: type) -> Any:
        if struct is None:
            return self
        held = struct.__dict__.get(self._name)
        return 0 if held is None else held.address

    def __set__(self, struct: Struct, value: str | bytes) -> None:
        if not isinstance(value, str | bytes):
            raise TypeError(f"{self._name} is set with a text, not {type(value).__name__}")
        struct.__dict__[self._name] = Held(duplicate(value))


class Buffer(Text):
    """A text; an address of `alloc_buffer` that is written becomes its memory."""

    def __set__(self, struct: Struct, value: str | bytes | int) -> None:
        if isinstance(value, str | bytes):
            super().__set__(struct, value)
        elif value != self.__get__(struct, type(struct)):
            struct.__dict__[self._name] = Held(int(value))


class Held:
    """Memory of one text, freed with the last reference."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        _libc.free(self.address)
