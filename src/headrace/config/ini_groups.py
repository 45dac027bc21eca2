"""INI form: the key-file grammar of GLib, with line numbers. Source: config facts, section 1.3.

Not `configparser`: that one lower-cases keys, takes `:` for `=` and `;` for a comment, interpolates
`%`, joins indented lines and refuses repeated keys. GLib does none of this.
"""

from __future__ import annotations

import re
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.text import quoted
from headrace.config.document import Document, Entry, Group

# GLib's ASCII blanks: unlike str.strip() neither vertical tab nor Unicode spaces.
_BLANKS = " \t\n\f\r"
_MAX_PROBLEMS = 1000
_GROUP = re.compile(r"\[([^\[\]\x00-\x1f\x7f]+)\][ \t]*")
_ALMOST_GROUP = re.compile(r"\[([^\[\]=]+)\]\s*\S")
_LOCALE_KEY = re.compile(r"([^\[\]]+)\[[^\[\]]*\]")
_YAML_LINE = re.compile(r"[A-Za-z][\w-]*:(\s|$)")


def read_keyfile(data: bytes, path: Path) -> Document:
    """Read the INI form."""
    document = Document(path, "ini")
    if data.startswith(b"\xef\xbb\xbf"):
        document.refuse(
            1,
            "the file starts with a UTF-8 byte order mark.",
            "plain UTF-8 text",
            "save it as UTF-8 without BOM",
            code="byte-order-mark",
        )
        data = data[3:]
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        document.refuse(line, "the file holds a NUL byte.", "a text file", code="syntax")
        return document
    _Reader(document).read(data.decode("utf-8", "surrogateescape"))
    return document


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.group: Group | None = None
        self.told_homeless = False
        self.yaml_lines = 0

    def read(self, text: str) -> None:
        lines = text.split("\n")
        last = len(lines)
        for number, raw in enumerate(lines, 1):
            # a carriage return belongs to the line end only where a newline follows
            line = raw[:-1] if number < last and raw.endswith("\r") else raw
            line = line.lstrip(_BLANKS)
            if line and not line.startswith("#"):
                self._line(number, line)
                if len(self.document.problems) >= _MAX_PROBLEMS:
                    break  # this is no config file
        problems = self.document.problems
        if problems and self.yaml_lines > len(problems) // 2:
            first = problems[0]
            advice = " Is this YAML? Then its name must end in .yaml or .yml."
            problems[0] = ConfigError(first.finding.changed(code="other-form", suffix=advice))

    def _line(self, number: int, line: str) -> None:
        document = self.document
        if match := _GROUP.fullmatch(line):
            self._open(number, match[1])
        elif line.startswith("["):
            name = _ALMOST_GROUP.match(line)
            document.refuse(
                number,
                f"'{quoted(line)}' is not a group line.",
                f"nothing behind the bracket: [{quoted(name[1])}]" if name else "[group-name]",
                "a comment needs its own line" if name else None,
                code="syntax",
            )
            self._open(number, name[1] if name else "")  # so that its keys are still looked at
        elif "=" in line and not line.startswith("="):
            key, _, value = line.partition("=")
            self._entry(number, key.rstrip(_BLANKS), value.lstrip(_BLANKS))
        else:
            self.yaml_lines += bool(_YAML_LINE.match(line))
            document.refuse(
                number,
                f"'{quoted(line)}' is not key=value.",
                *self._hint_for_odd_line(line),
                code="syntax",
            )

    @staticmethod
    def _hint_for_odd_line(line: str) -> tuple[str, str | None]:
        expected = "key=value, [group], or a comment that starts with #"
        if line.startswith((";", "//")):
            return expected, "comments start with #"
        if ":" in line:
            return expected, "key and value are separated by =, not by a colon"
        if line.startswith("="):
            return expected, "the name of the key is missing"
        return expected, "a value cannot continue on the next line"

    def _open(self, number: int, name: str) -> None:
        self.group = self.document.groups.setdefault(name, Group(name, number))

    def _entry(self, number: int, key: str, value: str) -> None:
        document = self.document
        if self.group is None:
            if not self.told_homeless:
                document.refuse(
                    number,
                    f"{quoted(key)} stands before the first group.",
                    "a line [property] above",
                    code="no-property-group",
                )
            self.told_homeless = True
            return
        if "[" in key or "]" in key:
            if _LOCALE_KEY.fullmatch(key):
                document.remark(
                    number,
                    f"{quoted(key)} is ignored: [...] behind a key marks a translation",
                    code="unknown-key",
                )
            else:
                problem = f"'{quoted(key)}' is not a key name."
                document.refuse(number, problem, "no brackets in it", code="syntax")
            return
        if (
            key == "Encoding"
            and self.group is next(iter(document.groups.values()))
            and value.upper() != "UTF-8"
        ):
            problem = f"Encoding={quoted(value)} is not supported."
            document.refuse(number, problem, "UTF-8", code="syntax")
            return
        self.group.entries.append(Entry(key, value, number))
