"""Processes that workers started and left behind, and their temporary folders."""

from __future__ import annotations

import errno
import os
import signal
import tempfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, sleep

from headrace._core import _native

_END_S = 5.0  # for processes that start others faster than they end
_PAUSE_S = 0.001


@dataclass(slots=True)
class _Worker:
    handle: int  # readable when it ended; -1 from then on
    folder: str


class Leavings:
    """Workers of this process, and all that they start: this process adopts their orphans.

    What is left when a worker ends is killed; a process of another worker is, too, if the one that
    started it has ended.
    """

    def __init__(self) -> None:
        _native.guard_adopt_orphans()
        self._workers: dict[int, _Worker] = {}
        self._removing: set[int] = set()  # processes that remove folders

    def handles(self) -> list[int]:
        """Descriptors that are readable when a worker ended."""
        return [w.handle for w in self._workers.values() if w.handle >= 0]

    def new_folder(self) -> str:
        """Make a worker's temporary folder; empty where none can be made."""
        try:
            return tempfile.mkdtemp(prefix="headrace-worker-")
        except OSError:
            return ""

    def add(self, pid: int, folder: str) -> None:
        """Keep a worker's process and folder."""
        self._workers[pid] = _Worker(os.pidfd_open(pid), folder)

    def forget(self) -> None:
        """Close the handles of other workers, in a new one."""
        for worker in self._workers.values():
            if worker.handle >= 0:
                os.close(worker.handle)
        self._workers = {}

    def end(self, ready: Collection[int]) -> None:
        """End the orphans of workers that ended: their handles are ready."""
        for worker in self._workers.values():
            if worker.handle in ready:
                self._ended(worker)

    def reap(self, pid: int) -> dict[str, object]:
        """Wait for a worker; return how it ended."""
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            return {"error": "no such process"}
        if (worker := self._workers.pop(pid, None)) and worker.handle >= 0:
            self._ended(worker)
        return {"code": os.waitstatus_to_exitcode(status)}

    def end_all(self) -> None:
        """End every worker with all that it left."""
        _kill_children_but(self._removing)
        for worker in self._workers.values():
            self.remove(worker.folder)
        until = monotonic() + _END_S
        while self._removing and monotonic() < until:
            self._removing -= {pid for pid in self._removing if _reaped(pid)}
            sleep(_PAUSE_S)

    def _ended(self, worker: _Worker) -> None:
        os.close(worker.handle)
        worker.handle = -1
        self._removing -= {pid for pid in self._removing if _reaped(pid)}
        _kill_children_but({*self._workers, *self._removing})
        self.remove(worker.folder)

    def remove(self, folder: str) -> None:
        """Remove a worker's folder, however large it is, without waiting."""
        if not folder:
            return
        with suppress(OSError):
            os.rmdir(folder)  # most are empty
            return
        pid = os.fork()
        if pid == 0:
            try:
                clear(folder)
            finally:
                os._exit(0)
        self._removing.add(pid)


def clear(folder: str) -> None:
    """Remove a folder of a library that is gone; changes the working directory of this process.

    However deep it is: with the recursion of `shutil.rmtree` a library could leave files behind, as
    it could by folders that their owner may not list.

    Raises:
        OSError: something in it cannot be removed.
    """
    os.chmod(folder, 0o700)
    os.chdir(folder)
    depth = 0
    while depth >= 0:
        if (name := _first_folder()) is not None:
            os.chdir(name)
            depth += 1
        else:
            os.chdir("..")
            depth -= 1
    os.rmdir(folder)


def _first_folder() -> str | None:
    """Remove all of the working directory up to the first folder that is not empty."""
    with os.scandir() as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name)
                continue
            try:
                os.rmdir(entry.name)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                os.chmod(entry.name, 0o700)
                return entry.name
    return None


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _kill_children_but(kept: Collection[int]) -> None:
    """Kill the other children of this process, and theirs.

    All are stopped before: where some are killed while others still run, these start new ones.
    """
    until = monotonic() + _END_S
    stopped: set[int] = set()
    while living := _stop_children_but(kept, stopped):
        if living <= stopped:
            for pid in living:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            sleep(_PAUSE_S)
        for pid in living:
            _reaped(pid)
        if monotonic() > until:
            return
        stopped |= living


def _stop_children_but(kept: Collection[int], stopped: Collection[int]) -> set[int]:
    """Stop those which are not stopped yet; return all of them."""
    living: set[int] = set()
    parents = [os.getpid()]
    while parents:
        for pid in _children(parents.pop()):
            if pid in kept or pid in living:
                continue
            if pid not in stopped:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            living.add(pid)
            parents.append(pid)
    return living


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children += [int(word) for word in file.read().split()]
    except OSError:
        if os.path.exists(f"/proc/{pid}/task"):  # a kernel without this list
            return [int(n) for n in os.listdir("/proc") if n.isdigit() and _parent(int(n)) == pid]
    return children


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
