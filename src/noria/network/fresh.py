"""Names that nothing in a graph has yet."""

from __future__ import annotations


def fresh(name: str, taken: set[str]) -> str:
    """`name`, or with a number behind it if it is taken; the result is taken from now on."""
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    taken.add(made)
    return made
