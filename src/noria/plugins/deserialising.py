"""What belongs together while one engine is loaded: factories of its layers are made once for it.

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
    """What `make` gave for the engine that is being loaded; made anew outside of that."""
    held = _open.get()
    if held is None:
        return make()
    if key not in held:
        held[key] = make()
    found: T = held[key]
    return found
