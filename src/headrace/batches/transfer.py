"""Calls of foreign file systems, bounded in time, as a server may be silent or drip."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import IO, Any, TypeVar

from headrace._core.text import counted
from headrace._core.threads import start_thread

CALL_S = 120.0  # for one answer, and for the next `PIECE` of a file
LIST_S = 600.0  # for the names of a folder: a million of them take minutes
PIECE = 4 << 20
MOST_BYTES = 256 << 30  # of one input
_CHUNK = 1 << 20
_LOOK_S = 0.2

T = TypeVar("T")


class TransferError(Exception):
    """The other side did not answer in time, or sends too much."""


class Transfer:
    """How far a call is.

    Attributes:
        size: bytes that came or went.
        over: True once nobody waits for it any more.
    """

    def __init__(self) -> None:
        self.size = 0
        self.over = False

    def copy(self, source: IO[bytes], target: IO[bytes], most: int) -> None:
        """Copy a file to its end.

        Args:
            source: of the other side.
            target: here.
            most: bytes that it may have.

        Raises:
            TransferError: it has more.
        """
        while not self.over and (data := source.read(_CHUNK)):
            self.size += len(data)
            if self.size > most:
                raise TransferError(f"there came more than {counted(most, 'byte')}")
            target.write(data)


def within(work: Callable[[Transfer], T], seconds: float = CALL_S) -> T:
    """Do work in a thread, and wait for it; signals are handled meanwhile.

    Args:
        work: tells by its argument how far it is.
        seconds: that it may take from the start, and from each `PIECE` to the next.

    Returns:
        What it returned.

    Raises:
        TransferError: it took longer; its thread is left.
        Exception: of the work.
    """
    outcome: SimpleQueue[Any] = SimpleQueue()
    transfer, seen, since = Transfer(), 0, monotonic()

    def do() -> None:
        outcome.put(partial(_value, work(transfer)))

    start_thread(
        do, name="headrace-transfer", failed=lambda error: outcome.put(partial(_raise, error))
    )
    while True:
        try:
            result: T = outcome.get(timeout=_LOOK_S)()
        except Empty:
            if transfer.size - seen >= PIECE:
                seen, since = transfer.size, monotonic()
            elif monotonic() - since > seconds:
                transfer.over = True
                came = f", only {counted(transfer.size, 'byte')} came" if transfer.size else ""
                raise TransferError(f"it takes longer than {seconds:g} s{came}") from None
        else:
            return result


def _value(value: T) -> T:
    return value


def _raise(error: Exception) -> None:
    raise error
