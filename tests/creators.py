"""The registry of plugins as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.plugins import get_plugin_registry


@contextmanager
def registry_as_before() -> Iterator[None]:
    """Take creators back that come meanwhile: other tests of the process may have their names."""
    registry = get_plugin_registry()
    before = list(registry.all_creators)
    try:
        yield
    finally:
        for creator in registry.all_creators:
            if not any(creator is known for known in before):
                registry.deregister_creator(creator)
