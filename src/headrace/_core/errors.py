"""Errors that help to put things right.

Every error names what was found and where, what must be instead, and how to fix it.
The exit codes are those of the command line (`docs/cli/index.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace._core.findings import Data, Finding

PUBLIC_MODULE = "headrace.errors"


class HeadraceError(Exception):
    """Base of all errors that headrace raises on purpose: each carries a finding.

    Args:
        found: the finding, or one sentence, what is wrong, with the offending value in it.
        where: `file:line`, key, layer, node or function it is about.
        expected: what must be there instead.
        fix: how to get there; one hint or several.
        code: stable name of the fault; None takes the finding's or the class's.
        data: values of the fault, for programs.

    Attributes:
        finding: the fault as data.
        notices: what was decided before it; often why it came to this.
    """

    exit_code = 1
    code = "request-refused"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = PUBLIC_MODULE  # tracebacks and pickles name the public module

    def __init__(
        self,
        problem: str | Finding,
        *,
        where: str | None = None,
        expected: str | None = None,
        fix: str | Sequence[str] | None = None,
        code: str | None = None,
        data: Data | None = None,
    ) -> None:
        from headrace._core.findings import Finding  # noqa: PLC0415 - a start without errors

        hints = (fix,) if isinstance(fix, str) else tuple(fix or ())
        if isinstance(problem, Finding):
            self.finding = problem.changed(code=code, level="error", where=where, fix=hints)
        else:
            self.finding = Finding(
                code or type(self).code, "error", problem, where, data or {}, expected, hints
            )
        self.code = self.finding.code
        self.notices: list[Finding] = []
        super().__init__(str(self.finding))

    def __format__(self, spec: str) -> str:
        """Write it as its finding is written."""
        return format(self.finding, spec)

    @property
    def where(self) -> str | None:
        """The place that it is about."""
        return self.finding.where

    @property
    def data(self) -> Data:
        """The values of the fault."""
        return self.finding.data


HeadraceError.__module__ = PUBLIC_MODULE


class ConfigError(HeadraceError):
    """A configuration file cannot be read, or a value in it is refused."""

    exit_code = 3
    code = "config-refused"


class ModelError(HeadraceError):
    """A model file is missing, damaged, or of a kind that cannot be used."""

    exit_code = 4
    code = "model-unreadable"


class EngineError(HeadraceError):
    """A plan cannot be built, read or run."""

    exit_code = 4
    code = "engine-impossible"


class DeviceMemoryError(EngineError):
    """A GPU has no memory left for a run; a smaller one may fit."""

    code = "gpu-memory"


class PluginError(EngineError):
    """A plugin failed, returned a wrong result, or is not there."""

    exit_code = 5
    code = "plugin-failed"


class CustomLibraryError(HeadraceError):
    """A user's library cannot be loaded, or lacks a function that the config names."""

    exit_code = 5
    code = "library-unusable"


class ParserError(CustomLibraryError):
    """A parser failed, or returned something that is not a detection result."""

    code = "parser-failed"
    ended_worker = False

    @property
    def same(self) -> str:
        """Text that is equal for the same fault in another call."""
        return str(self)

    def in_frame(self, source: object, frame: int) -> None:
        """Take note of the frame that the outputs are of."""


class DetectionsError(HeadraceError, ValueError):
    """An array of `Detections` has the wrong rank, length or kind."""

    code = "detections-refused"


class MediaError(HeadraceError):
    """A source cannot be read, or a sink cannot be written."""

    exit_code = 6
    code = "media-refused"


class GeometryError(HeadraceError):
    """An image or crop without area."""

    code = "area-empty"


class StrictError(HeadraceError):
    """`--strict`: a fallback was needed and is not allowed."""

    exit_code = 7
    code = "strict-refuses"


class MissingExtraError(HeadraceError, ModuleNotFoundError):
    """An optional package is not installed; `fix` names the extra to install."""

    code = "extra-missing"
