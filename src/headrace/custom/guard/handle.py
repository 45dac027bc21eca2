"""The application's side of a worker: memory that both have, the link to it, its process."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from time import monotonic
from typing import Any

from headrace._core import _native
from headrace._core.fork_link import readable
from headrace.custom.guard import ipc
from headrace.custom.guard.crash import HANG_SIGNAL, Ending, Report, read_report
from headrace.custom.guard.ipc import SharedRegion, control_words, new_memory
from headrace.custom.guard.keeper import end_process, keeper
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.prints import Prints

_HANG_REPORT_S = 1.0
_REPORT_BYTES = 1 << 22


class WorkerHandle:
    """The application's side of one worker: its memory, the link to it, its process."""

    def __init__(self, options: GuardOptions, python: bool, results: int, gpu: int) -> None:
        self.fds: dict[str, int] = {}
        self.owner = os.getpid()
        self.channel: Any = None
        self.prints = Prints()
        try:
            for name, size, fixed in (
                ("page", ipc.CONTROL_BYTES, True),
                ("inputs", ipc.INPUT_BYTES, False),
                ("outputs", ipc.INPUT_BYTES, False),
                ("report", _REPORT_BYTES, True),
            ):
                self.fds[name] = new_memory(name, size, fixed=fixed)
            # Not eventfds: to write into one waits where the worker has filled it. Its own end
            # stays open here, so that closing it there is no event.
            for name, end in zip(("mine", "theirs"), socket.socketpair(), strict=True):
                self.fds[name] = end.detach()
            self.inputs = SharedRegion(self.fds["inputs"])
            self.outputs = SharedRegion(self.fds["outputs"])
            self.words = control_words(self.fds["page"])
            before, after = ("page", "inputs", "outputs"), ("theirs", "report")
            passed = [*(self.fds[n] for n in before), results, *(self.fds[n] for n in after)]
            self.keeper = keeper()
            streams = self.prints.ends
            started = self.keeper.start([*passed, *streams], options, python=python, gpu=gpu)
            self.pid, self.pidfd, self.held = started
            self.fds["process"] = self.pidfd
            self.prints.start()
            self.channel = _native.GuardChannel(self.fds["page"], self.fds["mine"])
        except BaseException:
            self.close()
            raise

    def end(self, ending: Ending) -> tuple[Report | None, int | None]:
        """End it, if it has not ended; return its report and exit code."""
        if ending == "late":
            _native.guard_signal_main_thread(self.pid, HANG_SIGNAL)
            until = monotonic() + _HANG_REPORT_S
            while monotonic() < until and not self._reported():
                if readable([self.pidfd], 0.01):
                    break
        end_process(self.pidfd)
        data = b""
        with suppress(OSError):
            data = os.pread(self.fds["report"], self._report_bytes(), 0).rstrip(b"\0")
        code = self.keeper.reap(self.pid)
        self.close()
        self.prints.finish()
        return read_report(data), code

    def _reported(self) -> bool:
        size = self._report_bytes()
        return size >= 4 and os.pread(self.fds["report"], 4, size - 4) == b"end\n"

    def _report_bytes(self) -> int:
        """Tell how much the worker has written: both sides have one place in the file."""
        return min(os.lseek(self.fds["report"], 0, os.SEEK_CUR), _REPORT_BYTES)

    def close(self) -> None:
        """Let go of it; kill it, if this process started it."""
        if self.channel is not None:
            self.channel.closed = True
        if "process" in self.fds and self.owner == os.getpid():  # not in a forked child
            end_process(self.fds["process"])
        for fd in self.fds.values():
            with suppress(OSError):
                os.close(fd)
        self.fds = {}
        self.prints.close()
