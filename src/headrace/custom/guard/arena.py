"""Memory for an engine's outputs, which a worker reads in place."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array, Message
from headrace.custom.guard import ipc

if TYPE_CHECKING:
    from typing import Any


MAX_BYTES = 1 << 28
"""Beyond this, outputs are made elsewhere and copied for the worker: the user keeps many."""

MIN_BYTES = 1 << 16
"""Copying smaller outputs takes less time than giving an engine a place for them."""


class _Slot:
    __slots__ = ("mapping", "room")

    def __init__(self, mapping: Any, room: int) -> None:
        self.mapping = mapping
        self.room = room


class _Lease:
    """Owns an array's memory; with the last array the slot is free again."""

    __slots__ = ("__array_interface__", "_arena", "_slot")

    def __init__(self, arena: OutputArena, slot: _Slot, interface: Message) -> None:
        self._arena = arena
        self._slot = slot
        self.__array_interface__ = interface

    def __del__(self) -> None:
        self._arena.free.append(self._slot)


class OutputArena:
    """A `headrace.engine.session.OutputMemory` of one library.

    Each array is the end of a slot of whole pages; a further page follows, so that the worker sees
    nothing else there. Slots are used again when no array is left in them.

    Attributes:
        slots: their places, for `GuardChannel.ask`.
        free: slots to be used again; the garbage collector only appends.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.slots = _native.GuardSlots()
        self.free: deque[_Slot] = deque()
        self._max_bytes = max_bytes
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._end = 0  # of the last one in the file
        self._file = ipc.open_memory("results", max_bytes)  # no memory until it is written to
        self._writer = _native.GuardWriter(self._file, max_bytes)
        ipc.seal(self._file, ipc.AGAINST_WRITERS)  # the worker only reads it
        try:
            self.fd = os.open(f"/proc/self/fd/{self._file}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no /proc
            self.fd = os.dup(self._file)

    def __del__(self) -> None:
        for name in ("_file", "fd"):
            if suppress is None:  # the interpreter ends, and its modules are empty already
                return
            with suppress(OSError, AttributeError):
                os.close(getattr(self, name))

    def take(self, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array | None:
        """See `OutputMemory`. None if there is no more room, or if copying takes less time."""
        kind = np.dtype(dtype)
        size = prod(shape) * kind.itemsize
        if size < MIN_BYTES or os.getpid() != self._owner:  # slots are the parent's after a fork
            return None
        room = ipc.page_ceil(size)
        with self._lock:
            slot = self._again(room) or self._another(room)
        if slot is None:
            return None
        start = slot.mapping.address + slot.room - (-(-size // 64) * 64)
        interface = {"version": 3, "typestr": kind.str, "shape": shape, "data": (start, False)}
        return np.asarray(_Lease(self, slot, interface))

    def _again(self, room: int) -> _Slot | None:
        for _ in range(len(self.free)):
            slot = self.free.popleft()
            if room <= slot.room <= 2 * room:
                return slot
            self.free.append(slot)
        return None

    def _another(self, room: int) -> _Slot | None:
        huge = _native.GUARD_HUGE_PAGE
        if room > huge // 2:  # in huge pages; the file has holes then, which are no memory
            room = -(-room // huge) * huge
            self._end = -(-self._end // huge) * huge
        size = room + ipc.PAGE
        if self._end + size > self._max_bytes:
            return None
        try:
            mapping = _native.GuardMapping(self._file, self._end, room, self._writer)
        except RuntimeError:
            return None
        self.slots.add(mapping.address, room, self._end, size)
        self._end += size
        return _Slot(mapping, room)
