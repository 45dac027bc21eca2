"""Findings: faults, decisions and observations of a run, as data.

Errors carry one, notices, the results of lint and those of the plausibility watch are some. A
program reads `code`, `level`, `where` and `data`; the sentence is made of them for people, may be
reworded at any time, and is written out only: with `str`, in an f-string, or with `to_json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headrace._core.text import printable

Level = Literal["error", "warning", "info"]

Data = Mapping[str, Any]
"""Values of JSON by name."""

_FIELD = re.compile(r"\{(\w+)(?::([^{}]+))?\}")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, decision or observation.

    Attributes:
        code: its stable name; `docs/lint-rules.md` lists all.
        level: `error` (nothing is done), `warning` (something asked for is not done as asked: a
            fallback, an ignored key, a dropped result), `info` (a choice, for the record).
        wording: the sentence, with `{name}` where a value of `data` stands.
        where: `file:line`, key, layer, node or function it is about.
        data: values of JSON: those of the sentence, and what programs need beside them.
        expectation: what must be there instead.
        remedies: how to get there.
    """

    code: str
    level: Level
    wording: str
    where: str | None = None
    data: Data = field(default_factory=dict, hash=False)
    expectation: str | None = None
    remedies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.code:
            raise ValueError(f"a finding without a code: {self.wording}")

    @property
    def sentence(self) -> str:
        """The finding in words, without its place and remedies; printable."""
        if not self.data:
            return printable(self.wording)

        def value(match: re.Match[str]) -> str:
            if match[1] not in self.data:
                return match[0]
            entry = self.data[match[1]]
            if isinstance(entry, (list, tuple)):
                entry = ", ".join(map(str, entry))
            return format(entry, match[2] or "")

        return printable(_FIELD.sub(value, self.wording))

    @property
    def advice(self) -> list[str]:
        """The expectation and the remedies, as printable lines."""
        expected = [f"expected {self.expectation}"] if self.expectation else []
        return [printable(line) for line in (*expected, *self.remedies)]

    def __str__(self) -> str:
        return "\n".join([f"{self:line}", *(f"  {line}" for line in self.advice)])

    def __format__(self, spec: str) -> str:
        """Write it whole, with `line` its place and sentence, with `brief` the sentence alone."""
        if spec == "brief":
            return self.sentence
        if spec == "line":
            return f"{printable(self.where)}: {self.sentence}" if self.where else self.sentence
        return format(str(self), spec)

    def changed(
        self,
        *,
        code: str | None = None,
        level: Level | None = None,
        where: str | None = None,
        prefix: str = "",
        suffix: str = "",
        fix: Sequence[str] = (),
    ) -> Finding:
        """The same with another code, level or place, words around its sentence, more remedies.

        A full stop goes where words follow.
        """
        return replace(
            self,
            code=code or self.code,
            level=level or self.level,
            where=where or self.where,
            wording=f"{prefix}{self.wording.removesuffix('.') if suffix else self.wording}{suffix}",
            remedies=(*self.remedies, *fix),
        )

    def at(self, where: str) -> Finding:
        """The same at a place of which its own is a part: that stands before the sentence."""
        return self.changed(where=where, prefix=f"{self.where}: " if self.where else "")

    def to_json(self) -> dict[str, Any]:
        """The finding as `--json` gives it; `message`, `expected` and `fix` are for people."""
        return {
            "code": self.code,
            "level": self.level,
            "where": self.where,
            "data": dict(self.data),
            "message": self.sentence,
            "expected": self.expectation,
            "fix": list(self.remedies),
        }
