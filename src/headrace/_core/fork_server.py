"""Processes of Python that are forked from one warm interpreter: `processes.SpawnedProcess`.

To its function a process is one that `multiprocessing` spawned: the main module of the program is
imported anew, arguments are pickled, nothing else of the program is there. But what the warm one
imported before is there at once, and its memory is shared. It imports modules of Headrace and of
the runtimes alone, none of which starts a thread or opens a GPU.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from multiprocessing import popen_spawn_posix, reduction, spawn, util
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess, set_spawning_popen
from multiprocessing.process import BaseProcess
from typing import Any

from headrace._core.fork_link import ForkLink, Interpreter, end_link

_BOOT_S = 60.0
_END_S = 6.0
_LATE = ("CUDA_",)  # the driver of a GPU reads these when a process begins to use it
SIZE_BYTES = 8
# Arrow's own allocators have a thread for pages that they give back, or keep 5 MB in each process.
NO_THREADS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


class CannotForkError(Exception):
    """The warm interpreter has threads: something of this installation starts them with Python."""


class ForkServer(ForkLink):
    """The warm interpreter of one environment; it ends when its last process is forgotten."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Signals of a terminal are for the application; the interpreter ignores them itself.
        super().__init__(
            "headrace._core.fork_server_main", boot_s=_BOOT_S, end_s=_END_S, flags=_flags()
        )
        self.environment = dict(environment)
        weakref.finalize(self, _end, self.__dict__)

    def _environment(self) -> Mapping[str, str]:
        return {**self.environment, **NO_THREADS}

    def start(self, ahead: Iterable[str], standard: list[int], fds: list[int]) -> int:
        """Fork a process; return its number.

        Args:
            ahead: modules that are imported before, once.
            standard: numbers of standard outputs that are there.
            fds: the pipe that it reads first, the one that its end is written to, those standard
                outputs, further ones.

        Raises:
            CannotForkError: it must not fork.
            OSError: there is no interpreter, or no process.
        """
        with self._lock:
            answer = self._ask({"ahead": list(ahead), "standard": standard}, fds)
        if "threads" in answer:
            raise CannotForkError
        if "error" in answer:
            raise OSError(answer["error"])
        return int(answer["pid"])


def _flags() -> list[str]:
    """The flags of this interpreter, but for those that hide modules."""
    # as `multiprocessing` starts an interpreter: Python tells its flags nowhere else as options
    flags: list[str] = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [flag for flag in flags if flag not in ("-E", "-I")]


def _end(state: dict[str, Any]) -> None:
    end_link(state["_link"], state["_process"], _END_S)


_servers: weakref.WeakValueDictionary[tuple[tuple[str, str], ...], ForkServer]
_servers = weakref.WeakValueDictionary()
_making = threading.Lock()


def _server() -> ForkServer:
    """The interpreter that was started with the present environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_LATE)}
    key = tuple(sorted(environment.items()))
    with _making:
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = ForkServer(environment)
        return server


def adopted(link: socket.socket, process: Interpreter) -> ForkServer:
    """The server of an interpreter that runs already, with the present environment."""
    server = _server()
    server._link, server._process = link, process
    return server


def _forget_all() -> None:
    global _making
    _making = threading.Lock()
    for server in list(_servers.values()):
        server._forget()
    _servers.clear()


os.register_at_fork(after_in_child=_forget_all)


received: list[int] = []
"""In a process: the further descriptors that came with it."""


class _Descriptor(popen_spawn_posix._DupFd):
    """A descriptor on its way."""

    def __init__(self, number: int) -> None:
        self._number = number

    def detach(self) -> int:
        return received[self._number]


class _ForkedPopen(popen_spawn_posix.Popen):
    """The other process, for `multiprocessing.Process`."""

    DupFd = _Descriptor
    _fds: list[int]

    def __init__(self, process: BaseProcess, ahead: Iterable[str]) -> None:
        self._ahead = ahead
        self._server = _server()
        super().__init__(process)

    def duplicate_for_child(self, fd: int) -> int:
        self._fds.append(fd)
        return len(self._fds) - 1

    def _launch(self, process: BaseProcess) -> None:
        buffer = io.BytesIO()
        set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process.name), buffer)
            reduction.dump(process, buffer)
        finally:
            set_spawning_popen(None)
        environment = pickle.dumps(dict(os.environ))
        size = len(environment).to_bytes(SIZE_BYTES, "little")
        theirs, begin = os.pipe()
        self.sentinel, end = os.pipe()
        self.finalizer = util.Finalize(self, _close, (self.sentinel, begin))
        try:
            standard = [fd for fd in (1, 2) if _is_open(fd)]
            fds = [theirs, end, *standard, *self._fds]
            self.pid = self._server.start(self._ahead, standard, fds)
        except BaseException:
            self.finalizer()
            raise
        finally:
            os.close(theirs)
            os.close(end)
        with suppress(BrokenPipeError), open(begin, "wb", closefd=False) as file:
            file.write(size + environment)  # it ended already: `poll` says how
            file.write(buffer.getbuffer())

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None:
            if not wait([self.sentinel], 0 if flag == os.WNOHANG else None):
                return None
            told = os.read(self.sentinel, SIZE_BYTES)
            # without a word the interpreter was ended, and the system kills its processes then
            code = int.from_bytes(told, "little", signed=True) if told else -signal.SIGKILL
            self.returncode = code
        return self.returncode


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _is_open(fd: int) -> bool:
    with suppress(OSError):
        os.fstat(fd)
        return True
    return False


class ForkedProcess(SpawnProcess):
    """A `multiprocessing.Process` with a forked interpreter; `ahead`: see `ForkServer.start`."""

    ahead: tuple[str, ...] = ()

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> _ForkedPopen:  # noqa: N802  # of multiprocessing
        assert isinstance(process_obj, ForkedProcess)
        return _ForkedPopen(process_obj, process_obj.ahead)
