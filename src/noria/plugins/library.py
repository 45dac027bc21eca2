"""Load files of plugins: Python files, and others that an opener is registered for."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import noria
from noria._core.errors import CustomLibraryError
from noria._core.user_module import describe, import_file
from noria.plugins.base import IPluginCreatorInterface
from noria.plugins.loading import (
    FUNCTIONS,
    PYTHON_SUFFIXES,
    is_loaded,
    loaded_files,
    note_loaded,
)

if TYPE_CHECKING:
    from noria.plugins.registry import PluginRegistry

TWINS: dict[str, Path] = {}
"""Name of a compiled library, without its folder -> file of plugins that stands for it."""


def register_module(module: ModuleType, path: Path, registry: PluginRegistry) -> None:
    """Register the creators of a module that was run already, as `load_library` would.

    Raises:
        CustomLibraryError: see `creators_of`.
    """
    for creator in creators_of(module, registry, path):
        registry.register_creator(creator, creator.plugin_namespace)


def load_once(path: Path, registry: PluginRegistry) -> None:
    """Load a Python file of plugins unless it is loaded as it stands; leave other files alone.

    Raises:
        CustomLibraryError: it fails.
    """
    path = path.absolute()
    if path.suffix.lower() in PYTHON_SUFFIXES:
        load_given(path, registry)


def load_given(path: Path, registry: PluginRegistry) -> None:
    """Load a file that must be one of plugins, unless it is loaded as it stands.

    Raises:
        CustomLibraryError: it is of an unknown kind, or fails.
    """
    path = path.absolute()
    if not is_loaded(path):
        registry.load_library(path)
        note_loaded(path)


def without_creators(registry: PluginRegistry) -> list[Path]:
    """Files that were loaded and registered nothing."""
    return [path for path in loaded_files() if not registry.come_from(path)]


def open_plugin_file(path: Path, registry: PluginRegistry) -> tuple[Any, list[Any]]:
    """Load a file; the module, and the creators in it that are not registered yet.

    Raises:
        CustomLibraryError: missing, of an unknown kind, or it failed.
    """
    path = TWINS.get(path.name, path)
    if not path.is_file():
        raise CustomLibraryError("there is no such plugin library", where=str(path))
    if path.suffix.lower() in PYTHON_SUFFIXES:
        module = import_file(path)
        return module, creators_of(module, registry, path)
    creators = noria._wiring.open_plugins(path, registry)
    if creators is not None:
        return None, creators
    raise CustomLibraryError(
        "compiled plugins cannot be loaded from this file",
        where=str(path),
        expected="a Python file of plugins (.py), or a library of plugins that noria compile made",
        fix="write the plugin in Python and register it under the same name, version and "
        "namespace: noria init --plugin NAME writes a template",
    )


def creators_of(module: ModuleType, registry: PluginRegistry, path: Path) -> list[Any]:
    """The creators of a module that were not registered when it ran.

    Raises:
        CustomLibraryError: `get_plugin_creators` failed, or a creator cannot be made.
    """
    for name in FUNCTIONS:
        function = getattr(module, name, None)
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            return list(_guarded(function, name, path))
    registered = {type(creator) for creator in registry.all_creators}
    found = []
    for name, value in vars(module).items():
        is_own = inspect.isclass(value) and value.__module__ == module.__name__
        if not is_own or not issubclass(value, IPluginCreatorInterface) or name.startswith("_"):
            continue
        if value not in registered and _takes_nothing(value):
            found.append(_guarded(value, name, path))
    return found


def _guarded(function: Any, name: str, path: Path) -> Any:
    try:
        return function()
    except Exception as error:
        found, line, trail = describe(error, path.parent)
        raise CustomLibraryError(
            f"{name}() raised {found}", where=line or str(path), fix=trail
        ) from error


def _takes_nothing(cls: type) -> bool:
    try:
        inspect.signature(cls).bind()
    except (TypeError, ValueError):
        return False
    return True
