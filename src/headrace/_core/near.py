"""Names near one that is not there, and the question whether one of them was meant."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 64  # letters that are compared


def near_names(name: str, names: Iterable[str], most: int = 3, *, cutoff: float = 0.6) -> list[str]:
    """Return those of `names` that look like `name`, the most similar first.

    Args:
        name: the name that is not there.
        names: those that are.
        most: how many are returned at most.
        cutoff: how similar they must be, 0 to 1.
    """
    from difflib import get_close_matches  # late: for a name that is not there

    return get_close_matches(name, names, most, cutoff)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the key of `names` most like `name`: case, dashes and blanks make no difference."""
    plain = {plain_name(candidate): candidate for candidate in names}
    close = near_names(plain_name(name[:_LONGEST]), plain, 1, cutoff=0.7)
    return plain[close[0]] if close else None


def plain_name(name: str) -> str:
    """Return a key as keys are compared: lower case, dashes, no blanks, no sign of a comment."""
    return name.lower().replace("_", "-").replace(" ", "").lstrip(";")


def did_you_mean(*names: str | None) -> str | None:
    """Return `did you mean a, b or c?`; None if no name is near."""
    meant = [name for name in names if name is not None]
    return f"did you mean {alternatives(meant)}?" if meant else None


def alternatives(names: Iterable[str]) -> str:
    """Return names as a sentence has them: `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
