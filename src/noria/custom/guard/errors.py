"""Errors for a worker that ended, and its end in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noria._core.errors import ParserError, PluginError

if TYPE_CHECKING:
    from noria.custom.guard.crash import Report


@dataclass(slots=True)
class Death:
    """One end of a worker.

    Attributes:
        found: the end in words: `crashed (SIGSEGV), reading a null pointer`.
        trace: lines of the backtrace, innermost call first.
        report: of its signal handler, if that could write one.
        code: its exit code, negative for a signal; None if it is lost.
        on_frame: completes the saved case.
        late: it was ended because it took too long.
    """

    found: str
    trace: list[str]
    report: Report | None
    code: int | None
    on_frame: Callable[[object, int], None] | None = None
    late: bool = False


class LibraryDiedError(ParserError):
    """The worker of a library died in a call, or is not started any more.

    Attributes:
        death: how; None if it was not started.
    """

    death: Death | None = None

    @property
    def same(self) -> str:
        """Text that is equal for the same fault in another call."""
        trace = [] if self.death is None else self.death.trace
        return "\n".join([self.where or "", self.found, *trace])

    def in_frame(self, source: object, frame: int) -> None:
        """Note in the saved case which frame its inputs are from."""
        if self.death is not None and self.death.on_frame is not None:
            self.death.on_frame(source, frame)


class PluginDiedError(PluginError):
    """The worker died in a call of a plugin, or is not started any more: a batch has no results."""
