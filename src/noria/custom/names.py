"""Names: as programmers write them, that may be parsers, nearest to one that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from noria import _native

__all__ = ["demangled", "missing_name_hints", "parser_like"]

SHOWN = 12


def demangled(text: str) -> str:
    """The text with the C++ names in it as a programmer writes them."""
    return re.sub(r"\b_Z\w+", lambda m: str(_native.demangle(m[0])), text)


def parser_like(names: Iterable[str]) -> list[str]:
    """The names that look like parsers, sorted."""
    return sorted(n for n in names if "parse" in n.lower() and not n.startswith("_"))


def missing_name_hints(name: str, present: Iterable[str], *, kind: str) -> list[str]:
    """What to say when `name` is absent: the nearest name, then what there is."""
    names = sorted(set(present))
    hints = []
    if near := nearest(name, names):
        hints.append(f"did you mean {near}?")
    if names:
        shown = ", ".join(names[:SHOWN])
        more = f", … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        hints.append(f"its {kind}: {shown}{more}")
    else:
        hints.append(f"it has no {kind} at all")
    return hints


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of `names`, if any is similar at all; upper and lower case are alike."""
    by_lower = {n.lower(): n for n in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None
