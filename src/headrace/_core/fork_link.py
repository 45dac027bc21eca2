"""A fresh interpreter of ours, with one thread, that other processes are forked from.

A process is there in a few milliseconds that way and shares the memory of what was imported; no
process with threads of an application is ever forked. The module that runs there has `main(fd)`;
it gets one request after the other from `receive`, and ends when that gives nothing.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headrace._core.types import Message

_BOOT = "import sys; from {} import main; main(int(sys.argv[1]))"
_LARGEST_ANSWER = 1 << 16
_LARGEST_REQUEST = 1 << 18
_MOST_FDS = 250  # that Linux passes at once: 253


class Interpreter(Protocol):
    """The process of a warm interpreter."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it did not come.
        """
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class ForkLink:
    """The application's end.

    Args:
        module: runs there.
        boot_s: how long it may take to answer.
        end_s: how long it may take to end.
        flags: of the interpreter.
        how: further arguments of `Popen`.
    """

    def __init__(
        self, module: str, *, boot_s: float, end_s: float, flags: Sequence[str] = (), **how: Any
    ) -> None:
        self._lock = threading.Lock()
        self._link: socket.socket | None = None
        self._process: Interpreter | None = None
        self._module, self._boot_s, self._end_s, self._how = module, boot_s, end_s, how
        self._flags = flags

    def _environment(self) -> Mapping[str, str]:
        """The environment that it starts with."""
        return os.environ

    def _ask(self, request: Mapping[str, object], fds: list[int]) -> Message:
        """One request and its answer; it is started when it is not there, the lock is held.

        Raises:
            OSError: it cannot be started, or ends each time.
        """
        for attempt in (1, 2):  # it may have been killed since the last time
            link = self._link or self._boot()
            try:
                return self._exchange(link, request, fds, self._boot_s)
            except OSError:
                self._drop()
                if attempt == 2:
                    raise
        raise AssertionError

    def _exchange(
        self,
        link: socket.socket,
        request: Mapping[str, object],
        fds: list[int],
        timeout_s: float,
    ) -> Message:
        link.settimeout(timeout_s)
        try:
            socket.send_fds(link, [json.dumps(request).encode()], fds)
            answer = link.recv(_LARGEST_ANSWER)
        except OSError:
            raise
        except BaseException:  # Ctrl-C: the answer would be taken for that of the next request
            self._drop()
            raise
        if not answer:
            raise ConnectionResetError("the process that starts them ended")
        reply: Message = json.loads(answer)
        return reply

    def _boot(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {
            **self._environment(),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        command = [sys.executable, "-P", *self._flags, "-c", _BOOT.format(self._module)]
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment,
                **self._how,
            )
        self._link = ours
        return ours

    def _drop(self) -> None:
        end_link(self._link, self._process, self._end_s)
        self._link = self._process = None

    def _forget(self) -> None:
        """Leave it to the parent, in a forked child."""
        link, self._link, self._process = self._link, None, None
        self._lock = threading.Lock()
        if link is not None:
            link.close()


def end_link(link: socket.socket | None, process: Interpreter | None, end_s: float) -> None:
    """Let the interpreter end, with all that was forked from it; it is killed after `end_s`."""
    if link is not None:
        link.close()
    if process is None:
        return
    try:
        process.wait(end_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def receive(link: socket.socket) -> tuple[bytes, list[int]]:
    """The next request and its descriptors, there; nothing once the application is gone."""
    fds = array.array("i")
    try:
        message, extra, _, _ = link.recvmsg(
            _LARGEST_REQUEST, socket.CMSG_LEN(_MOST_FDS * fds.itemsize)
        )
    except OSError:
        return b"", []
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def import_ahead(modules: Iterable[str]) -> None:
    """Import modules before processes are forked, so that these have them."""
    new = [module for module in modules if module not in sys.modules]
    for module in new:
        with suppress(ImportError):  # a process that needs it reports why it cannot be imported
            importlib.import_module(module)
    if new:
        gc.collect()
        gc.freeze()


def count_threads() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def readable(descriptors: Iterable[int], timeout_s: float | None) -> set[int]:
    """Wait so long, or for ever; return those of any number that can be read or have ended."""
    poll = select.poll()
    for fd in descriptors:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
