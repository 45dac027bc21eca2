"""Opening a shared library so that it finds the host."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core import _native
from headrace._core.findings import Finding
from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import CREATORS, LOGGER_FINDER, REVISION, uses_host
from headrace.binary.gpu_code import note_pointers
from headrace.binary.tensorrt_line import TensorrtUse, served
from headrace.plugins.loading import loading
from headrace.plugins.registry import PluginRegistry, get_plugin_registry
from headrace.trt.host import creators
from headrace.trt.host.callback_errors import collected_errors

if TYPE_CHECKING:
    from typing import Any


EXPORTING = 2
"""The revision of the headers since which objects know their own classes' names."""

_lock = threading.Lock()
_ready = False
_files: dict[str, dict[tuple[int, int], int]] = {}
"""Path -> device and inode of each file that was opened there -> time of its last change."""


def set_up() -> None:
    """Give libraries that are opened from now on the host."""
    global _ready
    with _lock:
        if not _ready:
            # a library of parsers alone does not pay for it
            from headrace.trt.host.world import World

            _native.host_set_world(World())
            atexit.register(_close)
            _ready = True


def _close() -> None:
    """Release libraries while there is still an interpreter for their last calls."""
    from headrace.trt.host import functions  # loaded with the world

    creators.forget_all(get_plugin_registry())
    functions.forget_partial()
    gc.collect()
    _native.host_forget(0)
    _native.host_set_world(None)


def _name_for_loader(path: Path, decisions: list[Finding]) -> str:
    """Name a file as it is now: the loader takes one name for the file that it found there first.

    Appends a notice if the file was overwritten while it was loaded.
    """
    status = path.stat()
    file = status.st_dev, status.st_ino
    with _lock:
        known = _files.setdefault(str(path), {})
        before, known[file] = known.get(file), status.st_mtime_ns
        earlier = list(known).index(file)
    name = os.path.join(path.parent, *["."] * earlier, path.name)
    if before not in (None, status.st_mtime_ns) and name in Path("/proc/self/maps").read_text():
        text = (
            "it was overwritten since this process opened it, and what runs may be of both files: "
            "start anew, or put the next one there by a name of its own and mv"
        )
        decisions.append(Finding("library-while-loaded", "warning", text, str(path)))
    return name


def open_shared_object(path: Path, elf: ElfFile, decisions: list[Finding]) -> _native.SharedObject:
    """Open the `_native.SharedObject` of a library; its static initialisers may register plugins.

    Args:
        path: the library.
        elf: its file.
        decisions: failures of initialisers are appended, such as a plugin whose name is taken.

    Raises:
        RuntimeError: as `_native.SharedObject`.
        OSError: the file is gone.
    """
    use = served(elf)
    name = _name_for_loader(path, decisions)
    if use is None and not uses_host(elf):
        return _native.SharedObject(name)
    set_up()
    registry = get_plugin_registry()
    collisions = len(registry.notices)
    with loading(path), collected_errors() as errors:
        _native.foreign_expect(use.expected if use else 0)
        try:
            opened = _native.SharedObject(name)
        finally:
            _native.foreign_expect(0)
        creators.restore(registry, name)
        if use is not None and not CREATORS.isdisjoint(elf.exported()):
            _native.foreign_register_exported(opened, use.line or 8)
        elif not (CREATORS | {LOGGER_FINDER}).isdisjoint(elf.exported()):
            _register_exported(opened, registry, path, decisions)
    if (image := creators.image_of(registry, path)) is not None:
        note_pointers(image, path, decisions, compiled=use is not None)
    decisions += registry.notices[collisions:]
    if use is not None:
        _note_releases(use, registry, path, decisions)
    for text in dict.fromkeys(errors.failures):
        text = f"while it was loaded: {text}"
        decisions.append(Finding("library-while-loaded", "warning", text, str(path)))
    return opened


def _note_releases(
    use: TensorrtUse, registry: PluginRegistry, path: Path, decisions: list[Finding]
) -> None:
    """Add notices of the release that a library was compiled for, and of contradictions."""
    if use.mixed:
        decisions.append(Finding("library-tensorrt-mixed", "warning", use.mixed, str(path)))
    image = creators.image_of(registry, path)
    line, release = (0, 0) if image is None else _native.foreign_origin(image)
    if line:
        named = _native.foreign_release_text(line, release)
        text = f"compiled for {named}: its plugins are called by the places of their functions"
        decisions.append(Finding("library-tensorrt", "info", text, str(path)))
    elif use.bases and not use.mixed:
        text = (
            f"it asks for {use.releases} and has classes of {', '.join(use.bases)}, but it "
            "registered no creator that can be called"
        )
        decisions.append(Finding("library-while-loaded", "warning", text, str(path)))


def _register_exported(
    opened: Any, registry: PluginRegistry, path: Path, decisions: list[Finding]
) -> None:
    """Register the creators of `CREATORS` that the library has not registered itself."""
    names = " or ".join(sorted(CREATORS))
    if _native.library_number(opened, REVISION) < EXPORTING:
        text = f"{names} is not called: the library was compiled with headers of an older headrace"
        decisions.append(Finding("library-while-loaded", "warning", text, str(path)))
        return
    try:
        exported = _native.exported_creators(opened)
    except _native.CustomCodeError as error:
        text = f"{names}: it threw {error}"
        decisions.append(Finding("library-while-loaded", "warning", text, str(path)))
        return
    for native in exported:
        creator = creators.creator(native)
        namespace = creator.plugin_namespace
        there = registry.find(creator.name, creator.plugin_version, namespace)
        if there is None or getattr(there, "library", None) != str(path):
            registry.register_creator(creator, namespace)
