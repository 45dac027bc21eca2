"""`pycuda.driver`, and the names of the package around it. Source: tensorrt-api spec 4.5."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, SupportsInt

import numpy as np

from headrace._core.types import Array, ShapeLike
from headrace.trt.scripts.shims import memory
from headrace.trt.scripts.shims.cuda import cudaMemGetInfo

if TYPE_CHECKING:
    import numpy.typing as npt


__path__: list[str] = []


class Error(Exception):
    """Base of all."""


class LogicError(Error):
    """A wrong argument."""


class RuntimeError(Error):
    """A call that failed."""


class LaunchError(RuntimeError):
    """A kernel that failed."""


class MemoryError(Error):
    """No memory."""


class PointerHolderBase:
    """Base of objects of a script with an address of their own: `get_pointer` returns it."""

    def get_pointer(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no get_pointer")

    def __int__(self) -> int:
        return self.get_pointer()

    __index__ = __int__


class DeviceAllocation:
    """A block; `int(block)` is its address."""

    def __init__(self, size: int) -> None:
        self._address = memory.allocate(int(size))
        self.size = int(size)

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def __add__(self, offset: int) -> int:
        return self._address + int(offset)

    def free(self) -> None:
        memory.release(self._address)
        self._address = 0

    def __del__(self) -> None:
        if memory is not None and self.__dict__.get("_address"):
            memory.release(self._address)


class ArgumentHandler:
    """An array as the argument of a kernel, copied to a block of its own and back.

    Source: tensorrt-api spec 4.5.
    """

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dev_alloc: DeviceAllocation | None = None

    def get_device_alloc(self) -> DeviceAllocation:
        """The block, made when it is first asked for."""
        if self.dev_alloc is None:
            self.dev_alloc = mem_alloc(self.array.nbytes)
        return self.dev_alloc

    def pre_call(self, stream: object) -> None:
        """Copy to the block, for arrays that are read."""

    def post_call(self, stream: object) -> None:
        """Copy from the block, for arrays that are written."""


class In(ArgumentHandler):
    """An array that a kernel reads."""

    def pre_call(self, stream: object) -> None:
        memcpy_htod(self.get_device_alloc(), self.array)


class _Out(ArgumentHandler):
    """An array that a kernel writes."""

    def post_call(self, stream: object) -> None:
        memcpy_dtoh(self.array, self.get_device_alloc())


class InOut(In, _Out):
    """An array that a kernel reads and writes."""


Out = _Out


class host_alloc_flags:
    """How pages are locked; all host memory is alike here."""

    PORTABLE, DEVICEMAP, WRITECOMBINED = 1, 2, 4


class mem_host_register_flags:
    """How memory is registered."""

    PORTABLE, DEVICEMAP = 1, 2


class mem_attach_flags:
    """Who sees managed memory."""

    GLOBAL, HOST, SINGLE = 1, 2, 4


class ctx_flags:
    """How contexts wait; nothing waits here."""

    SCHED_AUTO, SCHED_SPIN, SCHED_YIELD, SCHED_BLOCKING_SYNC, MAP_HOST = 0, 1, 2, 4, 8


class event_flags:
    """Kinds of events."""

    DEFAULT, BLOCKING_SYNC, DISABLE_TIMING = 0, 1, 2


class Stream:
    """Everything is done at once."""

    def __init__(self, flags: int = 0) -> None:
        self.handle = 0

    def synchronize(self) -> None:
        """Nothing is under way."""

    def is_done(self) -> bool:
        return True

    def wait_for_event(self, event: object) -> None:
        """Nothing is under way."""


class Event:
    """A point in time."""

    def __init__(self, flags: int = 0) -> None:
        self._at = 0.0

    def record(self, stream: object = None) -> Event:
        self._at = time.perf_counter()
        return self

    def synchronize(self) -> Event:
        return self

    def time_since(self, event: Event) -> float:
        """Milliseconds."""
        return (self._at - event._at) * 1000

    def time_till(self, event: Event) -> float:
        """Milliseconds."""
        return (event._at - self._at) * 1000


class Context:
    """Contexts are pushed and popped without effect."""

    @staticmethod
    def synchronize() -> None:
        """Nothing is under way."""

    @staticmethod
    def get_device() -> Device:
        return Device(0)

    def push(self) -> None:
        """Nothing."""

    @staticmethod
    def pop() -> None:
        """Nothing."""

    def detach(self) -> None:
        """Nothing."""


class Device:
    """The host."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    @staticmethod
    def count() -> int:
        return 1

    def make_context(self, flags: int = 0) -> Context:
        return Context()

    def retain_primary_context(self) -> Context:
        return Context()

    def name(self) -> str:
        return "host memory (headrace)"

    def compute_capability(self) -> tuple[int, int]:
        return (0, 0)

    def get_attribute(self, attribute: object) -> int:
        return 0


def init(flags: int = 0) -> None:
    """Nothing to do."""


def mem_alloc(size: int) -> DeviceAllocation:
    return DeviceAllocation(int(size))


def mem_get_info() -> tuple[int, int]:
    _, free, total = cudaMemGetInfo()
    return free, total


def pagelocked_empty(
    shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0
) -> Array:
    return np.empty(shape, dtype, order)  # type: ignore[call-overload, no-any-return]


def pagelocked_zeros(
    shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0
) -> Array:
    return np.zeros(shape, dtype, order)  # type: ignore[call-overload, no-any-return]


def aligned_empty(
    shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C", alignment: int = 4096
) -> Array:
    """Make an array that begins at a multiple of `alignment` bytes."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    block = np.empty(size + alignment, np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size].view(kind).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def managed_empty(
    shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0
) -> Array:
    """An array that host and kernels would both see."""
    return pagelocked_empty(shape, dtype, order)


def managed_zeros(
    shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0
) -> Array:
    """`managed_empty` of zeros."""
    return pagelocked_zeros(shape, dtype, order)


def register_host_memory(array: Array, flags: int = 0) -> Array:
    """The array itself: host memory needs no registration."""
    return array


def to_device(array: Array) -> DeviceAllocation:
    """A block with the bytes of an array."""
    block = mem_alloc(array.nbytes)
    memcpy_htod(block, array)
    return block


def from_device(
    pointer: SupportsInt, shape: ShapeLike, dtype: npt.DTypeLike, order: str = "C"
) -> Array:
    """An array with the bytes at an address."""
    array = np.empty(shape, dtype)
    memcpy_dtoh(array, pointer)
    return array


def memcpy_htod(dest: SupportsInt, src: npt.ArrayLike) -> None:
    data = np.ascontiguousarray(src)
    _copy(int(dest), data.ctypes.data, data.nbytes)


def memcpy_htod_async(dest: SupportsInt, src: npt.ArrayLike, stream: object = None) -> None:
    memcpy_htod(dest, src)


def memcpy_dtoh(dest: Array, src: SupportsInt) -> None:
    if not dest.flags.c_contiguous:
        raise LogicError("the array must be C-contiguous")
    _copy(dest.ctypes.data, int(src), dest.nbytes)


def memcpy_dtoh_async(dest: Array, src: SupportsInt, stream: object = None) -> None:
    memcpy_dtoh(dest, src)


def memcpy_dtod(dest: SupportsInt, src: SupportsInt, size: int) -> None:
    _copy(int(dest), int(src), int(size))


def memcpy_dtod_async(
    dest: SupportsInt, src: SupportsInt, size: int, stream: object = None
) -> None:
    _copy(int(dest), int(src), int(size))


def memset_d8(dest: SupportsInt, data: int, size: int) -> None:
    memory.fill(int(dest), data, size)


def memset_d16(dest: SupportsInt, data: int, count: int) -> None:
    """Write a 16-bit number `count` times."""
    _copy_array(dest, np.full(count, data, np.uint16))


def memset_d32(dest: SupportsInt, data: int, count: int) -> None:
    """Write a 32-bit number `count` times."""
    _copy_array(dest, np.full(count, data, np.uint32))


def _copy_array(dest: SupportsInt, array: Array) -> None:
    _copy(int(dest), array.ctypes.data, array.nbytes)


def _copy(target: int, source: int, size: int) -> None:
    try:
        memory.copy(target, source, size)
    except ValueError as error:
        raise LogicError(str(error)) from error


_PACKAGE = {"VERSION_TEXT": "2024.1"}
_AUTOINIT = {"device": Device(0), "context": Context()}
