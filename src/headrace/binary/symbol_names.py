"""Names: as programmers write them, that may be parsers, nearest to one that is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from typing import NamedTuple

from headrace._core import _native
from headrace._core.near import alternatives
from headrace._core.text import shortened

SHOWN = 12
SUGGESTED = 3
LONGEST = 256  # letters of a name that is compared, or shown whole
COMPARED = 2000  # names
_NEAR = 0.6

# What names of parsers begin with, in this order: it does not tell them apart.
_PREFIXES = (("nvdsinfer", "nvds", "headrace"), ("custom",), ("parse",), ("custom",))

Standing = Callable[[str], tuple[int, str]]
"""Name -> how badly it fits the kind that is asked for, from 0, and what it is instead."""


def demangled(text: str) -> str:
    """The text with the C++ names in it as a programmer writes them."""
    return re.sub(r"\b_Z\w+", lambda m: str(_native.demangle(m[0])), text)


def parser_like(names: Iterable[str]) -> list[str]:
    """The names that look like parsers, sorted."""
    return sorted(n for n in names if "parse" in n.lower() and not n.startswith("_"))


class NearNames(NamedTuple):
    """The names in place of one that is absent.

    Attributes:
        hints: all of it in words.
        meant: names that were probably meant.
        others: of another kind than is asked for, and nearer still.
    """

    hints: list[str]
    meant: Sequence[str] = ()
    others: Sequence[str] = ()

    @property
    def data(self) -> dict[str, list[str]]:
        """The names, as an error has them."""
        return {"meant": list(self.meant), "others": list(self.others)}


def missing_name_hints(
    name: str, present: Iterable[str], *, kind: str, standing: Standing | None = None
) -> NearNames:
    """Return hints about an absent name: the one that was probably meant, then those there are.

    `kind` is the noun for the names that are `present`, in the plural. Without `standing` all are
    of the kind that is asked for.
    """
    names = sorted(set(present))
    if not names:
        return NearNames([f"it has no {kind} at all"])
    stands = {n: standing(n) if standing else (0, "") for n in names}
    near = near_functions(name, names)
    order = {n: i for i, n in enumerate(near)}
    ranked = sorted(names, key=lambda n: (stands[n][0], order.get(n, len(names)), n))
    fits = [n for n in ranked if n in near and not stands[n][1]]
    others = [n for n in ranked if n in near and stands[n][1]]
    hints = []
    if fits:
        if alike := [n for n in fits if near[n] == 1]:
            fits = alike
        hints.append(f"did you mean {alternatives(fits[:SUGGESTED])}?")
        others = [n for n in others if order[n] < order[fits[0]]]
    hints += [
        f"{'' if fits else 'did you mean '}{n}, {stands[n][1]}{'' if fits else '?'}"
        for n in others[:SUGGESTED]
    ]
    more = f", … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = ", ".join(shortened(n, LONGEST) for n in ranked[:SHOWN])
    hints.append(f"its {kind}: {shown}{more}")
    return NearNames(hints, fits[:SUGGESTED], others[:SUGGESTED])


def near_functions(name: str, names: Iterable[str]) -> dict[str, float]:
    """Those of `names` that are similar, the most similar first, and how similar: up to 1.

    Upper and lower case are alike, as are names with and without what all parsers' names begin
    with, which counts for little besides. Of very many names only those that share most with it are
    compared, and none that are longer than names are.
    """
    compared = [n for n in names if len(n) <= LONGEST] if len(name) <= LONGEST else []
    if len(compared) > COMPARED:
        pieces = _pieces(name)
        shared = {n: len(pieces & _pieces(n)) / (3 + len(n)) for n in compared}
        compared = nlargest(COMPARED, compared, key=lambda n: shared[n])
    ranking = [(*_nearness(name, n), n) for n in compared]
    ranking.sort(key=lambda f: (-f[0], -f[1], f[2]))
    return {n: near for near, _, n in ranking if near >= _NEAR}


def _pieces(name: str) -> set[str]:
    """The features that similar names share: all runs of three letters."""
    plain = name.lower().replace("_", "")
    return {plain[i : i + 3] for i in range(len(plain) - 2)}


def _nearness(name: str, other: str) -> tuple[float, float]:
    """Similarity of two names, 0..1: of their distinct parts, and as wholes."""
    a, b = (n.lower().replace("_", "") for n in (name, other))
    stripped = [_without_prefixes(n) for n in (a, b)]
    own = [forms[-1] for forms in stripped]
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    # letters that differ, wherever they are, beside those that tell names apart
    whole = 1 - (len(a) + len(b) - 2 * same) / max(1, len(own[0]) + len(own[1]))
    apart = SequenceMatcher(None, own[0], own[1], autojunk=False).ratio()
    # a name's own part may begin like a prefix: `ParseParsed` is `Parsed`, and `d` is neither
    alike = not set(stripped[0]).isdisjoint(stripped[1])
    return 1.0 if alike else max(whole, apart), matcher.ratio()


def _without_prefixes(name: str) -> list[str]:
    """The name, and its rests without each usual prefix; never an empty name."""
    forms = [name]
    for choices in _PREFIXES:
        prefix = next((c for c in choices if forms[-1].startswith(c)), "")
        if prefix and forms[-1] != prefix:
            forms.append(forms[-1].removeprefix(prefix))
    return forms
