"""A warm interpreter that is forked from a command of Headrace at its beginning.

Both share the memory of what was imported, and it is imported once. A process of an application is
never forked: it may have threads, and what its processes must not have.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from time import monotonic, sleep
from typing import Any, NoReturn

from headrace._core import fork_server_main
from headrace._core.fork_link import count_threads, import_ahead, readable
from headrace._core.fork_server import NO_THREADS, ForkServer, adopted
from headrace._core.heap import trim_heap

_USUAL: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_ENDING_S = 0.5  # of a thread that was joined, in the system


class _Fork:
    """The forked interpreter."""

    def __init__(self, pid: int) -> None:
        self._pid, self._handle = pid, os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        """See `Interpreter`."""
        if not readable([self._handle], timeout):
            raise subprocess.TimeoutExpired("fork", timeout or 0.0)
        os.close(self._handle)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill(self) -> None:
        """See `Interpreter`."""
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)


def fork_here(ahead: Iterable[str]) -> ForkServer | None:
    """Import modules, and fork the interpreter of later processes from this one.

    Args:
        ahead: modules that those processes need: none starts a thread or opens a GPU.

    Returns:
        What has to be kept as long as processes are started; None if this one has threads, or the
        system lacks the calls: then a fresh interpreter serves them.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    kept = {name: os.environ.get(name) for name in NO_THREADS}
    os.environ.update(NO_THREADS)
    try:
        import_ahead(ahead)
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    trim_heap()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    go, begin = os.pipe()
    try:
        pid = os.fork()
        if pid == 0:
            _serve(theirs.fileno(), go, begin)
        process = _Fork(pid)
        if _is_alone():  # a missing thread may have held a lock
            os.write(begin, b"!")
            return adopted(ours, process)
    except OSError:
        ours.close()
        return None
    finally:
        theirs.close()
        os.close(go)
        os.close(begin)
    ours.close()
    process.wait()
    return None


def _is_alone() -> bool:
    """Whether this process had one thread at the fork: BLAS ends its own for it."""
    end = monotonic() + _ENDING_S
    while count_threads() > 1:
        if monotonic() > end:
            return False
        sleep(0.001)
    return True


def _serve(link: int, go: int, begin: int) -> NoReturn:
    """Become the interpreter, in the child."""
    try:
        os.close(begin)
        if os.read(go, 1):
            signal.set_wakeup_fd(-1)
            for number, handler in _USUAL.items():
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, handler)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1):
                os.dup2(null, fd)
            os.closerange(3, link)
            os.closerange(link + 1, os.sysconf("SC_OPEN_MAX"))
            fork_server_main.main(link)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)
