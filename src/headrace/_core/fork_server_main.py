"""The warm interpreter: it imports, forks, and writes how its processes ended. See `fork_server`.

It never runs code of a user. When the application is gone it ends, and the system kills every
process of it.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from multiprocessing.spawn import spawn_main
from typing import Any, NoReturn

from headrace._core import fork_server
from headrace._core.files import os_reason
from headrace._core.fork_link import count_threads, import_ahead, readable, receive
from headrace._core.fork_server import SIZE_BYTES
from headrace._core.processes import die_with_parent

_FOR_APPLICATION = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(fd: int) -> None:
    """Serve the application at the other end of a socket until it is gone."""
    usual = {number: signal.getsignal(number) for number in _FOR_APPLICATION}
    for number in _FOR_APPLICATION:
        signal.signal(number, signal.SIG_IGN)
    server = _Server(socket.socket(fileno=fd), usual)
    while server.serve():
        pass
    os._exit(0)


class _Server:
    def __init__(self, link: socket.socket, usual: Mapping[signal.Signals, Any]) -> None:
        self._link, self._usual = link, usual
        self._running: dict[int, tuple[int, int]] = {}  # descriptor of a process: its number, pipe
        self._ended: dict[int, int] = {}  # pipe: a process whose number is its own until it closes

    def serve(self) -> bool:
        """Serve the next request or end; False once the application is gone."""
        ready = readable([self._link.fileno(), *self._running, *self._ended], None)
        for handle in ready & self._running.keys():
            pid, pipe = self._running.pop(handle)
            os.close(handle)
            _say_end(pid, pipe)
            self._ended[pipe] = pid
        for pipe in ready & self._ended.keys():
            os.waitpid(self._ended.pop(pipe), 0)
            os.close(pipe)
        if self._link.fileno() not in ready:
            return True
        message, fds = receive(self._link)
        if not message:
            return False
        request = json.loads(message)
        import_ahead(request["ahead"])
        answer: Mapping[str, object]
        try:
            answer = self._fork(request["standard"], fds)
        except OSError as error:
            answer = {"error": f"no process can be started: {os_reason(error)}"}
        finally:
            for fd in fds:
                os.close(fd)
        with suppress(OSError):  # the application is gone: so says the next message
            self._link.send(json.dumps(answer).encode())
        return True

    def _fork(self, standard: list[int], fds: list[int]) -> dict[str, int]:
        server = os.getpid()
        go, begin = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                os.close(begin)
                self._begin(server, go, standard, fds)
            # BLAS ends its threads for a fork; another one would be missing there, with its locks
            if (threads := count_threads()) == 1:
                self._running[os.pidfd_open(pid)] = pid, os.dup(fds[1])
                os.write(begin, b"!")
                return {"pid": pid}
        finally:
            os.close(go)
            os.close(begin)
        os.waitpid(pid, 0)
        return {"threads": threads}

    def _begin(self, server: int, go: int, standard: list[int], fds: list[int]) -> NoReturn:
        """Become a process, in the child."""
        status = 1
        try:
            if os.read(go, 1):
                die_with_parent(server)
                for number, handler in self._usual.items():
                    signal.signal(number, handler)
                outputs = fds[2 : 2 + len(standard)]
                for target, fd in zip(standard, outputs, strict=True):
                    os.dup2(fd, target)
                pipes = [pipe for _, pipe in self._running.values()]
                for fd in (go, fds[1], *outputs, *self._running, *pipes, *self._ended):
                    os.close(fd)
                self._link.close()
                fork_server.received[:] = fds[2 + len(standard) :]
                status = _run(fds[0])
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)


def _say_end(pid: int, pipe: int) -> None:
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
    with suppress(OSError):  # nobody waits for it
        os.write(pipe, code.to_bytes(SIZE_BYTES, "little", signed=True))


def _run(pipe: int) -> int:
    """Run the pickled function of the process; see `multiprocessing.spawn`."""
    environment = pickle.loads(_read(pipe, int.from_bytes(_read(pipe, SIZE_BYTES), "little")))
    os.environ.clear()
    os.environ.update(environment)
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()  # each process has numbers of its own
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    sys.argv[1:] = ["--multiprocessing-fork"]  # so it asks for
    try:
        spawn_main(pipe_handle=pipe)
    except SystemExit as end:
        atexit._run_exitfuncs()
        return end.code if isinstance(end.code, int) else 0
    raise AssertionError


def _read(pipe: int, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := os.read(pipe, count - len(data))):
        data += part
    return data
