"""The process that workers are forked from: a fresh interpreter with one thread and nothing open.

It is started once by an application, imports what workers need, and then only forks and waits.
A worker is there in a few milliseconds that way, and no process with threads is ever forked.
It never runs code of a user. What a worker leaves behind, processes and files, ends with it. When
the application is gone the keeper ends, and every worker with it.
"""

from __future__ import annotations

import faulthandler
import fcntl
import io
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from headrace._core import _native
from headrace._core.files import os_reason
from headrace._core.fork_link import count_threads, import_ahead, readable, receive
from headrace._core.threads import forbid_binding
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard.crash import HANG_SIGNAL
from headrace.custom.guard.leavings import Leavings
from headrace.custom.guard.reach import reach_of
from headrace.custom.guard.serve import LibraryWorker

if TYPE_CHECKING:
    from headrace._core.types import Message


_AHEAD = ["headrace.custom.cpp_library"]  # all workers need it
_FDS = ("start", "page", "inputs", "outputs", "results", "link", "report", "stdout", "stderr")
_HIGH = 240  # above what code that closes descriptors one by one usually reaches
_RUN_BYTES = 2 << 30  # of memory of a program


def main(fd: int) -> None:
    """Serve the application at the other end of a socket until it is gone."""
    import_ahead(_AHEAD)
    link = socket.socket(fileno=fd)
    left = Leavings()
    while True:
        ready = readable([link.fileno(), *left.handles()], None)
        left.end(ready)
        if link.fileno() not in ready:
            continue
        message, fds = receive(link)
        if not message:
            break
        request = json.loads(message)
        match request["do"]:
            case "start":
                import_ahead(request["ahead"])
                folder = left.new_folder()
                answer = _fork(link, fds, left, partial(_work, folder=folder), folder)
            case "run":
                answer = _fork(link, fds, left, partial(_run, request["command"]))
            case _:
                answer = left.reap(request["pid"])
        with suppress(OSError):  # the application is gone: so says the next message
            link.send(json.dumps(answer).encode())
    left.end_all()
    os._exit(0)


def _fork(
    link: socket.socket,
    fds: list[int],
    left: Leavings,
    work: Callable[[list[int], int], int],
    folder: str = "",
) -> Message:
    """Start a process that does `work(descriptors, this process)`."""
    threads = count_threads()
    if threads != 1:
        return {"error": f"the process that starts workers has {threads} threads"}
    keeper = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        left.remove(folder)
        return {"error": f"no process can be started: {os_reason(error)}"}
    if pid == 0:
        status = 70
        try:
            link.close()
            left.forget()
            status = work(fds, keeper)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    left.add(pid, folder)
    for fd in fds:
        os.close(fd)
    return {"pid": pid}


def _run(command: list[str], fds: list[int], keeper: int) -> int:
    """Become a program that works on a user's files: it prints, and changes nothing."""
    os.dup2(fds[0], 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.closerange(3, _HIGH)
    _give_up(_RUN_BYTES, (), (), keeper, gpu=False)
    os.execv(command[0], command)


def _give_up(
    memory: int, reads: Sequence[str], writes: Sequence[str], keeper: int, *, gpu: bool
) -> list[tuple[str, str]]:
    reach = reach_of(reads, writes, gpu=gpu)
    paths = list(reach.reads), reach.narrow, list(reach.writes), list(reach.devices)
    left = _native.guard_sandbox(memory, gpu, *paths)
    forbid_binding()
    if os.getppid() != keeper:  # it died before its death could be waited for
        os._exit(0)
    return left


def _work(fds: list[int], keeper: int, folder: str) -> int:
    passed = dict(zip(_FDS, fds, strict=True))
    with open(passed.pop("start"), "rb") as file:
        request = json.loads(file.read())  # here, so that the next worker does not have it
    os.dup2(passed.pop("stdout"), 1)
    os.dup2(passed.pop("stderr"), 2)
    _native.guard_print_lines()  # what waits in a buffer is lost when the worker is ended
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    kept = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for n, fd in passed.items()}
    os.closerange(3, _HIGH)
    sys.path[:] = request["path"]
    with suppress(OSError):
        os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if folder:
        os.environ.update(dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder))
    tempfile.tempdir = folder or None  # what the keeper found is closed to a worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the application
    report = kept.pop("report")
    if request["python"]:
        faulthandler.enable(file=report, all_threads=False)
        faulthandler.register(HANG_SIGNAL, file=report, all_threads=False)
    _native.guard_report_to(report, HANG_SIGNAL)
    writes = [*filter(None, [folder]), *request["writes"]]
    left = _give_up(request["memory"], request["reads"], writes, keeper, gpu=gpu_present())
    worker = LibraryWorker(**kept)
    worker.left = left
    worker.serve()
    return 71  # its descriptors are closed: the library's doing
