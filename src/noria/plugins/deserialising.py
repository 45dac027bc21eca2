"""Share objects among the layers of one engine while it is loaded, such as their factory.

Source: custom-library spec 2.2, rows 9 to 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_open: ContextVar[dict[str, Any] | None] = ContextVar("noria_deserialising", default=None)


@contextmanager
def deserialising(given: dict[str, Any] | None = None) -> Iterator[None]:
    """Layers that are loaded meanwhile are of one engine. Within another one: of that.

    Args:
        given: what `for_this_engine` finds already.
    """
    if _open.get() is not None:
        yield
        return
    token = _open.set(dict(given or {}))
    try:
        yield
    finally:
        _open.reset(token)


def for_this_engine(key: str, make: Callable[[], T]) -> T:
    """Get the shared object of the engine being loaded; outside of that, make a new one."""
    held = _open.get()
    if held is None:
        return make()
    if key not in held:
        held[key] = make()
    found: T = held[key]
    return found
