"""Journal of calls into plugins that outlives the process."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from dataclasses import asdict
from typing import IO, Any

from noria.plugins.trace import PluginCall


class PluginProcessLostError(Exception):
    """The process that called the plugins is gone.

    Attributes:
        calls: those that had ended.
        last: the one that had not, if any.
        found: what happened to the process, in words.
        trace: lines of the backtrace.
        code: its exit code, negative for a signal.
    """

    def __init__(self, journal: Journal, code: int) -> None:
        from noria.custom.guard.crash import describe, read_report

        self.calls, self.last = journal.read()
        self.code = code
        report = read_report(os.pread(journal.report.fileno(), 1 << 24, 0))
        self.found, self.trace = describe(report, code, "died", 0.0)
        super().__init__(self.found)


class Journal:
    """Calls as they happen, in a file that outlives the process which makes them."""

    def __init__(self) -> None:
        self._lines: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - until the end
        self.report: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115

    def split(self) -> None:
        """Go on in a copy of this process; this one ends as the copy does.

        It raises if code of a plugin ended the copy.

        Raises:
            PluginProcessLostError: a signal ended the copy, or it ended by itself before `done`.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            from noria import _native
            from noria.custom.guard.crash import HANG_SIGNAL

            _native.guard_report_to(self.report.fileno(), HANG_SIGNAL)
            return
        code = os.waitstatus_to_exitcode(_wait(child))
        if code == -signal.SIGINT:
            raise KeyboardInterrupt
        if code < 0 or (code == 0 and not self._is_done()):
            raise PluginProcessLostError(self, code)
        os._exit(code)

    def write(self, call: PluginCall, over: bool) -> None:
        """For `Tracer(journal=…)`."""
        self._line([over, asdict(call)])

    def done(self) -> None:
        """No plugin is called any more."""
        self._line(None)

    def read(self) -> tuple[list[PluginCall], PluginCall | None]:
        """The calls that ended, and one that only began."""
        calls, begun = [], None
        for entry in self._entries():
            if entry is None:
                continue
            over, fields = entry
            call = PluginCall(**fields)
            begun = None if over else call
            if over:
                calls.append(call)
        return calls, begun

    def _is_done(self) -> bool:
        return None in self._entries()

    def _entries(self) -> list[Any]:
        self._lines.seek(0)
        return [json.loads(line) for line in self._lines.read().splitlines()]

    def _line(self, entry: object) -> None:
        self._lines.write(json.dumps(entry).encode() + b"\n")


def _wait(child: int) -> int:
    while True:
        try:
            return os.waitpid(child, 0)[1]
        except KeyboardInterrupt:  # the copy gets it, too
            continue
