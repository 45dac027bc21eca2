"""The stand-ins of this process."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from noria import _native
from noria._core.errors import CustomLibraryError
from noria.custom.stand_ins.demand import Demand
from noria.custom.stand_ins.image import ANCHOR, Loaded, build

_DATA = re.compile(r"_ZT[VIST]")  # vtables, type infos, their names, tables of virtual bases
_VIRTUAL_FUNCTIONS = 96

_lock = threading.Lock()
_loaded: dict[str, Loaded] = {}
_type_infos: dict[str, int] = {}


def supported() -> bool:
    """Return whether stand-ins can be made on this machine."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def take_place(demands: Iterable[Demand], where: str) -> list[str]:
    """Load, or extend, the stand-ins that a library needs; they stay as long as the process.

    Args:
        demands: the names that it needs, by library.
        where: the library, for errors.

    Returns:
        Their names.

    Raises:
        CustomLibraryError: this machine cannot load them, or one is full.
    """
    placed = []
    with _lock:
        for demand in demands:
            try:
                loaded = _loaded.get(demand.soname) or _open(demand)
                for name, version in demand.names:
                    if (name, version) not in loaded.names:
                        _add(loaded, name, version)
            except (OSError, MemoryError, ValueError) as error:
                raise CustomLibraryError(
                    f"{demand.soname} is not installed, and nothing can stand in for it: {error}",
                    where=where,
                ) from error
            placed.append(demand.soname)
    return placed


def drain_calls() -> list[tuple[str, str]]:
    """(function, library) of calls into stand-ins that were answered with 0 since the last time.

    These happened while a library was loaded or unloaded, or in a thread of its own.
    """
    calls: list[tuple[str, str]] = _native.stand_in_calls()
    return calls


def _open(demand: Demand) -> Loaded:
    content = build(demand.soname, demand.versions)
    library = _load(content, demand.soname)
    anchor = ctypes.addressof(ctypes.c_char.in_dll(library, ANCHOR))
    loaded = Loaded(anchor, demand.soname, demand.versions)
    _loaded[demand.soname] = loaded
    return loaded


def _load(content: bytes, soname: str) -> ctypes.CDLL:
    try:
        file = os.memfd_create(f"noria-stand-in-{soname}")
    except (AttributeError, OSError):
        with tempfile.TemporaryDirectory(prefix="noria-stand-in-") as folder:
            path = Path(folder, soname)
            path.write_bytes(content)
            return ctypes.CDLL(str(path))
    # It stays open: the loader knows libraries by their paths, and a number used again would be
    # taken for the library that had it before.
    os.write(file, content)
    return ctypes.CDLL(f"/proc/self/fd/{file}")


def _add(loaded: Loaded, name: str, version: str | None) -> None:
    if version is not None and version not in loaded.nodes:
        raise ValueError(
            f"another library was loaded first that asks for other versions of it than {version}"
        )
    if not _DATA.match(name):
        loaded.add_function(name, version, _target(name, loaded.soname))
    elif name.startswith("_ZTI"):
        _type_infos[name] = loaded.add_data(name, version, _type_info(loaded, name))
    elif name.startswith("_ZTS"):
        text = name[4:].encode() + b"\0"
        text += bytes(-len(text) % 8)
        words = [int.from_bytes(text[i : i + 8], "little") for i in range(0, len(text), 8)]
        loaded.add_data(name, version, words)
    else:
        # A vtable: how many functions it has is unknown, each is the same.
        readable = f"a virtual function of {_native.demangle('_ZTI' + name[4:])}"
        readable = readable.replace("typeinfo for ", "")
        each = loaded.add_function(readable, None, _target(readable, loaded.soname))
        type_info = _type_infos.get("_ZTI" + name[4:]) or _plain_type_info(loaded, name)
        loaded.add_data(name, version, [0, type_info, *[each] * _VIRTUAL_FUNCTIONS])


def _target(function: str, soname: str) -> int:
    target: int = _native.stand_in_target(function, soname)
    return target


def _type_info(loaded: Loaded, name: str) -> list[int]:
    """A `std::type_info` of a class without bases: its vtable, and its name."""
    return [_native.class_type_info(), loaded.text(name[4:])]


def _plain_type_info(loaded: Loaded, vtable: str) -> int:
    name = "_ZTI" + vtable[4:]
    if (name, None) not in loaded.names:
        _type_infos[name] = loaded.add_data(name, None, _type_info(loaded, name))
    return _type_infos[name]
