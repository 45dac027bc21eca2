"""Short names of sources on one picture, each another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def captions(names: Mapping[int, str], longest: int) -> dict[int, str]:
    """Name sources by the end of their paths, with as many folders as tell them apart.

    Args:
        names: the full name of each source, by its id.
        longest: most characters; longer names lose their beginning. Sources that cannot be told
            apart within them get their id in front.
    """
    paths = {number: [p for p in name.split("/") if p] or [""] for number, name in names.items()}
    shown = {number: path[-1] or f"source {number}" for number, path in paths.items()}
    for depth in range(2, 1 + max(map(len, paths.values()), default=0)):
        same = _repeated(shown)
        for number in same:
            shown[number] = "/".join(paths[number][-depth:])
    shown = {number: cut(text, longest) for number, text in shown.items()}
    for number in _repeated(shown):
        mark = f"{number}: "
        shown[number] = mark + cut(paths[number][-1], max(2, longest - len(mark)))
    return shown


def cut(text: str, longest: int) -> str:
    """The end of a text that is too long."""
    return text if len(text) <= longest else "…" + text[1 - longest :]


def _repeated(shown: Mapping[int, str]) -> list[int]:
    counts = Counter(shown.values())
    return [number for number, text in shown.items() if counts[text] > 1]
