"""The process that workers are forked from: a fresh interpreter with one thread and nothing open.

It is started once by an application, imports what workers need, and then only forks and waits.
A worker is there in a few milliseconds that way, and no process with threads is ever forked.
It never runs code of a user. When the application is gone it ends, and every worker with it.
"""

from __future__ import annotations

import array
import faulthandler
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace._core import _native
from headrace._core.files import os_reason
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard.crash import HANG_SIGNAL
from headrace.custom.guard.serve import LibraryWorker

if TYPE_CHECKING:
    from headrace._core.types import Message


_AHEAD = ["headrace.custom.cpp_library"]  # all workers need it
_FDS = ("page", "inputs", "outputs", "results", "link", "report", "stdout", "stderr")
_HIGH = 240  # above what code that closes descriptors one by one usually reaches
_LARGEST = 1 << 18


def main(fd: int) -> None:
    """Serve the application at the other end of a socket until it is gone."""
    _import_ahead(_AHEAD)
    link = socket.socket(fileno=fd)
    while True:
        message, fds = _receive(link)
        if not message:
            return
        request = json.loads(message)
        starts = request["do"] == "start"
        if starts:
            _import_ahead(request["ahead"])
        answer = _start(link, request, fds) if starts else _reap(request["pid"])
        link.send(json.dumps(answer).encode())


def _import_ahead(modules: list[str]) -> None:
    """Import modules before workers are forked, so that these have them."""
    new = [module for module in modules if module not in sys.modules]
    for module in new:
        with suppress(ImportError):  # a worker that needs it reports why it cannot be imported
            importlib.import_module(module)
    if new:
        gc.collect()
        gc.freeze()


def _receive(link: socket.socket) -> tuple[bytes, list[int]]:
    fds = array.array("i")
    message, extra, _, _ = link.recvmsg(_LARGEST, socket.CMSG_LEN(len(_FDS) * fds.itemsize))
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def _start(link: socket.socket, request: dict[str, object], fds: list[int]) -> Message:
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return {"error": f"the process that starts workers has {threads} threads"}
    keeper = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        return {"error": f"no process can be started: {os_reason(error)}"}
    if pid == 0:
        status = 70
        try:
            link.close()
            status = _work(request, dict(zip(_FDS, fds, strict=True)), keeper)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    for fd in fds:
        os.close(fd)
    return {"pid": pid}


def _reap(pid: int) -> dict[str, object]:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return {"error": "no such process"}
    return {"code": os.waitstatus_to_exitcode(status)}


def _work(request: Message, passed: dict[str, int], keeper: int) -> int:
    os.dup2(passed.pop("stdout"), 1)
    os.dup2(passed.pop("stderr"), 2)
    fds = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for n, fd in passed.items()}
    os.closerange(3, _HIGH)
    sys.path[:] = request["path"]
    with suppress(OSError):
        os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the application
    report = fds.pop("report")
    if request["python"]:
        faulthandler.enable(file=report, all_threads=False)
        faulthandler.register(HANG_SIGNAL, file=report, all_threads=False)
    _native.guard_report_to(report, HANG_SIGNAL)
    left = _native.guard_sandbox(request["memory"], gpu=gpu_present())
    if os.getppid() != keeper:  # it died before its death could be waited for
        return 0
    worker = LibraryWorker(**fds)
    worker.unprotected = left
    worker.serve()
    return 71  # its descriptors are closed: the library's doing
