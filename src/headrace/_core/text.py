"""Words of messages: text of unknown origin, counts and times."""

from __future__ import annotations

from headrace._core.urls import without_secrets

_SHOWN_LENGTH = 80


def quoted(text: str, *, limit: int | None = _SHOWN_LENGTH) -> str:
    """`text` for a message: one printable line of limited length, without secrets."""
    text = without_secrets(text)
    if limit is not None:
        text = shortened(text, limit)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int) -> str:
    """Return `text`, cut with an ellipsis if it has more than `most` letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def error_text(error: BaseException, *, kind: bool = True) -> str:
    """Word an exception of code that is not headrace's: its text, behind its type with `kind`."""
    try:
        text = str(error).strip()
    except Exception as second:  # that code again
        text = f"(its text cannot be had: __str__ raised {type(second).__name__})"
    if not kind:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 box`, `2,000 boxes`."""
    plural = f"{noun}es" if noun.endswith(("s", "x")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def duration_text(seconds: float) -> str:
    """Word a time in seconds, minutes or hours, whichever are few: 90.0 s, 12.5 min, 30.2 h."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:,.1f} h"
