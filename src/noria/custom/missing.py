"""Errors for functions that a C++ library does not have: the cause, and similar names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from noria import _native
from noria._core.errors import CustomLibraryError
from noria.binary.elf import ElfFile
from noria.binary.entry_points import standing
from noria.binary.symbol_names import missing_name_hints, parser_like

if TYPE_CHECKING:
    from noria.config.origin import Origin


def no_such_function(elf: ElfFile, name: str, kind: str, check_macro: str) -> CustomLibraryError:
    """Make the error for a function that is not there, or has C++ linkage.

    Args:
        elf: the library.
        name: the function that the user named.
        kind: of `entry_points.KINDS`, the kind that the user wants.
        check_macro: checks such a function in its source.
    """
    for symbol in elf.functions():
        if symbol.startswith("_Z") and f"{len(name)}{name}" in symbol:
            signature = _native.demangle(symbol)
            if signature.partition("(")[0].rpartition("::")[2] == name:
                return CustomLibraryError(
                    f"{name} has C++ linkage: its name in the library is {symbol}",
                    where=str(elf.path),
                    expected="a function with C linkage",
                    fix=[
                        f'write extern "C" before bool {name}(…) in its source, and compile it '
                        "again",
                        f"{check_macro}({name}); reports this at compile time",
                    ],
                )
    return CustomLibraryError(
        f"the library has no function {name!r}",
        where=str(elf.path),
        fix=missing_hints(elf, name, kind),
    )


def named_at(error: CustomLibraryError, origin: Origin) -> CustomLibraryError:
    """Return the error with the config's line that names its subject, before its own place."""
    if origin.where is None or type(error) is not CustomLibraryError:  # a fault of its own
        return error
    where = f"{origin.where}: {error.where}" if error.where else origin.where
    return CustomLibraryError(error.found, where=where, expected=error.expected, fix=error.fix)


def missing_hints(elf: ElfFile, name: str, kind: str) -> list[str]:
    """List functions of the library with similar names: of this kind first, the nearest first."""
    functions = [n for n in elf.functions() if not n.startswith("_")]
    names, what = functions, "functions"
    if kind != "engine creator" and (parsers := parser_like(functions)):
        names, what = parsers, "parser-like functions"
    fits = partial(standing, wanted=kind)
    return missing_name_hints(name, names, kind=f"exported {what}", standing=fits)
