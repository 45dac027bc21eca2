"""Decisions worth telling: fallbacks, overrides, rebuilds, ignored keys.

They are data on the result they belong to (`ModelConfig.notices`, `Plan.decisions`,
`CustomLibrary.decisions`, `Inferencer.notices`), printed once by the command line.
`--strict` turns warnings into errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from noria.errors import StrictError

__all__ = ["Level", "Notice", "note_once", "refuse_warnings"]

Level = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class Notice:
    """One decision that was taken on the user's behalf.

    `level` is `info` (a choice, for the record) or `warning` (something asked for does not happen
    as asked: a fallback, an ignored key, a dropped result).
    """

    level: Level
    message: str
    where: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def note_once(notices: list[Notice], level: Level, message: str, where: str | None = None) -> None:
    """Append a notice unless the same one is already there."""
    notice = Notice(level, message, where)
    if notice not in notices:
        notices.append(notice)


def refuse_warnings(notices: Iterable[Notice]) -> None:
    """Raise for the warnings among `notices` (`--strict`).

    Raises:
        StrictError: naming every warning, if there is one.
    """
    warnings = [str(n) for n in notices if n.level == "warning"]
    if warnings:
        raise StrictError(
            f"--strict refuses {len(warnings)} warning(s)",
            fix=[*warnings, "mend them, or run without --strict"],
        )
