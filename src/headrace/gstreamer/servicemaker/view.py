"""Views of `pyds` structures under the names of the service maker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

from headrace.gstreamer.pyds.meta import items
from headrace.gstreamer.pyds.struct import Struct, Text, text_at

V = TypeVar("V", bound="MetaView")


class Alias:
    """An attribute of a view that reads and writes a field of its structure."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, view: MetaView | None, owner: type) -> Any:
        if view is None:
            return self
        value = getattr(view.meta, self._name)
        if isinstance(vars(type(view.meta)).get(self._name), Text):
            return text_at(value) or ""
        return value

    def __set__(self, view: MetaView, value: object) -> None:
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        setattr(view.meta, self._name, str(value) if isinstance(value, str) else value)


class ViewField:
    """An attribute that shows a nested structure as a view, None without; assigning copies it."""

    def __init__(self, name: str, kind: type[MetaView]) -> None:
        self._name, self._kind = name, kind

    def __get__(self, view: MetaView | None, owner: type) -> Any:
        if view is None:
            return self
        member = getattr(view.meta, self._name)
        return None if member is None else self._kind.of(member)

    def __set__(self, view: MetaView, value: MetaView) -> None:
        setattr(view.meta, self._name, value.meta)


class ViewItems(Generic[V]):
    """An attribute that goes through a list of its structure, each entry shown as a view.

    Args:
        name: of the list.
        kind: of the views.
        data: the kind of user metadata that is shown; None shows all entries.
    """

    def __init__(self, name: str, kind: type[V], data: type[MetaView] | None = None) -> None:
        self._name, self._kind, self._data = name, kind, data

    def __get__(self, view: MetaView, owner: type) -> Iterator[V]:
        for entry in items(view.meta, self._name):
            if self._data is None or isinstance(entry.user_meta_data, self._data.KIND):
                yield self._kind.of(entry)


_VIEWS: dict[type[Struct], type[MetaView]] = {}


class MetaView:
    """Base of the views.

    Attributes:
        KIND: the structure that a view makes for itself.
        meta: the structure that it shows.
    """

    KIND: ClassVar[type[Struct]]
    meta: Any

    def __init_subclass__(cls) -> None:
        if "KIND" in vars(cls):
            _VIEWS[cls.KIND] = cls

    def __init__(self) -> None:
        self.meta = self.KIND()

    @classmethod
    def of(cls, meta: Struct) -> Self:
        """Show a structure that is there."""
        view = cls.__new__(cls)
        view.meta = meta
        return view

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetaView) and other.meta is self.meta

    def __hash__(self) -> int:
        return id(self.meta)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meta!r})"


def view_of(meta: Struct) -> Any:
    """Show a structure by the view of its type."""
    return _VIEWS[type(meta)].of(meta)
