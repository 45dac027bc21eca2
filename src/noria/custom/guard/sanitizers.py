"""Libraries that a sanitizer watches: it ends the process itself, after a report of its own."""

from __future__ import annotations

from pathlib import Path

from noria.binary.elf import ElfError, ElfFile

_NAMES = {
    "__asan_": "AddressSanitizer",
    "__tsan_": "ThreadSanitizer",
    "__msan_": "MemorySanitizer",
    "__ubsan_": "UndefinedBehaviorSanitizer",
}


def sanitizer_of(library: str) -> str | None:
    """Which sanitizer a library was compiled with, by the functions that it calls; None: none."""
    try:
        symbols = [s.name for s in ElfFile.read(Path(library)).symbols]
    except (ElfError, OSError):
        return None
    for prefix, name in _NAMES.items():
        if any(symbol.startswith(prefix) for symbol in symbols):
            return name
    return None
