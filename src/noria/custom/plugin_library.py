"""Compiled libraries of plugins, opened for the plugin registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from noria.binary.elf import ElfError, ElfFile
from noria.binary.entry_points import uses_host
from noria.custom.opening import open_here
from noria.plugins.registry import PluginRegistry, get_plugin_registry


def open_plugins(path: Path, registry: PluginRegistry) -> list[Any] | None:
    """Open a C++ library; it registers its creators in the process's registry meanwhile.

    Args:
        path: the library.
        registry: the registry that the creators are for.

    Returns:
        The creators that are not in `registry` yet; None if the file is no library that was
        compiled with noria's headers.

    Raises:
        CustomLibraryError: as `open_here`.
    """
    try:
        if not uses_host(ElfFile.read(path)):
            return None
    except (ElfError, OSError):
        return None
    before = {id(c) for c in get_plugin_registry().all_creators}
    open_here(path)
    made = [c for c in get_plugin_registry().all_creators if id(c) not in before]
    return [] if registry is get_plugin_registry() else made
