"""Plugins in the file that `custom-lib-path` names: loaded before the model is read."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from noria._core.notices import Notice
from noria.plugins.loading import is_loaded

if TYPE_CHECKING:
    from noria.engine.plugin_graph.plugin_record import PluginRecord

_OWN_CODE = Path(__file__).parents[2]


def code_of(creator: object) -> str:
    """Hash the file that a creator is written in, of a compiled one its library.

    Returns:
        sha256; empty if the file is noria's, or unknown.
    """
    library = getattr(creator, "library", None)  # of C++, here or in a worker
    definition = getattr(creator, "definition", None)  # plugins by decorators
    try:
        if isinstance(library, str) and library:
            return hashlib.sha256(Path(library).read_bytes()).hexdigest()
        file = inspect.getsourcefile(getattr(definition, "describe", type(creator)))
        if file is None or Path(file).is_relative_to(_OWN_CODE):
            return ""
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return ""


def changed_plugins(records: Sequence[PluginRecord]) -> str | None:
    """Name the first plugin of a plan that is missing or changed; None if there is none.

    A plan keeps the types and shapes that its plugins declared; other code may declare others.
    """
    if not records:
        return None
    from noria.plugins.known import known_plugins

    for record in records:
        creator = known_plugins().find(record.type, record.version, record.namespace)
        if creator is None:
            return f"plugin {record} is not registered"
        if record.code and code_of(creator) != record.code:
            return f"the code of plugin {record.type} changed"
    return None


def load_custom_plugins(path: Path | None) -> list[Notice]:
    """Load the plugins of a custom library, unless that has happened since the file was changed.

    Files that are missing, or of a kind that holds no plugins here, are left to whoever looks for
    parsers in them.

    Args:
        path: what `custom-lib-path` names.

    Returns:
        Collisions with other plugins.

    Raises:
        CustomLibraryError: the file fails.
    """
    if path is None or not path.is_file() or is_loaded(path):
        return []
    from noria.plugins.library import load_once
    from noria.plugins.registry import get_plugin_registry

    registry = get_plugin_registry()
    before = len(registry.notices)
    load_once(path, registry)
    return registry.notices[before:]
