"""Plugins in the file that `custom-lib-path` names: loaded before the model is read."""

from __future__ import annotations

from pathlib import Path

from noria.notices import Notice
from noria.plugins.library import load_once

__all__ = ["load_custom_plugins"]


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
    if path is None or not path.is_file():
        return []
    from noria.plugins.registry import get_plugin_registry

    registry = get_plugin_registry()
    before = len(registry.notices)
    load_once(path, registry)
    return registry.notices[before:]
