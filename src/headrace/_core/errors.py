"""Errors that help to put things right.

Every error names what was found and where, what must be instead, and how to fix it.
The exit codes are those of the command line (`docs/cli/index.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace._core.notices import Notice

PUBLIC_MODULE = "headrace.errors"


class HeadraceError(Exception):
    """Base of all errors that headrace raises on purpose.

    Args:
        found: one sentence, what is wrong, with the offending value in it.
        where: `file:line`, key, layer, node or function it is about.
        expected: what must be there instead.
        fix: how to get there; one hint or several.
        rule: id of the rule in `headrace lint --rules` that explains it; None takes the class's.

    Attributes:
        notices: what was decided before it; often why it came to this.
    """

    exit_code = 1
    rule: str | None = None

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = PUBLIC_MODULE  # tracebacks and pickles name the public module

    def __init__(
        self,
        found: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        fix: str | Sequence[str] | None = None,
        rule: str | None = None,
    ) -> None:
        self.rule = rule or type(self).rule
        self.found = found
        self.where = where
        self.expected = expected
        self.fix = [fix] if isinstance(fix, str) else list(fix or ())
        self.notices: list[Notice] = []
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.expected:
            lines.append(f"  expected {self.expected}")
        lines += [f"  {hint}" for hint in self.fix]
        return "\n".join(lines)


HeadraceError.__module__ = PUBLIC_MODULE


class ConfigError(HeadraceError):
    """A configuration file cannot be read, or a value in it is refused."""

    exit_code = 3
    rule = "config-refused"


class ModelError(HeadraceError):
    """A model file is missing, damaged, or of a kind that cannot be used."""

    exit_code = 4
    rule = "model-unreadable"


class EngineError(HeadraceError):
    """A plan cannot be built, read or run."""

    exit_code = 4
    rule = "engine-impossible"


class DeviceMemoryError(EngineError):
    """A GPU has no memory left for a run; a smaller one may fit."""

    rule = "gpu-memory"


class PluginError(EngineError):
    """A plugin failed, returned a wrong result, or is not there."""

    exit_code = 5
    rule = "plugin-failed"


class CustomLibraryError(HeadraceError):
    """A user's library cannot be loaded, or lacks a function that the config names."""

    exit_code = 5
    rule = "library-unusable"


class ParserError(CustomLibraryError):
    """A parser failed, or returned something that is not a detection result."""

    rule = "parser-failed"


class DetectionsError(HeadraceError, ValueError):
    """An array of `Detections` has the wrong rank, length or kind."""


class MediaError(HeadraceError):
    """A source cannot be read, or a sink cannot be written."""

    exit_code = 6


class GeometryError(HeadraceError):
    """A picture or crop without area."""


class StrictError(HeadraceError):
    """`--strict`: a fallback was needed and is not allowed."""

    exit_code = 7


class MissingExtraError(HeadraceError, ModuleNotFoundError):
    """An optional package is not installed; `fix` names the extra to install."""
