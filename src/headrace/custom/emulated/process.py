"""The process of one library of another processor."""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import numpy as np

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.processes import ProcessEnd, start_program
from headrace._core.types import Array
from headrace.custom.emulated.emulator import Emulator
from headrace.custom.emulated.messages import (
    HEAD,
    MOST_BYTES,
    Body,
    NonsenseError,
    Operation,
    Reader,
    Status,
)

if TYPE_CHECKING:
    from headrace._core.processes import ModuleProcess

_PAGE = mmap.PAGESIZE
_END_S = 5.0


def _shared_file() -> BinaryIO:
    """Make a file without a name: in memory, or where a worker may write none, in its folder."""
    try:
        return os.fdopen(os.memfd_create("headrace-tensors", 0), "r+b", buffering=0)
    except OSError:
        return tempfile.TemporaryFile(buffering=0)


def _end(child: ModuleProcess, *fds: int) -> None:
    """Close the pipes of a process, which ends it, and wait for that."""
    for fd in fds:
        with suppress(OSError):
            os.close(fd)
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:  # a library is at work in it
        with suppress(OSError):  # a worker may send no signal: its keeper ends what is left
            child.kill()


class EmulatedProcess:
    """Starts the program, asks it, and shares the tensors of calls with it.

    Its end is that of the worker that it is in; without one it is an error.

    Attributes:
        answering: answers the questions that it has while it works on a request; None without any.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.answering: Callable[[Reader], Body] | None = None
        self._file = _shared_file()
        self._memory: mmap.mmap | None = None
        self._size = 0
        self._arrays: list[tuple[int, int]] = []
        requests, self._to = os.pipe()
        self._from, answers = os.pipe()
        report, hang = _native.guard_report()
        passed = [requests, answers, self._file.fileno(), *([report] if report >= 0 else [])]
        command = emulator.command(*passed[:3], report, hang)
        try:
            self._child = start_program(command, stdin=subprocess.DEVNULL, pass_fds=passed)
        except OSError as error:
            os.close(self._to)
            os.close(self._from)
            raise CustomLibraryError(
                f"the emulator cannot be started: {error.strerror}", where=str(emulator.program)
            ) from error
        finally:
            os.close(requests)
            os.close(answers)

        self._end = weakref.finalize(self, _end, self._child, self._to, self._from)

    def ask(self, operation: Operation, body: Body) -> tuple[Status, int, Reader]:
        """Send a request and wait for its answer.

        Returns:
            How it ended, a number, and what came with it.

        Raises:
            CustomCodeError: the process ended, and this one is no worker.
        """
        data = body.data()
        try:
            self._write(HEAD.pack(operation, 0, len(data)) + data)
            while True:
                number, value, size = HEAD.unpack(self._read(HEAD.size))
                if size > MOST_BYTES:
                    raise NonsenseError(f"an answer of {size} bytes")
                status, answer = Status(number), Reader(self._read(size))
                if status is not Status.ASKS:
                    return status, value, answer
                if self.answering is None:
                    raise NonsenseError("a question that nobody answers")
                reply = self.answering(answer).data()
                self._write(HEAD.pack(Operation.REPLY, 0, len(reply)) + reply)
        except (EOFError, BrokenPipeError):
            self._ended()
        except ValueError:  # numbers that it does not send
            self._child.kill()
            self._ended()

    def share(self, tensors: Sequence[Array]) -> tuple[int, list[tuple[int, int]]]:
        """Copy tensors to where the process sees them, each before a page of its own.

        Returns:
            Bytes of the file, and (offset, bytes) of each tensor.
        """
        places, at = [], 0
        for tensor in tensors:
            room = -(-max(tensor.nbytes, 1) // _PAGE) * _PAGE
            places.append((at + room - tensor.nbytes, tensor.nbytes))
            at += room + _PAGE
        if self._memory is None or at > self._size:
            self._size = at
            self._file.truncate(at)
            self._memory = mmap.mmap(self._file.fileno(), at)
        for index, tensor in enumerate(tensors):
            np.copyto(self._view(places[index], tensor), tensor)
        self._arrays = places
        return self._size, places

    def take_back(self, index: int, tensor: Array) -> None:
        """Copy a tensor of the last call back, as the function left it."""
        np.copyto(tensor, self._view(self._arrays[index], tensor))

    def _view(self, place: tuple[int, int], like: Array) -> Array:
        assert self._memory is not None
        offset, size = place
        view = np.frombuffer(self._memory, np.uint8, size, offset).view(like.dtype)
        return view.reshape(like.shape)

    def close(self) -> None:
        """End the process; so does the end of this object."""
        self._end()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._to, view) :]

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = os.read(self._from, min(size - len(parts), 1 << 20))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _ended(self) -> NoReturn:
        code = self._child.wait()
        if _native.guard_report()[0] >= 0:  # the worker ends as it did: it wrote a report
            _native.guard_end_as(code)
        end = ProcessEnd(code - 128 if code > 128 else code)
        raise _native.CustomCodeError(f"nothing: its emulated process {end}")
