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
from contextvars import ContextVar
from pathlib import Path

from headrace._core.errors import HeadraceError, StrictError
from headrace._core.findings import Finding


class HeadraceWarning(UserWarning):
    """A notice of level `warning`, where Python's `warnings` show it."""


def note_once(notices: list[Finding], notice: Finding) -> None:
    """Append a notice unless the same one is already there."""
    if notice not in notices:
        notices.append(notice)


def refuse_warnings(notices: Iterable[Finding], *, strict: bool = True) -> None:
    """Raise for the warnings among `notices`, unless `strict` is False (`--strict`).

    Raises:
        StrictError: naming every warning, if there is one.
    """
    warnings = [str(n) for n in notices if n.level == "warning"]
    if strict and warnings:
        raise StrictError(
            f"--strict refuses {len(warnings)} warning(s)",
            fix=[*warnings, "mend them, or run without --strict"],
        )


@contextmanager
def notices_on_errors(*notices: Iterable[Finding]) -> Iterator[None]:
    """Put `notices` before those of a `HeadraceError` that leaves the block."""
    try:
        yield
    except HeadraceError as error:
        before = (notice for some in notices for notice in some)
        error.notices = list(dict.fromkeys([*before, *error.notices]))
        raise


_quiet: ContextVar[bool] = ContextVar("headrace-quiet", default=False)


@contextmanager
def no_warnings() -> Iterator[None]:
    """Keep `warn_of` quiet in the block, in this thread alone; filters are of all threads."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def warn_of(notices: Iterable[Finding]) -> None:
    """Show the warnings among `notices` as `HeadraceWarning`, at the line that called headrace.

    Raises:
        HeadraceWarning: the filters of `warnings` make errors of them.
    """
    if _quiet.get():
        return
    package = f"{Path(__file__).parents[1]}{os.sep}"
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    for notice in notices:
        if notice.level == "warning":
            warnings.warn(str(notice), HeadraceWarning, stacklevel=level)
