"""From the text of a value to a number, text or list, by the rules of each file form.

INI follows GLib (config facts 1.4), YAML the original's YAML reader (1.5). Where that reader would
crash, `BadValueError` is raised all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

INT_MIN, INT_MAX = -(2**31), 2**31 - 1

MAX_CANDIDATES = 100_000
"""Default of max-candidates: YOLO at 1280x1280 has 33,600 places, and NMS of public exporters takes
30,000 boxes. The comparison of so many takes seconds, however they lie."""

_BLANK = " \t\n\f\r"  # what GLib calls blank
_C_BLANK = _BLANK + "\v"  # what the C library skips before a number
_INT = re.compile(rf"[{_C_BLANK}]*([+-]?[0-9]+)")
_FLOAT = re.compile(
    rf"[{_C_BLANK}]*([+-]?(?:"
    r"0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
    r"|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?))",
    re.IGNORECASE,
)
_YAML_INT = re.compile(r"[ \t]*([+-]?)(0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)[ \t]*", re.IGNORECASE)
_YAML_FLOAT = re.compile(r"[ \t]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*")
_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}

Values: TypeAlias = dict[str, Any]
"""The values of keys or fields by name: the `Kind` of a key decides their types."""


class Kind(Enum):
    """How the text of a key is read. The value is how people call it."""

    INT = "integer"
    FLAG = "flag"  # INI: true, false, 1, 0; YAML: 1, 0
    INT_FLAG = "integer flag"  # anything but 0 is on
    FLOAT = "number"
    PERCENT = "percentage"  # INI: integer; YAML: number
    STRING = "text"
    PATH = "path"
    INTS = "list of integers"
    FLOATS = "list of numbers"
    STRINGS = "list of texts"
    PATHS = "list of paths"


class BadValueError(ValueError):
    """A text that is not of its kind.

    `noun` completes "is not ..."; `expected` and `fix` are as in `HeadraceError`.
    """

    def __init__(self, noun: str, expected: str, fix: str | None = None) -> None:
        super().__init__(noun)
        self.noun, self.expected, self.fix = noun, expected, fix


def parse_ini(kind: Kind, text: str) -> Any:
    """The value of an INI entry; BadValueError where GLib refuses the text.

    `text` is everything behind `=`, leading blanks removed, other bytes than UTF-8 as surrogates.
    Ranges are not looked at here.
    """
    return _INI[kind](text)


def parse_yaml(kind: Kind, text: str, *, loose: bool) -> Any:
    """The value of a YAML scalar; `loose` keys read a leading decimal number, ignore the rest."""
    if loose and kind in (Kind.INT, Kind.FLAG, Kind.INT_FLAG):
        value = _leading_int(text)
        if kind is Kind.FLAG:
            return _zero_or_one(value)
        return bool(value) if kind is Kind.INT_FLAG else value
    return _YAML[kind](text)


# --- INI ------------------------------------------------------------------------------------------


def _ini_int(text: str) -> int:
    match = _INT.match(text)
    rest = text[match.end() :] if match else text
    if not match or (rest and rest[0] not in _BLANK):
        raise _not_int(text)
    return _in_32_bits(match[1])


def _in_32_bits(digits: str) -> int:
    # absurdly long digit strings are kept away from int(), which refuses them its own way
    bare = digits.lstrip("+-").lstrip("0") or "0"
    value = int(bare) if len(bare) <= 10 else INT_MAX + 2
    value = -value if digits.startswith("-") else value
    if not INT_MIN <= value <= INT_MAX:
        raise BadValueError("a 32-bit integer", f"an integer from {INT_MIN} to {INT_MAX}")
    return value


def _not_int(text: str) -> BadValueError:
    fix = None
    if not text:
        fix = "the value is empty: write one, or remove the line"
    elif _FLOAT.fullmatch(text.strip()):
        fix = "write it without dot, exponent or 0x"
    elif "#" in text:
        fix = "put a blank before the comment, or better the comment on its own line"
    elif text[0] in "\"'":
        fix = "there are no quotes in this format"
    elif text.strip().lower() in ("true", "false", "yes", "no", "on", "off"):
        fix = "write 1 or 0"
    return BadValueError("an integer", "an integer in decimal digits", fix)


def _ini_flag(text: str) -> bool:
    bare = text.rstrip(_BLANK)
    if bare in ("true", "1"):
        return True
    if bare in ("false", "0"):
        return False
    fix = None
    if "#" in bare or ";" in bare:
        fix = "nothing may follow the value: put a comment on its own line"
    elif bare.lower() in ("true", "yes", "on"):
        fix = "write true or 1"
    elif bare.lower() in ("false", "no", "off"):
        fix = "write false or 0"
    raise BadValueError("a flag", "exactly true, false, 1 or 0", fix)


def _ini_float(text: str) -> float:
    if match := _FLOAT.fullmatch(text):
        return _float(match[1])
    raise _not_float(text)


def _not_float(text: str) -> BadValueError:
    fix = None
    bare = text.rstrip(_C_BLANK)
    if not bare:
        fix = "the value is empty: write one, or remove the line"
    elif bare != text and _FLOAT.fullmatch(bare):
        fix = "remove the blank behind the number: it belongs to the value"
    elif "#" in text:
        fix = "nothing may follow the number: put a comment on its own line"
    elif re.fullmatch(r"[+-]?[0-9]*,[0-9]+", bare):
        fix = f"decimals are separated by a dot: {bare.replace(',', '.')}"
    elif division := re.fullmatch(r"([0-9.]{1,20})/([0-9.]{1,20})", bare):
        try:
            fix = f"write it out: {float(division[1]) / float(division[2]):.15g}"
        except (ValueError, ZeroDivisionError):
            fix = "write the result of the division"
    elif bare.endswith(";"):
        fix = "remove the semicolon"
    return BadValueError(
        "a number", "a number such as 0.0039, with a dot and nothing behind it", fix
    )


def _float(text: str) -> float:
    bare = text.lower()
    if bare.lstrip("+-").startswith("nan"):
        return float("nan")
    if "0x" not in bare:
        return float(bare)
    try:
        return float.fromhex(bare)
    except OverflowError:
        return float("-inf") if bare.startswith("-") else float("inf")


def is_utf8(text: str) -> bool:
    """Whether it can be written as UTF-8: it holds no surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _utf8(text: str) -> str:
    if not is_utf8(text):
        raise BadValueError("UTF-8 text", "text saved as UTF-8")
    return text


def _unescape(text: str, *, separator: bool = False) -> list[str]:
    r"""Resolve escapes; with `separator` split at bare `;` (and `\\;` is one literally)."""
    items, current = [], []
    characters = iter(_utf8(text))
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if separator and following == ";":
                current.append(";")
            elif following in _ESCAPES and following:
                current.append(_ESCAPES[following])
            else:
                known = r"\s \n \t \r \\" + (r" \;" if separator else "")
                raise BadValueError(
                    "readable: it has a bad backslash",
                    f"only these backslash pairs: {known}",
                    r"write \\ for a backslash; folders are separated by /",
                )
        elif separator and character == ";":
            items.append("".join(current))
            current = []
        else:
            current.append(character)
    if current or not separator:
        items.append("".join(current))
    return items


def _ini_strings(text: str) -> tuple[str, ...]:
    return tuple(_unescape(text, separator=True))


def _ini_list(parse: Callable[[str], object]) -> Callable[[str], Any]:
    def read(text: str) -> tuple[Any, ...]:
        return tuple(_list_item(item, text, parse) for item in _unescape(text, separator=True))

    return read


def _ini_list_int(text: str) -> int:
    # GLib takes a blank with no number behind it for 0: the C library's "nothing read" leaves the
    # end of the number before that blank, and a blank may follow a number
    return 0 if text and text[0] in _BLANK and not _INT.match(text) else _ini_int(text)


def _list_item(item: str, text: str, parse: Callable[[str], object]) -> Any:
    try:
        return parse(item)
    except BadValueError as bad:
        noun = f"a list of {bad.noun.removeprefix('an ').removeprefix('a ')}s"
        fix = bad.fix
        if not item:
            fix = "there is an empty item: one ; between items, at most one behind the last"
        elif "," in text and ";" not in text:
            fix = f"items are separated by ; and not by commas: {text.strip().replace(',', ';')}"
        raise BadValueError(noun, f"{bad.expected} per item, items separated by ;", fix) from None


# --- YAML -----------------------------------------------------------------------------------------


def _yaml_int(text: str) -> int:
    match = _YAML_INT.fullmatch(text)
    if not match:
        raise _yaml_not_int(text)
    digits = match[2]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
    if len(digits.lstrip("0xX")) > 11:
        raise BadValueError("a 32-bit integer", f"an integer from {INT_MIN} to {INT_MAX}")
    value = int(match[1] + digits, base)
    return _in_32_bits(str(value))


def _yaml_not_int(text: str) -> BadValueError:
    fix = None
    if text.strip().lower() in ("true", "yes", "on"):
        fix = "write 1: the original aborts on YAML's own true and false"
    elif text.strip().lower() in ("false", "no", "off"):
        fix = "write 0: the original aborts on YAML's own true and false"
    elif _FLOAT.fullmatch(text.strip()):
        fix = "write it without dot or exponent"
    elif ";" in text:
        fix = "remove the semicolon"
    return BadValueError("an integer", "an integer, unquoted", fix)


def _zero_or_one(value: int) -> bool:
    if value not in (0, 1):
        raise BadValueError("a flag", "0 or 1")
    return bool(value)


def _yaml_float(text: str) -> float:
    if match := _YAML_FLOAT.fullmatch(text):
        return float(match[1])
    raise _not_float(text)


def _leading_int(text: str) -> int:
    match = _INT.match(text)
    if not match:
        raise _yaml_not_int(text)
    return _in_32_bits(match[1])


def _leading_float(text: str) -> float:
    match = _FLOAT.match(text)
    if not match:
        raise _not_float(text)
    return _float(match[1])


def _yaml_strings(text: str) -> tuple[str, ...]:
    return tuple(_utf8(text).split(";"))


def _yaml_list(parse: Callable[[str], object]) -> Callable[[str], object]:
    def read(text: str) -> tuple[Any, ...]:
        return tuple(_list_item(item, text, parse) for item in text.split(";"))

    return read


_INI: dict[Kind, Callable[[str], Any]] = {
    Kind.INT: _ini_int,
    Kind.FLAG: _ini_flag,
    Kind.INT_FLAG: lambda text: bool(_ini_int(text)),
    Kind.FLOAT: _ini_float,
    Kind.PERCENT: lambda text: float(_ini_int(text)),
    Kind.STRING: lambda text: _unescape(text)[0],
    Kind.PATH: lambda text: _unescape(text)[0],
    Kind.INTS: _ini_list(_ini_list_int),
    Kind.FLOATS: _ini_list(_ini_float),
    Kind.STRINGS: _ini_strings,
    Kind.PATHS: _ini_strings,
}

_YAML: dict[Kind, Callable[[str], Any]] = {
    Kind.INT: _yaml_int,
    Kind.FLAG: lambda text: _zero_or_one(_yaml_int(text)),
    Kind.INT_FLAG: lambda text: bool(_yaml_int(text)),
    Kind.FLOAT: _yaml_float,
    Kind.PERCENT: _yaml_float,
    Kind.STRING: _utf8,
    Kind.PATH: _utf8,
    Kind.INTS: _yaml_list(_leading_int),
    Kind.FLOATS: _yaml_list(_leading_float),
    Kind.STRINGS: _yaml_strings,
    Kind.PATHS: _yaml_strings,
}
