"""The two files of a Darknet network: text of sections in brackets, and numbers without names."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ModelError
from headrace._core.formats.foreign import looks_like
from headrace._core.formats.sniff import HEAD_BYTES
from headrace.network.model_bytes import foreign

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
        return self._at(self.line)

    def _at(self, line: int) -> str:
        name = f"layer {self.index} " if self.index >= 0 else ""
        return f"{self.path}:{line}, {name}[{self.kind}]"

    def error(self, key: str, problem: str, expected: str | None = None) -> ModelError:
        """An error about one key."""
        line = self.entries[key][1] if key in self.entries else self.line
        return ModelError(problem, where=self._at(line), expected=expected)

    def refuse(self, *keys: str, least: int = 0) -> None:
        """Raise an error if one of the keys is set to anything but 0."""
        for key in keys:
            if self.integer(key, 0, least=least):
                raise self.error(key, f"{key} is not supported", f"{key}=0, or none")

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


WHAT = "Darknet weights"
_FIX = "are the .cfg and the .weights of one model?"


class DarknetWeights:
    """Hands out the numbers of a file from front to back, as views.

    The header is three int32 (major, minor, revision) and the number of images seen in
    training, which has 8 bytes from version 0.2 on.

    Attributes:
        transposed: matrices are stored with inputs first (very old files).
    """

    def __init__(self, data: bytes, path: Path) -> None:
        self.path = path
        if len(data) < 16:
            raise foreign(data, path, WHAT, f"{len(data)} bytes are too few for a header")
        major, minor, _ = struct.unpack_from("<iii", data)
        if not (0 <= major < 10_000 and 0 <= minor < 10_000):
            words = looks_like(data[:HEAD_BYTES], len(data))
            raise foreign(data, path, WHAT, words or f"version {major}.{minor} is none")
        wide = major * 10 + minor >= 2 and major < 1000 and minor < 1000
        self.transposed = major > 1000 or minor > 1000
        self.at = 20 if wide else 16
        self.data = data

    def take(self, shape: tuple[int, ...], name: str, where: str) -> npt.NDArray[np.float32]:
        """The next numbers, as an array of this shape."""
        count = prod(shape)
        left = max(0, len(self.data) - self.at)
        if count * 4 > left:
            raise ModelError(
                f"the {name} need {count * 4} bytes ({'x'.join(map(str, shape))}); "
                f"{self.path.name} has {left} left, {count * 4 - left} are missing",
                where=where,
                fix=_FIX,
            )
        weights = np.frombuffer(self.data, "<f4", count, self.at).reshape(shape)
        self.at += count * 4
        return weights

    def finish(self, last: str) -> None:
        """Refuse a file that goes on."""
        left = len(self.data) - self.at
        if left > 0:
            raise ModelError(
                f"{left} bytes are left after the last layer ({last})",
                where=str(self.path),
                expected=f"{self.at} bytes for this network",
                fix=_FIX,
            )
