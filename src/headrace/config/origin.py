"""Where values came from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from headrace._core.plain_record import PlainRecord
from headrace._core.text import quoted


class Origin(PlainRecord, frozen=True):
    """Where one value came from.

    Attributes:
        kind: `file`, `default` (no file or program set it), `override` (set by a program) or
            `model` (read from a bare model; `text` says what tells it).
        file, line: the config file as it was named, the line from 1; None unless kind is `file`.
        key: the key as written there; differs from the asked one for legacy keys (`enable-dbscan`).
        text: the value as written there.
        option: what set it instead of a line of the file: `--set`, or a keyword argument.
    """

    kind: Literal["file", "default", "override", "model"]
    file: Path | None = None
    line: int | None = None
    key: str | None = None
    text: str | None = None
    option: str | None = None

    @property
    def where(self) -> str | None:
        """`file:line`, or the option, for messages; None where neither is known."""
        return str(self) if self.file or self.option else None

    def __str__(self) -> str:
        if self.file:
            return f"{quoted(str(self.file), limit=None)}:{self.line}"
        if self.kind == "model":
            return "read from the model"
        return self.option or self.kind


DEFAULT = Origin("default")
OVERRIDE = Origin("override")


class EffectiveValue(NamedTuple):
    """One line of `headrace show`: a key, its value as a config file would write it, its origin."""

    group: str
    key: str
    text: str
    origin: str
