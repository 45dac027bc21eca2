"""Libraries of users that call the original's functions: those stand ready when one is loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace.binary.elf import ElfFile
from headrace.binary.symbol_names import demangled
from headrace.custom.in_process import note_loading
from headrace.custom.load_errors import check_header, load_failed
from headrace.custom.stand_ins import provide_stand_ins

_FOLDER = Path(_native.__file__).parents[1] / "lib"


@cache
def original_functions() -> Any:
    """Load the library with the original's functions; those that users link find them in it."""
    return ctypes.CDLL(str(_FOLDER / "libheadrace_deepstream.so"), ctypes.RTLD_GLOBAL)


def elf_with(path: Path, required: Sequence[str], what: str) -> ElfFile:
    """Read the file of a library that exports all required functions.

    Args:
        path, required, what: see `load_beside`.

    Raises:
        CustomLibraryError: it is no library of this machine, or lacks a function.
    """
    elf = check_header(path)
    lacking = [name for name in required if name not in elf.functions()]
    if lacking:
        raise CustomLibraryError(
            f"the library exports no {', '.join(lacking)}",
            where=str(path),
            expected=f"{what}: {', '.join(required)} with C linkage",
            fix='declare them in extern "C"',
        )
    return elf


def load_beside(
    path: Path, required: Sequence[str], what: str, notices: list[Finding]
) -> ctypes.CDLL:
    """Load a library of a user's beside its own needs.

    Args:
        path: the library.
        required: functions that it must export.
        what: it has to be, for the message.
        notices: findings about what stands in for missing libraries are added here.

    Raises:
        CustomLibraryError: it cannot be loaded, or lacks a function.
    """
    elf = elf_with(path, required, what)
    note_loading(path)
    original_functions()
    for name in elf.needed:
        if (own := _FOLDER / "run" / name).is_file():
            ctypes.CDLL(str(own), ctypes.RTLD_GLOBAL)
    provide_stand_ins(elf, notices)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise load_failed(elf, str(error), demangled(str(error))) from error
