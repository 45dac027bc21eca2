"""Decisions worth telling: fallbacks, overrides, rebuilds, ignored keys.

They are data on the result they belong to (`ModelConfig.notices`, `Plan.decisions`,
`CustomLibrary.decisions`, `Inferencer.notices`, `Pipeline.notices`), or on the error that came
instead (`HeadraceError.notices`), printed once by the command line. `open_pipeline` passes the
warnings among them to Python's `warnings`, as `HeadraceWarning`. `--strict` turns warnings into
errors.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headrace._core.errors import HeadraceError, StrictError

Level = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class Notice:
    """One decision that was taken on the user's behalf.

    `level` is `info` (a choice, for the record) or `warning` (something asked for does not happen
    as asked: a fallback, an ignored key, a dropped result). `rule` is the id of the rule that found
    it, as `headrace lint --rules` lists them; None for decisions that no rule is about.
    """

    level: Level
    message: str
    where: str | None = None
    rule: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class HeadraceWarning(UserWarning):
    """A notice of level `warning`, where Python's `warnings` show it."""


def note_once(
    notices: list[Notice],
    level: Level,
    message: str,
    where: str | None = None,
    rule: str | None = None,
) -> None:
    """Append a notice unless the same one is already there."""
    notice = Notice(level, message, where, rule)
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


@contextmanager
def notices_on_errors(*notices: Iterable[Notice]) -> Iterator[None]:
    """Put `notices` before those of a `HeadraceError` that leaves the block."""
    try:
        yield
    except HeadraceError as error:
        before = (notice for some in notices for notice in some)
        error.notices = list(dict.fromkeys([*before, *error.notices]))
        raise


def warn_of(notices: Iterable[Notice]) -> None:
    """Show the warnings among `notices` as `HeadraceWarning`, at the line that called headrace.

    Raises:
        HeadraceWarning: the filters of `warnings` make errors of them.
    """
    package = f"{Path(__file__).parents[1]}{os.sep}"
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    for notice in notices:
        if notice.level == "warning":
            warnings.warn(str(notice), HeadraceWarning, stacklevel=level)
