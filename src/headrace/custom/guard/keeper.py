"""The application's link to the process that workers are forked from."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from headrace._core.errors import CustomLibraryError
from headrace._core.files import os_reason
from headrace._core.fork_link import ForkLink, readable
from headrace._core.gpu.visible_gpus import environment_for
from headrace.custom.guard.environment import keeper_environment, passed
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.prints import finish_all

if TYPE_CHECKING:
    from headrace._core.types import Message


_BOOT_S = 60.0
_REAP_S = 10.0
_END_S = 6.0  # for it to end what workers left
_MOST_OUTPUT = 1 << 22  # bytes that a program prints


def can_guard() -> str | None:
    """Return None if libraries can run in worker processes here, else the reason why not."""
    if not sys.platform.startswith("linux"):
        return "only Linux has the system calls for it"
    if not hasattr(os, "memfd_create") or not hasattr(os, "pidfd_open"):
        return "Python was built for a system without memfd_create or pidfd_open"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return f"pidfd_open is refused here: {os_reason(error)}"
    if not sys.executable:
        return "this Python is embedded: there is no interpreter to start"
    return None


class Started(NamedTuple):
    """A worker that was started.

    Attributes:
        pid: its process id.
        handle: a descriptor that is readable when it ended, to be closed.
        held: variables of the environment that it did not get.
    """

    pid: int
    handle: int
    held: list[str]


class Keeper(ForkLink):
    """Starts workers and reports how they ended. One serves a whole application."""

    def __init__(self) -> None:
        super().__init__(
            "headrace.custom.guard.keeper_main",
            boot_s=_BOOT_S,
            end_s=_END_S,
            start_new_session=True,  # Ctrl-C is for the application
        )
        self._ended: deque[int] = deque()
        self._ahead: list[str] = []

    def import_ahead(self, modules: Iterable[str]) -> None:
        """Import modules of headrace once, before the next worker is forked.

        None of them may start a thread.
        """
        with self._lock:
            self._ahead += [m for m in modules if m not in self._ahead]

    def start(self, fds: list[int], options: GuardOptions, *, python: bool, gpu: int) -> Started:
        """Start a worker with these descriptors (`keeper_main` names them).

        `gpu`: number of ours that is its first.

        Raises:
            CustomLibraryError: it cannot be started.
        """
        environment, held = passed(environment_for(gpu), options.environment)
        start = {
            "python": python,
            "memory": options.memory_mib << 20,
            "path": [os.path.abspath(p) if p == "" else p for p in sys.path],
            "folder": _folder(),
            "environment": environment,
            "reads": options.reads,
            "writes": options.writes,
        }
        file = os.memfd_create("headrace-start", os.MFD_CLOEXEC)
        try:  # for the worker alone: the keeper's memory is that of the next one, too
            os.pwrite(file, json.dumps(start).encode(), 0)
            with self._lock:
                request: dict[str, object] = {"do": "start", "ahead": self._ahead}
                while self._ended:
                    self._reap(self._ended.popleft())
                answer = self._ask(request, [file, *fds])
        finally:
            os.close(file)
        pid = answer.get("pid")
        if not isinstance(pid, int):
            raise CustomLibraryError(f"a guarded worker cannot be started: {answer['error']}")
        return Started(pid, os.pidfd_open(pid), held)

    def run(self, command: list[str], timeout_s: float) -> str | None:
        """Run a program as workers run, without rights to change anything.

        Args:
            command: an absolute path, and arguments.
            timeout_s: then it is ended.

        Returns:
            What it printed; None if it failed.
        """
        until = monotonic() + timeout_s
        here, there = os.pipe()
        try:
            with self._lock:
                answer = self._ask({"do": "run", "command": command}, [there])
            os.close(there)
            there = -1
            pid = answer.get("pid")
            if not isinstance(pid, int):
                return None
            return self._output(pid, here, until)
        except (CustomLibraryError, OSError):
            return None
        finally:
            for fd in (here, there):
                if fd >= 0:
                    os.close(fd)

    def _output(self, pid: int, pipe: int, until: float) -> str | None:
        handle = os.pidfd_open(pid)
        data = b""
        try:
            while len(data) < _MOST_OUTPUT and readable([pipe], max(0.0, until - monotonic())):
                part = os.read(pipe, 1 << 16)
                if not part:
                    readable([handle], max(0.0, until - monotonic()))
                    break
                data += part
            end_process(handle)
        finally:
            os.close(handle)
        return data.decode(errors="replace") if self.reap(pid) == 0 else None

    def reap(self, pid: int) -> int | None:
        """Return the exit code of a worker that ended (negative: a signal); None if it is lost."""
        with self._lock:
            return self._reap(pid)

    def reap_later(self, pid: int) -> None:
        """Reap a worker that was killed when the next one is started.

        Takes no lock: the garbage collector may come here from anywhere, also within `start`.
        """
        self._ended.append(pid)

    def _reap(self, pid: int) -> int | None:
        if self._link is None:
            return None
        try:
            answer = self._exchange(self._link, {"do": "reap", "pid": pid}, [], _REAP_S)
        except OSError:
            self._drop()
            return None
        code = answer.get("code")
        return code if isinstance(code, int) else None

    def close(self) -> None:
        """End it, and every worker with it."""
        global _ending
        _ending = True
        with self._lock:
            self._drop()
        finish_all()

    def _ask(self, request: Mapping[str, object], fds: list[int]) -> Message:
        try:
            return super()._ask(request, fds)
        except OSError as error:
            raise CustomLibraryError(
                f"guarded workers cannot be started: {error}",
                fix="--guard never runs the library in this process",
            ) from error

    def _environment(self) -> Mapping[str, str]:
        return {
            **keeper_environment(os.environ),
            # Threads of a numerical library would make it unsafe to fork.
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }


_keeper: Keeper | None = None
_ending = False
_making = threading.Lock()


def keeper() -> Keeper:
    """Return the keeper of this process."""
    global _keeper
    with _making:
        if _keeper is None:
            _keeper = Keeper()
            atexit.register(_keeper.close)
        return _keeper


def is_ending() -> bool:
    """Whether the workers of this process were ended, as it ends itself."""
    return _ending


def _forget() -> None:
    """Drop the parent's keeper in a forked child."""
    global _keeper, _making
    _making = threading.Lock()
    if _keeper is not None:
        _keeper._forget()
    _keeper = None


os.register_at_fork(after_in_child=_forget)


def end_process(pidfd: int) -> None:
    """Kill a worker, if it is still there."""
    with suppress(OSError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
