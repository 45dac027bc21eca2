"""Protobuf's text format, of Caffe's networks and nvinferserver's configs: a tree with lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headrace._core.errors import HeadraceError, ModelError

MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>-?[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[fF]?)
      | (?P<mark>[{}<>\[\]:;,])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as written: `kind` is `string`, `word` or `number`."""

    kind: str
    text: str
    line: int

    def plain(self) -> Any:
        """Return the number or flag that is written; names of enumerations stay texts."""
        if self.kind == "string":
            return self.text
        if self.text in ("true", "false"):
            return self.text == "true"
        with suppress(ValueError):
            return int(self.text)
        with suppress(ValueError):
            return self.real()
        return self.text

    def real(self) -> float:
        """Return the number; ValueError if it is none."""
        return float(self.text if "inf" in self.text.lower() else self.text.rstrip("fF"))


@dataclass(slots=True)
class Message:
    """`name: value` and `name { ... }` entries by name, in order."""

    line: int
    entries: dict[str, list[Scalar | Message]] = field(default_factory=dict)

    def plain(self) -> dict[str, list[Any]]:
        """Return all values of each field, messages as mappings in turn."""
        return {name: [v.plain() for v in values] for name, values in self.entries.items()}


def read_proto_text(text: str, where: str, error: type[HeadraceError] = ModelError) -> Message:
    """Parse the text of a file.

    Args:
        text: the whole message.
        where: name of the file, for errors.
        error: raised with the line where the text is none.
    """
    return _Parser(text, where, error).message(1, "", 0)


class _Parser:
    def __init__(self, text: str, where: str, kind: type[HeadraceError]) -> None:
        self.where = where
        self.kind = kind
        self.tokens = self._tokens(text)
        self.next = next(self.tokens)

    def _tokens(self, text: str) -> Iterator[Scalar]:
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                fragment = "a string without end" if text[at] in "\"'" else repr(text[at])
                raise self.error(line, f"{fragment} does not belong here")
            at = match.end()
            kind = match.lastgroup or ""
            if kind == "newline":
                line += 1
            elif kind != "blank":
                yield Scalar(kind, match[0], line)
        yield Scalar("end", "", line)

    def error(self, line: int, problem: str, expected: str | None = None) -> HeadraceError:
        return self.kind(problem, where=f"{self.where}:{line}", expected=expected)

    def take(self) -> Scalar:
        token = self.next
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def is_mark(self, marks: str) -> bool:
        return self.next.kind == "mark" and self.next.text in marks

    def message(self, line: int, closing: str, depth: int) -> Message:
        if depth > MAX_DEPTH:
            raise self.error(line, f"more than {MAX_DEPTH} brackets within one another")
        message = Message(line)
        while True:
            if self.is_mark(";,"):
                self.take()
                continue
            name = self.take()
            if name.kind == "mark" and name.text == closing:
                return message
            if name.kind == "end":
                if closing:
                    raise self.error(
                        line, f"the bracket opened here is never closed with {closing}"
                    )
                return message
            if name.kind != "word" or name.text.startswith("-"):
                raise self.error(name.line, f"{name.text!r} is not the name of a field",
                                 "name: value, or name { ... }")  # fmt: skip
            self.entry(message, name, depth)

    def entry(self, message: Message, name: Scalar, depth: int) -> None:
        values = message.entries.setdefault(name.text, [])
        colon = self.is_mark(":")
        if colon:
            self.take()
        if colon and self.is_mark("["):
            self.take()
            while not self.is_mark("]"):
                values.append(self.value(name, depth, colon=True))
                if self.is_mark(","):
                    self.take()
            self.take()
            return
        values.append(self.value(name, depth, colon=colon))

    def value(self, name: Scalar, depth: int, *, colon: bool) -> Scalar | Message:
        token = self.take()
        if token.kind == "mark" and token.text in "{<":
            return self.message(token.line, "}" if token.text == "{" else ">", depth + 1)
        if token.kind not in ("string", "word", "number") or not colon:
            problem = f"{token.text!r} follows {name.text!r}" if token.text else "the file ends"
            raise self.error(token.line, problem, f"{name.text}: value, or {name.text} {{ ... }}")
        if token.kind != "string":
            return token
        text = _unescape(token.text)
        while self.next.kind == "string":  # neighbours are one string, as in C
            text += _unescape(self.take().text)
        return Scalar("string", text, token.line)


def _unescape(quoted: str) -> str:
    def one(match: re.Match[str]) -> str:
        hexadecimal, octal, letter = match.groups()
        if hexadecimal:
            return chr(int(hexadecimal, 16))
        if octal:
            return chr(int(octal, 8) & 255)
        return _ESCAPED.get(letter, letter)

    return _ESCAPE.sub(one, quoted[1:-1])
