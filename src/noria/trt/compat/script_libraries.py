"""Libraries of plugins that a script loads with ctypes.

One that was compiled with noria's headers registers its creators; one that was compiled for a GPU
may have a twin, a file of the same plugins that can run here. The CUDA runtime is host memory.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from noria._core.errors import NoriaError
from noria.binary.elf import ElfError, ElfFile
from noria.binary.entry_points import uses_host
from noria.plugins.registry import TWINS, get_plugin_registry, load_given
from noria.trt.compat.shims.cudart_library import FUNCTIONS

_CUDA = re.compile(r"libcudart\.so(\.\d+)*")


def load_libraries(given: Iterable[str]) -> None:
    """Load files of plugins now, and twins when the script loads the libraries they replace.

    Args:
        given: `FILE`, or `LIBRARY.so=FILE` for a twin.

    Raises:
        NoriaError: there is no such file.
        CustomLibraryError: it fails.
    """
    for text in given:
        library, mark, file = text.rpartition("=")
        path = Path(file).absolute()
        if not path.is_file():
            raise NoriaError(
                "there is no such file of plugins", where=file,
                expected="--plugins FILE, or --plugins LIBRARY.so=FILE",
            )  # fmt: skip
        if mark:
            TWINS[Path(library).name] = path
        else:
            load_given(path, get_plugin_registry())
    _watch()


@cache
def _watch() -> None:
    """Watch the libraries that ctypes opens in this process."""
    original = ctypes.CDLL.__init__

    def init(self: Any, name: Any, *arguments: Any, **more: Any) -> None:
        path = Path(os.fspath(name)) if name else None
        if path is None:
            original(self, name, *arguments, **more)
        elif path.name in TWINS:
            load_given(TWINS[path.name], get_plugin_registry())
            original(self, None, *arguments, **more)
        elif _CUDA.fullmatch(path.name):
            original(self, None, *arguments, **more)
            vars(self).update(FUNCTIONS)
        else:
            if path.is_file() and _is_ours(path):
                load_given(path, get_plugin_registry())
            original(self, name, *arguments, **more)

    ctypes.CDLL.__init__ = init  # type: ignore[method-assign]


def _is_ours(path: Path) -> bool:
    try:
        return uses_host(ElfFile.read(path))
    except (ElfError, OSError):
        return False
