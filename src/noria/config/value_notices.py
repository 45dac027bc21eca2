"""Values that are legal and probably not meant: quotes, comments and blanks inside them."""

from __future__ import annotations

import re

from noria._core.text import quoted
from noria.config.document import Document, Entry
from noria.config.key import Key
from noria.config.values import Kind

_COMMENT = re.compile(r"\s(#|;|//)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"\s*([\"']).*\1\s*", re.DOTALL)
_LEADING_INT = re.compile(r"\s*[+-]?[0-9]+")
_TEXTS = (Kind.STRING, Kind.PATH, Kind.STRINGS, Kind.PATHS)
_YAML_CUT, _CUT = 63, 1023


def remark_text(document: Document, entry: Entry, key: Key) -> None:
    """Add notices about one entry with an accepted text."""
    if key.kind in _TEXTS:
        _remark_on_text(document, entry, key)
    else:
        _remark_on_number(document, entry, key)


def _remark_on_text(document: Document, entry: Entry, key: Key) -> None:
    text, name = entry.text, key.name
    if not text:
        document.remark(entry.line, f"{name} is empty and counts as absent", "info")
        return
    found = []
    if _QUOTED.fullmatch(text):
        found.append("the quotes are part of the value: remove them")
    if document.form == "ini" and _COMMENT.search(text) and key.kind in (Kind.STRING, Kind.PATH):
        found.append("what looks like a comment is part of the value: put it on its own line")
    if text != text.rstrip():
        found.append("the blank at the end is part of the value: remove it")
    if key.kind is Kind.PATH and (text.startswith("~") or "$" in text):
        found.append("neither ~ nor $NAME is expanded")
    if name.endswith("func-name") and not found and not _IDENTIFIER.fullmatch(text):
        found.append("no function can be called that: letters, digits and _ only")
    if document.form == "yaml" and key.kind is Kind.STRINGS and "" in text.split(";"):
        found.append("there is an empty item: no semicolon behind the last one in YAML")
    short = document.form == "yaml" and (key.kind is Kind.STRINGS or name == "classifier-type")
    cut = _YAML_CUT if short else _CUT
    items = text.split(";") if key.kind is Kind.STRINGS else [text]
    if key.kind in (Kind.STRING, Kind.STRINGS) and any(len(i.encode()) > cut for i in items):
        found.append(f"the original cuts it after {cut} bytes, Noria does not")
    for message in found:
        document.remark(entry.line, f"{document.written(entry)}: {message}")


def _remark_on_number(document: Document, entry: Entry, key: Key) -> None:
    """Report the rest of a text of which only the start is read as a number."""
    text = entry.text
    if key.kind in (Kind.INT, Kind.INT_FLAG, Kind.FLAG):
        items = [text]
    elif key.kind is Kind.INTS:
        items = text.removesuffix(";").split(";") if text else []
    else:
        return
    for item in items:
        match = _LEADING_INT.match(item)
        rest = item[match.end() :].strip() if match else ""
        if match is None and key.kind is Kind.INTS:
            document.remark(
                entry.line, f"{document.written(entry)}: the item '{quoted(item)}' is read as 0"
            )
        elif (
            match and rest and not rest.startswith(("#", "//")) and not _whole(item, document, key)
        ):
            document.remark(
                entry.line,
                f"{document.written(entry)}: only {match[0].strip()} is read, "
                f"'{quoted(rest)}' is not",
            )


def _whole(item: str, document: Document, key: Key) -> bool:
    """Whether YAML reads all of the item: hexadecimal, for keys that are not read loosely."""
    return document.form == "yaml" and not key.loose and key.kind is not Kind.INTS
