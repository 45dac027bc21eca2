"""C++ libraries that register plugins: opened, and hints about those that register none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import CustomLibraryError
from headrace._core.text import quoted
from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import CREATORS, uses_host
from headrace.binary.tensorrt_line import asks_tensorrt, file_brings_plugins
from headrace.custom.library import open_here
from headrace.custom.preloaded import preload_hints
from headrace.custom.stand_ins import is_nvidia
from headrace.plugins.registry import PluginRegistry, get_plugin_registry

if TYPE_CHECKING:
    from typing import Any


def open_plugins(path: Path, registry: PluginRegistry) -> list[Any] | None:
    """Open a C++ library; it registers its creators in the process's registry meanwhile.

    Args:
        path: the library.
        registry: the registry that the creators are for.

    Returns:
        The creators that are not in `registry` yet; None if the file is no library that may
        register any.

    Raises:
        CustomLibraryError: as `open_here`; it was compiled against TensorRT's own headers, and
            does not tell of which release; it is another C++ library, which registers none.
    """
    if not file_brings_plugins(path):
        if (error := foreign_error(path)) is not None:
            raise error
        if damage := _damage(path):
            raise CustomLibraryError(
                f"it cannot be loaded: {damage}", where=str(path), expected="a whole library"
            )
        if hints := library_hints(path):
            raise CustomLibraryError(
                "it registers no plugin",
                where=str(path),
                expected="a library with REGISTER_TENSORRT_PLUGIN or getCreators, or a Python file "
                "of plugins",
                fix=hints,
            )
        return None
    before = {id(c) for c in get_plugin_registry().all_creators}
    open_here(path)
    creators = [c for c in get_plugin_registry().all_creators if id(c) not in before]
    return [] if registry is get_plugin_registry() else creators


def _damage(path: Path) -> str:
    """Name the damage of a library that was cut off; empty for any other file."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
        ElfFile.read(path)
    except OSError:
        return ""
    except ElfError as error:
        return str(error)
    return ""


def foreign_error(path: Path) -> CustomLibraryError | None:
    """Make the error for a library of TensorRT's own headers; None for any other file."""
    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        return None
    needed = sorted(filter(is_nvidia, elf.needed))
    if CREATORS.isdisjoint(elf.exported()) and not needed:
        return None
    return CustomLibraryError(
        "it was compiled against TensorRT's own headers"
        + (f" and needs {', '.join(needed)}" if needed else ""),
        where=str(path),
        expected="a library of plugins that headrace compile made, or a Python file of plugins",
        fix=f"compile its sources: headrace compile SOURCES -o {path.name}; or let a file of the "
        f"same plugins stand for it: --plugins {path.name}=FILE",
    )


def _foreign_demand(elf: ElfFile) -> str:
    """Word the demands of a library of TensorRT's own headers; empty for any other."""
    needed = ", ".join(sorted(filter(is_nvidia, elf.needed)))
    asked = sorted({s.name for s in elf.symbols if not s.defined and asks_tensorrt(s.name)})
    given = sorted(CREATORS & set(elf.exported()))
    parts = [
        f"needs {needed}" if needed else "",
        f"calls {', '.join(asked)}" if asked else "",
        f"exports {', '.join(given)}" if given else "",
    ]
    return "; ".join(filter(None, parts))


MOST_NAMED = 5


def plugin_hints(path: Path | None) -> list[str]:
    """List the plugins that the library registers, or the reason why there are none.

    Args:
        path: the file of `custom-lib-path`; it was loaded. None and files that are no C++
            library have no hints.
    """
    return [*preload_hints(), *library_hints(path)]


def library_hints(path: Path | None) -> list[str]:
    """`plugin_hints` without those of other libraries."""
    if path is None:
        return []
    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        damage = _damage(path)
        return [f"{path.name} cannot be loaded: {damage}"] if damage else []
    creators = [
        f"{c.name} version {c.plugin_version}"
        + (f", namespace {c.plugin_namespace!r}" if c.plugin_namespace else "")
        for c in get_plugin_registry().creators_of(path)
    ]
    if creators:
        rest = f" and {len(creators) - MOST_NAMED} more" if len(creators) > MOST_NAMED else ""
        return [f"{path.name} registers: {'; '.join(map(quoted, creators[:MOST_NAMED]))}{rest}"]
    look = f"headrace inspect {path.name} shows what it has"
    if uses_host(elf):
        return [
            f"{path.name} registers no plugin, though it has code for some: is "
            f"REGISTER_TENSORRT_PLUGIN(<the creator>) in a source of it? {look}"
        ]
    if foreign := _foreign_demand(elf):
        return [
            f"{path.name} registers no plugin here: it was compiled against TensorRT's own "
            f"headers ({foreign}), and gave no creator when it was loaded; compile its sources, "
            "those of the plugin too, with headrace compile; or let a file of the same plugins "
            f"stand for it: --plugins {path.name}=FILE; {look}"
        ]
    return [
        f"{path.name} registers no plugin: a source with REGISTER_TENSORRT_PLUGIN(<the creator>) "
        f"must be among those that headrace compile gets; {look}"
    ]
