"""Reads protocol buffers in their text form, as configurations of `nvinferserver` are written."""

from __future__ import annotations

import re
from typing import Any

from headrace._core.errors import ConfigError

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[-+]?[\w.][\w.+-]*)|(?P<mark>[{}\[\]<>:,;])"""
)
_ESCAPE = re.compile(r"\\(.)")
_CLOSING = {"{": "}", "<": ">"}
_MOST_DEEP = 50


class _Tokens:
    def __init__(self, text: str, where: str) -> None:
        self._text, self._where, self.place = text, where, 0
        self.kind, self.value = "", ""
        self.advance()

    def advance(self) -> None:
        """Go to the next token; its kind is empty at the end."""
        while self.place < len(self._text):
            start = self.place
            found = _TOKEN.match(self._text, start)
            if found is None:
                raise self.error(f"a character that has no place here: {self._text[start]!r}")
            self.place = found.end()
            if found.lastgroup is not None:
                self.kind, self.value = found.lastgroup, found[0]
                return
        self.kind = self.value = ""

    def error(self, text: str) -> ConfigError:
        """Return an error with the line."""
        line = self._text.count("\n", 0, self.place) + 1
        return ConfigError(text, where=f"{self._where}:{line}")


def parse_proto_text(text: str, where: str) -> dict[str, list[Any]]:
    """Read a message.

    Args:
        text: the whole message.
        where: name of the file, for errors.

    Returns:
        Field name -> all its values in order: `str`, `int`, `float`, `bool`, or a message in turn.
        Names of enumerations stay texts.

    Raises:
        ConfigError: the text is none; the message names the line.
    """
    return _message(_Tokens(text, where), "", 0)


def _message(tokens: _Tokens, end: str, depth: int) -> dict[str, list[Any]]:
    if depth > _MOST_DEEP:
        raise tokens.error(f"messages lie in each other more than {_MOST_DEEP} deep")
    fields: dict[str, list[Any]] = {}
    while tokens.value != end or tokens.kind == "text":
        if tokens.kind != "word":
            raise tokens.error(f"{tokens.value or 'the end of the file'} where a name must be")
        name = tokens.value
        tokens.advance()
        colon = tokens.value == ":"
        if colon:
            tokens.advance()
        values = fields.setdefault(name, [])
        if colon and tokens.value == "[":
            tokens.advance()
            while tokens.value != "]":
                values.append(_value(tokens, True, depth))
                if tokens.value == ",":
                    tokens.advance()
            tokens.advance()
        else:
            values.append(_value(tokens, colon, depth))
        if tokens.value in (",", ";"):
            tokens.advance()
    tokens.advance()
    return fields


def _value(tokens: _Tokens, colon: bool, depth: int) -> Any:
    kind, value = tokens.kind, tokens.value
    if kind == "mark" and value in _CLOSING:
        tokens.advance()
        return _message(tokens, _CLOSING[value], depth + 1)
    if kind not in ("text", "word") or not colon:
        raise tokens.error(f"{value or 'the end of the file'} where a value must be")
    tokens.advance()
    return _ESCAPE.sub(r"\1", value[1:-1]) if kind == "text" else _plain(value)


def _plain(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    for read in (int, float):
        try:
            return read(word.rstrip("fF") if read is float else word)
        except ValueError:
            continue
    return word
