"""One worker process, as the application holds it."""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress
from time import monotonic
from typing import Any

from noria import _native
from noria.custom.guard import ipc
from noria.custom.guard.crash import HANG_SIGNAL, Ending, Report, read_report
from noria.custom.guard.ipc import SharedRegion, control_words, new_memory
from noria.custom.guard.keeper import end_process, keeper
from noria.custom.guard.options import GuardOptions

_HANG_REPORT_S = 1.0


class WorkerHandle:
    """The application's side of one worker: its memory, the link to it, its process."""

    def __init__(self, options: GuardOptions, python: bool, results: int) -> None:
        self.fds: dict[str, int] = {}
        self.owner = os.getpid()
        self.channel: Any = None
        try:
            for name, size in (
                ("page", ipc.CONTROL_BYTES),
                ("inputs", ipc.INPUT_BYTES),
                ("outputs", ipc.INPUT_BYTES),
            ):
                self.fds[name] = new_memory(name, size)
            self.fds["report"] = os.memfd_create("noria-report", os.MFD_CLOEXEC)
            # Not eventfds: to write into one waits where the worker has filled it. Its own end
            # stays open here, so that closing it there is no event.
            for name, end in zip(("mine", "theirs"), socket.socketpair(), strict=True):
                self.fds[name] = end.detach()
            self.inputs, self.outputs = (
                SharedRegion(self.fds["inputs"]),
                SharedRegion(self.fds["outputs"]),
            )
            self.words = control_words(self.fds["page"])
            before, after = ("page", "inputs", "outputs"), ("theirs", "report")
            passed = [*(self.fds[n] for n in before), results, *(self.fds[n] for n in after)]
            self.keeper = keeper()
            with _StandardStreams() as streams:
                self.pid, self.pidfd = self.keeper.start(
                    [*passed, *streams],
                    python=python,
                    memory_bytes=options.memory_mib << 20,
                )
            self.fds["process"] = self.pidfd
            self.channel = _native.GuardChannel(self.fds["page"], self.fds["mine"])
        except BaseException:
            self.close()
            raise

    def report(self) -> Report | None:
        """Read the report of its signal handler, None if there is none."""
        data = b""
        with suppress(OSError):
            while part := os.pread(self.fds["report"], 1 << 20, len(data)):
                data += part
                if len(data) > 1 << 24:
                    break
        return read_report(data)

    def end(self, ending: Ending) -> tuple[Report | None, int | None]:
        """End it, if it has not ended; return its report and exit code."""
        if ending == "late":
            _native.guard_signal_main_thread(self.pid, HANG_SIGNAL)
            until = monotonic() + _HANG_REPORT_S
            while monotonic() < until and not self._reported():
                if select.select([self.pidfd], [], [], 0.01)[0]:
                    break
        end_process(self.pidfd)
        report, code = self.report(), self.keeper.reap(self.pid)
        self.close()
        return report or None, code

    def stop(self) -> None:
        """End it, if this process started it."""
        if self.owner == os.getpid():
            self.end("died")
        else:
            self.close()

    def _reported(self) -> bool:
        size = os.fstat(self.fds["report"]).st_size
        return size >= 4 and os.pread(self.fds["report"], 4, size - 4) == b"end\n"

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


class _StandardStreams:
    """Descriptors that the worker prints to: the application's, or `/dev/null`."""

    def __enter__(self) -> list[int]:
        self._opened: list[int] = []
        found = []
        for fd in (1, 2):
            try:
                os.fstat(fd)
            except OSError:
                fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                self._opened.append(fd)
            found.append(fd)
        return found

    def __exit__(self, *_: object) -> None:
        for fd in self._opened:
            os.close(fd)
