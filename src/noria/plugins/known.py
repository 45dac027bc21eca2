"""The registry with everything in it that comes by itself: standard plugins, installed packages."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path
from typing import Any

from noria._core.errors import NoriaError
from noria._core.notices import Notice
from noria.plugins.library import creators_of
from noria.plugins.registry import PluginRegistry, get_plugin_registry

ENTRY_POINTS = "noria.plugins"
"""Group of entry points. Each names a module of plugins, a creator class, or a function that is
called with the registry."""

_lock = threading.Lock()
_done = False


def known_plugins() -> PluginRegistry:
    """Get the registry of this process with standard plugins and those of installed packages.

    The first call adds them. A creator that is there already stays.
    """
    global _done
    registry = get_plugin_registry()
    with _lock:
        if not _done:
            _done = True
            _load_entry_points(registry)
            _load_standard(registry)
    return registry


def _load_standard(registry: PluginRegistry) -> None:
    from noria.plugins.standard import register_standard

    before = {id(c) for c in registry.all_creators}
    register_standard(registry)
    registry.replaceable.update(id(c) for c in registry.all_creators if id(c) not in before)


def _load_entry_points(registry: PluginRegistry) -> None:
    from importlib.metadata import entry_points  # slow to import, and rarely asked

    for point in entry_points(group=ENTRY_POINTS):
        try:
            _register(point.load(), registry)
        except Exception as error:
            said = error.found if isinstance(error, NoriaError) else f"{error}"
            text = f"plugins of {point.value} are not loaded: {type(error).__name__}: {said}"
            registry.notices.append(Notice("warning", text, f"entry point {point.name}"))


def _register(thing: Any, registry: PluginRegistry) -> None:
    if inspect.ismodule(thing):
        made = creators_of(thing, registry, Path(thing.__file__ or thing.__name__))
    elif inspect.isclass(thing):
        made = [thing()]
    else:
        made = thing(registry) or []
    for creator in made:
        registry.register_creator(creator, creator.plugin_namespace)
