"""Plugins in the files that `custom-lib-path` names.

Light on purpose, as `loading.py`: the registry is imported where a file has plugins to register.
"""

from __future__ import annotations

from pathlib import Path

from headrace._core.findings import Finding
from headrace.plugins.loading import PYTHON_SUFFIXES, is_loaded


def load_custom_plugins(path: Path | None) -> list[Finding]:
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
    if path is None or path.suffix.lower() not in PYTHON_SUFFIXES or not path.is_file():
        return []
    if is_loaded(path):
        return []
    from headrace.plugins.registry import get_plugin_registry, load_given

    registry = get_plugin_registry()
    before = len(registry.notices)
    load_given(path, registry)
    return registry.notices[before:]
