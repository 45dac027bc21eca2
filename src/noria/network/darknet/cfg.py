"""The text of a Darknet network: sections in brackets, one for each layer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from noria._core.errors import ModelError

MAX_SECTIONS = 10_000


@dataclass(slots=True)
class CfgSection:
    """One section; values are text without blanks, as Darknet reads them.

    Attributes:
        kind: the word in the brackets.
        index: number of the layer, from 0; -1 for the first section, [net].
    """

    kind: str
    index: int
    path: str
    line: int
    entries: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """File, line and layer, for errors."""
        name = f"layer {self.index} " if self.index >= 0 else ""
        return f"{self.path}:{self.line}, {name}[{self.kind}]"

    def error(self, key: str, found: str, expected: str | None = None) -> ModelError:
        """An error about one key."""
        line = self.entries[key][1] if key in self.entries else self.line
        name = f"layer {self.index} " if self.index >= 0 else ""
        return ModelError(found, where=f"{self.path}:{line}, {name}[{self.kind}]",
                          expected=expected)  # fmt: skip

    def text(self, key: str, default: str = "") -> str:
        """One value as text."""
        return self.entries[key][0] if key in self.entries else default

    def integer(self, key: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
        """One whole number."""
        return self.integers(key, default, least=least, most=most, count=1)[0]

    def integers(
        self,
        key: str,
        default: int | None = None,
        *,
        least: int = 0,
        most: int = 2**31 - 1,
        count: int | None = None,
    ) -> list[int]:
        """Whole numbers between commas; absent: `default` alone, or none."""
        text = self.text(key)
        if not text:
            return [] if default is None else [default]
        try:
            values = [int(part) for part in text.rstrip(",").split(",")]
        except ValueError:
            values = []
        wrong = any(not least <= v <= most for v in values)
        if not values or wrong or count not in (None, len(values)):
            what = "a whole number" if count == 1 else "whole numbers between commas"
            limits = f" from {least} to {most}" if most < 2**31 - 1 else f", {least} or more"
            raise self.error(key, f"{key}={text[:60]}", what + limits)
        return values

    def number(self, key: str, default: float) -> float:
        """One number."""
        values = self.numbers(key)
        if len(values) > 1:
            raise self.error(key, f"{key}={self.text(key)[:60]}", "a number")
        return values[0] if values else default

    def numbers(self, key: str) -> list[float]:
        """Numbers between commas; absent: none."""
        text = self.text(key)
        try:
            values = [float(part) for part in text.rstrip(",").split(",")] if text else []
        except ValueError:
            values = [math.nan]
        if not all(math.isfinite(v) for v in values):
            raise self.error(key, f"{key}={text[:60]}", "numbers between commas")
        return values


def read_cfg(text: str, path: str) -> list[CfgSection]:
    """The sections of a file, [net] first."""
    sections: list[CfgSection] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = "".join(re.split("[#;]", raw, maxsplit=1)[0].split())
        if not line:
            continue
        if line[0] == "[":
            if not line.endswith("]") or len(sections) > MAX_SECTIONS:
                raise ModelError(f"{line[:60]!r} is not a section", where=f"{path}:{number}",
                                 expected="[name]")  # fmt: skip
            sections.append(CfgSection(line[1:-1].lower(), len(sections) - 1, path, number))
            continue
        key, equals, value = line.partition("=")
        if not equals or not key or not sections:
            raise ModelError(
                f"{line[:60]!r} does not belong here",
                where=f"{path}:{number}",
                expected="key=value below a [section]",
            )
        sections[-1].entries.setdefault(key, (value, number))  # the first one counts
    if not sections or sections[0].kind not in ("net", "network"):
        raise ModelError("it does not begin with [net]", where=path, expected="a Darknet network")
    if len(sections) == 1:
        raise ModelError("there are no layers", where=path)
    return sections
