"""Stand-ins for NVIDIA's libraries while a user's library is loaded, and notices of them."""

from __future__ import annotations

import ctypes

from noria._core.notices import Notice
from noria.binary.elf import ElfFile
from noria.binary.library_search import find_elsewhere
from noria.custom.compile.toolchain import gpu_present
from noria.custom.stand_ins import demands, drain_calls, supported, take_place

_SHOWN = 6


def provide_stand_ins(elf: ElfFile, decisions: list[Notice]) -> None:
    """Make the loader find the libraries of NVIDIA that the library is linked against.

    An installed library is never replaced. With a GPU, copies that pip or NVIDIA's toolkit
    installed are loaded from where they are. The others get a stand-in, on x86-64.

    Raises:
        CustomLibraryError: a stand-in cannot be loaded.
    """
    if not supported():
        return
    where = str(elf.path)
    missing = demands(elf)
    if missing and gpu_present():
        for demand in list(missing):
            if path := find_elsewhere(demand.soname):
                ctypes.CDLL(str(path))
                missing.remove(demand)
                decisions.append(Notice("info", f"{demand.soname} is taken from {path}", where))
    if not missing:
        return
    drain_calls()
    names = take_place(missing, where)
    decisions.append(
        Notice(
            "info",
            f"not installed: {', '.join(names)}; noria stands in, and a function that calls into "
            "it gets an error",
            where,
        )
    )


def note_calls(elf: ElfFile, decisions: list[Notice]) -> None:
    """Add a notice of missing functions that the library called while it was loaded."""
    calls = list(dict.fromkeys(drain_calls()))
    if calls:
        text = ", ".join(f"{function} of {library}" for function, library in calls[:_SHOWN])
        more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
        decisions.append(
            Notice(
                "info",
                f"while it was loaded, it called {text}{more}: the answer was 0",
                str(elf.path),
            )
        )
