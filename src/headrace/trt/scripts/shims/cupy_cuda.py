"""`cupy.cuda`: addresses of memory that is owned elsewhere, and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.trt.types.strict import Idle as _Idle

if TYPE_CHECKING:
    from typing import Any


__path__: list[str] = []


class UnownedMemory:
    """Bytes at an address.

    Args:
        owner: kept alive with it.
    """

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner = int(ptr), int(size), owner


class MemoryPointer:
    """A place inside a block."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr = mem, int(mem.ptr) + int(offset)

    @property
    def size(self) -> int:
        """Bytes from here to the end of the block."""
        return int(self.mem.size) - (self.ptr - int(self.mem.ptr))


class Stream(_Idle):
    """Everything is done at once."""

    null: Stream

    def __init__(self, *arguments: object, **options: object) -> None:
        self.ptr = 0

    def synchronize(self) -> None:
        """Nothing is under way."""

    def use(self) -> Stream:
        return self


class ExternalStream(Stream):
    """A stream by number."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = int(ptr)


class Device(_Idle):
    """The host."""

    def __init__(self, device: int = 0) -> None:
        self.id = device

    def use(self) -> None:
        """Nothing changes."""

    def synchronize(self) -> None:
        """Nothing is under way."""


Stream.null = Stream()


def get_current_stream() -> Stream:
    return Stream.null
