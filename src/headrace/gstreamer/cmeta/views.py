"""Views: structures of pyds with fields that lie in memory of C.

A structure that is bound keeps its identity: its class becomes a view of the same class, whose
fields read and write the C structure. The table says where each field lies; what the table does not
have stays an attribute of the object.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from headrace._core.types import Array
from headrace.gstreamer.cmeta import native
from headrace.gstreamer.cmeta.layout import StructField, c_type, struct_rows
from headrace.gstreamer.pyds.meta import MetaField, MetaList, NvDsBaseMeta, NvDsUserMeta
from headrace.gstreamer.pyds.osd import Elements
from headrace.gstreamer.pyds.struct import Held, Nested, Struct, Text, text_at

Value = Any
"""What a field holds: its class decides."""
CStruct = Any
"""A structure of `ctypes`; the table of layouts gives its fields at run time."""
Bound = Any
"""A structure of pyds, or a view on memory of C: the same fields, known at run time."""

_UNSIGNED = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64)
_INTEGERS = (*_UNSIGNED, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64)


class CView:
    """Mixed into the views: the C structure `_c`, and the tree it belongs to, if any."""

    _c: CStruct
    _tree: Value
    _fields: dict[str, CField]

    def _written(self) -> dict[str, Value]:
        """Read all fields for a copy: nested structures are views still, texts are copied."""
        values = {n: v for n, v in vars(self).items() if n not in self._fields and n not in _OWN}
        for name, field in self._fields.items():
            value = field.__get__(self, type(self))
            if not isinstance(field, _NestedView):
                value = field.detached(value)
            if value is not None or not isinstance(field, _TextPointer):
                values[name] = value
        return values


_OWN = ("_c", "_tree")


class CField:
    """A field of a view: plain numbers; the classes below are the other kinds."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def __get__(self, view: Bound, owner: type) -> Value:
        return self if view is None else getattr(view._c, self.name)

    def __set__(self, view: Bound, value: Value) -> None:
        setattr(view._c, self.name, value)

    def detached(self, value: Value) -> Value:
        """Return a value of the field for a structure of Python's."""
        return value


class _Integer(CField):
    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind)
        self._unsigned = c_type(kind) in _UNSIGNED
        self._mask = (1 << 8 * ctypes.sizeof(c_type(kind))) - 1

    def __set__(self, view: Bound, value: Value) -> None:
        number = int(value) if not isinstance(value, float) or math.isfinite(value) else 0
        if self._unsigned:  # a position left of the image is its edge; -1 is a number of all ones
            number = self._mask if number == -1 and self._mask >> 32 else max(0, number)
        setattr(view._c, self.name, number)


class _Characters(CField):
    """An array of characters: a text, cut to its room."""

    def __get__(self, view: Bound, owner: type) -> Value:
        return self if view is None else getattr(view._c, self.name).decode(errors="replace")

    def __set__(self, view: Bound, value: str) -> None:
        room = getattr(type(view._c), self.name).size - 1
        setattr(view._c, self.name, value.encode(errors="replace")[:room])


@cache
def _borrowed(text: str) -> Value:
    """Keep a text for ever: fonts and types are few, and C code borrows their addresses."""
    return ctypes.create_string_buffer(text.encode(errors="replace"))


class _TextPointer(CField):
    """A text of C: reads as its address as in pyds, or as the text where pyds has one."""

    def __init__(self, name: str, kind: str, plain: Bound) -> None:
        super().__init__(name, kind)
        self.is_borrowed = name in ("font_name", "classifier_type")
        self._as_text = isinstance(plain, str)

    def __get__(self, view: Bound, owner: type) -> Value:
        if view is None:
            return self
        address = getattr(view._c, self.name) or 0
        return (text_at(address) or "") if self._as_text else address

    def __set__(self, view: Bound, value: Value) -> None:
        if isinstance(value, Held):
            value = text_at(value.address) or ""
        if self.is_borrowed:
            address = ctypes.addressof(_borrowed(value)) if value else 0
        else:
            address = native.new_text(value) if isinstance(value, str) else int(value or 0)
            if address != getattr(view._c, self.name):
                native.release(getattr(view._c, self.name))
        setattr(view._c, self.name, address)

    def detached(self, value: Value) -> Value:
        return value if self._as_text else text_at(value)


class _NestedView(CField):
    """A structure inside of a structure."""

    def __init__(self, name: str, kind: str, plain: type[Struct]) -> None:
        super().__init__(name, kind)
        self.plain = plain

    def __get__(self, view: Bound, owner: type) -> Value:
        if view is None:
            return self
        nested = view.__dict__.get(self.name)
        if nested is None:
            nested = new_view(self.plain, getattr(view._c, self.name), view._tree)
            view.__dict__[self.name] = nested
        return nested

    def __set__(self, view: Bound, value: Value) -> None:
        if self.name in view.__dict__ or is_view(value):
            self.__get__(view, type(view)).copy_from(value)
        else:
            view.__dict__[self.name] = value
            bind(value, getattr(view._c, self.name), view._tree)

    def detached(self, value: Value) -> Value:
        return detach(value)


class _ElementsView(_NestedView):
    """Sixteen structures of a display meta."""

    def __get__(self, view: Bound, owner: type) -> Value:
        if view is None:
            return self
        elements = view.__dict__.get(self.name)
        if elements is None:
            array = getattr(view._c, self.name)
            elements = [new_view(self.plain, part, view._tree) for part in array]
            view.__dict__[self.name] = elements
        return elements

    def __set__(self, view: Bound, value: Value) -> None:
        parts = list.__iter__(value)
        array, plain = getattr(view._c, self.name), self.plain
        elements = view.__dict__[self.name] = []
        for part, c in zip(parts, array, strict=True):
            if part is None:
                elements.append(new_view(plain, c, view._tree))
            else:
                elements.append(bind(part, c, view._tree))

    def detached(self, value: Value) -> Value:
        return [detach(part) for part in value]


class _Numbers(CField):
    """An array of numbers; all else counts as 0."""

    def __set__(self, view: Bound, value: Value) -> None:
        array = getattr(view._c, self.name)
        for index, number in enumerate(value):
            array[index] = number if isinstance(number, int) else 0

    def detached(self, value: Value) -> Value:
        return list(value)


class _Mask(CField):
    """The values of a mask, float32, in memory of GLib; `size` is in bytes."""

    def __get__(self, view: Bound, owner: type) -> Value:
        if view is None:
            return self
        address, size = getattr(view._c, self.name), view._c.size
        if not address or not size:
            return None
        memory: Value = (ctypes.c_uint8 * size).from_address(address)
        return np.frombuffer(memory, np.float32)

    def __set__(self, view: Bound, value: Array | None) -> None:
        old, address = getattr(view._c, self.name), 0
        if value is not None:
            values = np.ascontiguousarray(value, np.float32)
            address = native.allocate(values.nbytes)
            ctypes.memmove(address, values.ctypes.data, values.nbytes)
        setattr(view._c, self.name, address)
        native.release(old)

    def detached(self, value: Value) -> Value:
        return None if value is None else value.copy()


class _Pointer(CField):
    """A pointer: its address, or the structure that the tree knows there."""

    def __get__(self, view: Bound, owner: type) -> Value:
        if view is None:
            return self
        address = getattr(view._c, self.name)
        tree = view._tree and view._tree()
        return address if tree is None or not address else tree.value_at(view, self.name, address)

    def __set__(self, view: Bound, value: Value) -> None:
        tree = view._tree and view._tree()
        address = tree.address_of(view, self.name, value) if tree is not None else value
        setattr(view._c, self.name, address if isinstance(address, int) else 0)

    def detached(self, value: Value) -> Value:
        return value


def _field(row: StructField, plain: type[Struct]) -> CField | None:
    """Return the field of a view for a row; None for a field that stays in Python."""
    name, kind = row.name, row.kind
    static = next((vars(c)[name] for c in plain.__mro__ if name in vars(c)), None)
    if isinstance(static, MetaField):
        return None
    if isinstance(static, Nested):
        return _NestedView(name, kind, static.kind)
    if isinstance(static, Elements):
        return _ElementsView(name, kind, static.kind)
    if isinstance(static, property) or kind in ("GRecMutex", "GstMeta", "NvDsMetaPool*"):
        return None
    if kind.startswith(("gchar[", "char[")):
        return _Characters(name, kind)
    if isinstance(static, Text) or kind in ("gchar*", "char*", "const gchar*", "const char*"):
        return _TextPointer(name, kind, static)
    if "[" in kind:
        return _Numbers(name, kind)
    if plain.__name__ == "NvOSD_MaskParams" and name == "data":
        return _Mask(name, kind)
    result = c_type(kind)
    if result is ctypes.c_void_p:
        return _Pointer(name, kind)
    if result in _INTEGERS:
        return _Integer(name, kind)
    return None if issubclass(result, ctypes.Structure) else CField(name, kind)


def _batch_of(view: Bound) -> Value:
    """Return the batch of a base meta: its tree knows."""
    tree = view._tree and view._tree()
    return None if tree is None else tree.batch


@cache
def view_class(plain: Bound) -> Value:
    """Return the view of a class of pyds.

    Raises:
        KeyError: the table has no structure of that name.
    """
    rows = struct_rows()[plain.__name__].fields
    fields = {row.name: field for row in rows if (field := _field(row, plain)) is not None}
    body: dict[str, Value] = {
        **fields,
        "_fields": fields,
        "_plain": plain,
        "__doc__": plain.__doc__,
    }
    if plain is NvDsBaseMeta:
        body["batch_meta"] = property(_batch_of, lambda view, batch: None)
    if "__del__" in vars(plain):
        body["__del__"] = lambda self: None  # the pool releases it
    return type(f"{plain.__name__}", (CView, plain), body)


def fields_of(plain: Bound) -> dict[str, dict[str, Any]]:
    """Sort the fields of a class by how a record holds them.

    Returns:
        `plain` numbers, texts `owned` and `borrowed`, `characters`, `arrays` of 64 bits, pointers
        that a record leaves `empty`: name -> type in C; `nested`: name -> class.
    """
    words = ("plain", "owned", "borrowed", "characters", "arrays", "empty", "nested")
    kinds: dict[str, dict[str, Any]] = {word: {} for word in words}
    for name, field in view_class(plain)._fields.items():
        if isinstance(field, _NestedView):
            kinds["nested"][name] = field.plain
        elif isinstance(field, _TextPointer):
            kinds["borrowed" if field.is_borrowed else "owned"][name] = field.kind
        elif isinstance(field, _Characters):
            kinds["characters"][name] = field.kind
        elif isinstance(field, _Numbers):
            kinds["arrays"][name] = field.kind
        elif isinstance(field, _Pointer | _Mask):
            kinds["empty"][name] = field.kind
        else:
            kinds["plain"][name] = field.kind
    return kinds


@cache
def borrowed_address(text: str) -> int:
    """Return the address of a text that stays for ever."""
    return ctypes.addressof(_borrowed(text))


def is_view(value: object) -> bool:
    """True for a structure that lies in memory of C."""
    return isinstance(value, CView)


def new_view(plain: Bound, c: CStruct, tree: Value) -> Value:
    """Make a view on a C structure, which is read as it is."""
    view: Bound = object.__new__(view_class(plain))
    view.__dict__.update(_c=c, _tree=tree)
    return view


@cache
def _defaults(plain: Bound) -> dict[str, Value]:
    """Values of a class that are not 0, and so must be written into zeroed memory."""
    names = view_class(plain)._fields
    values = {name: getattr(plain, name, 0) for name in names}
    return {
        name: int(value)
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and value
    }


def bind(
    struct: Bound, c: CStruct, tree: Value, attach: Callable[..., None] | None = None
) -> Value:
    """Write a structure of Python's into zeroed memory of C, and make it a view on that.

    Args:
        struct: of a class of pyds; it keeps its identity.
        c: the structure of `ctypes`.
        tree: a weak reference to its tree, or None.
        attach: called with the name of each list and its items.
    """
    plain: Bound = type(struct)
    old = struct.__dict__
    struct.__dict__ = {"_c": c, "_tree": tree}
    struct.__class__ = view_class(plain)
    fields = struct._fields
    for name, value in _defaults(plain).items():
        if name not in old:
            fields[name].__set__(struct, value)
    lists = []
    for name, value in old.items():
        field = fields.get(name)
        if isinstance(value, MetaList):
            lists.append((name, value))
        elif field is not None:
            field.__set__(struct, value)
        else:
            struct.__dict__[name] = value
    for name, value in lists:
        if attach is not None:
            attach(struct, name, value)
    return struct


def detach(view: Bound) -> Value:
    """Read a view into a structure of Python's: the same object, which outlives the memory."""
    if not is_view(view):
        return view
    fields, lists, tree = view._fields, _lists(view), view._tree and view._tree()
    user = tree.kept_user(view) if view._plain is NvDsUserMeta and tree is not None else None
    values = {name: field.detached(field.__get__(view, type(view)))
              for name, field in fields.items() if not isinstance(field, _Pointer)}  # fmt: skip
    pointers = {
        n: f.__get__(view, type(view)) for n, f in fields.items() if isinstance(f, _Pointer)
    }
    plain = view._plain
    rest = {n: v for n, v in vars(view).items() if n not in _OWN and n not in fields}
    view.__dict__ = {n: v for n, v in rest.items() if n not in lists}
    view.__class__ = plain
    for name, value in values.items():
        _restore(view, name, value)
    for name, value in pointers.items():
        view.__dict__[name] = detach(value) if name == "parent" else value
    if user is not None:
        view.user_meta_data, view.base_meta.copy_func, view.base_meta.release_func = user
    for name, parts in lists.items():
        whole = view.__dict__[name] = MetaList()
        for part in parts:
            whole.append(detach(part))
    return view


def release_texts(plain: Bound, c: CStruct) -> None:
    """Free the texts of a structure that no pool of C's releases."""
    for name, field in view_class(plain)._fields.items():
        if type(field) is _NestedView:
            release_texts(field.plain, getattr(c, name))
        elif isinstance(field, _TextPointer) and not field.is_borrowed:
            native.release(getattr(c, name))
            setattr(c, name, 0)


def _restore(struct: Bound, name: str, value: Value) -> None:
    """Set a field of a structure of Python's to the value that its memory in C held."""
    static = getattr(type(struct), name, None)
    if isinstance(static, Text):
        if value is not None:
            setattr(struct, name, value)
    elif isinstance(static, Elements):
        list.__setitem__(static.__get__(struct, type(struct)), slice(None), value)
    else:
        struct.__dict__[name] = value


def _lists(view: Bound) -> dict[str, list[Value]]:
    return {name: list(v) for name, v in vars(view).items() if isinstance(v, MetaList)}
