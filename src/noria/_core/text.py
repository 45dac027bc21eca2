"""Quote text of unknown origin for messages."""

from __future__ import annotations

_SHOWN_LENGTH = 80


def quoted(text: str, *, limit: int | None = _SHOWN_LENGTH) -> str:
    """`text` for a message: on one line, printable whatever was in the file, not endless."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
