"""Words of messages: text of unknown origin, counts and times."""

from __future__ import annotations

import re

from headrace._core.urls import without_secrets

_SHOWN_LENGTH = 80
_LINE_END = re.compile(r"\n(?!  )")


def printable(text: str, *, lines: bool = False) -> str:
    """`text` for a terminal or a log: characters that would steer either become escapes.

    A line feed stays where two blanks follow, as in findings: a text from outside begins no line.

    Args:
        text: of any origin.
        lines: keep all line feeds: Headrace has written the lines, and outside texts in them hold
            none.
    """
    if text.isprintable():
        return text
    if not lines:
        text = _LINE_END.sub(r"\\n", text)
    return "".join(c if c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def quoted(text: str, *, limit: int | None = _SHOWN_LENGTH) -> str:
    """`text` for a message: one printable line of limited length, without secrets."""
    text = without_secrets(text)
    if limit is not None:
        text = shortened(text, limit)
    return "".join(map(_escaped, text))


def printable_json(text: str) -> str:
    """Write lone surrogates and all that would steer a terminal as escapes of JSON."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


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
