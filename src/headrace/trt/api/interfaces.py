"""Objects that scripts pass: allocators, readers, writers, listeners, monitors, settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._core.text import printable
from headrace.trt.release import versioned
from headrace.trt.types.enums import ExecutionContextAllocationStrategy, from_mask
from headrace.trt.types.strict import Closable, Strict, Subclassed
from headrace.trt.types.values import IHostMemory

if TYPE_CHECKING:
    from headrace.plugins.types import DataType, Dims, NumberedEnum


_CACHE_MAGIC = b"HEADRTTC"


class IOutputAllocator(Subclassed):
    """Gives memory for outputs of a size that is known only after the run.

    Source: tensorrt-api spec 4.3.
    """

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """An address with `size` bytes; `memory` is the one given before, or 0."""
        raise NotImplementedError("reallocate_output")

    def reallocate_output_async(
        self, tensor_name: str, memory: int, size: int, alignment: int, stream: int
    ) -> int:
        """`reallocate_output` with the stream of the run."""
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """The shape of the output that was written."""


@versioned({"<10": "free", ">=10": "allocate_async, deallocate_async"})
class IGpuAllocator(Subclassed):
    """Kept by objects that take one; headrace's own memory is the host's."""

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """An address."""
        raise NotImplementedError("allocate")

    def reallocate(self, address: int, alignment: int, new_size: int) -> int:
        """A larger one."""
        raise NotImplementedError("reallocate")

    def deallocate(self, memory: int) -> bool:
        """Give it back."""
        raise NotImplementedError("deallocate")

    def free(self, memory: int) -> None:
        """Give it back, by the older name."""
        self.deallocate(memory)

    def allocate_async(self, size: int, alignment: int, flags: int, stream: int) -> int:
        """An address, for work in a stream; by default from `allocate`."""
        return self.allocate(size, alignment, flags)

    def deallocate_async(self, memory: int, stream: int) -> bool:
        """Give it back when the stream is done with it; by default by `deallocate`."""
        return self.deallocate(memory)


class IGpuAsyncAllocator(IGpuAllocator):
    """With streams; `allocate` and `deallocate` use the default one."""

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        """An address, from `allocate_async`."""
        return self.allocate_async(size, alignment, flags, 0)

    def deallocate(self, memory: int) -> bool:
        """Give it back, by `deallocate_async`."""
        return self.deallocate_async(memory, 0)


class IStreamReader(Subclassed):
    """Gives the bytes of an engine."""

    def read(self, size: int) -> bytes:
        """At most `size` further bytes; none at the end."""
        raise NotImplementedError("read")


class IStreamReaderV2(IStreamReader):
    """That can also be positioned."""

    def seek(self, offset: int, where: NumberedEnum) -> bool:
        """Go to a place."""
        raise NotImplementedError("seek")


class IStreamWriter(Subclassed):
    """Takes the bytes of an engine."""

    def write(self, data: bytes) -> int:
        """How many bytes were taken."""
        raise NotImplementedError("write")


class IDebugListener(Subclassed):
    """Receives the values of watched tensors."""

    def process_debug_tensor(
        self, addr: int, location: NumberedEnum, type: DataType, shape: Dims, name: str, stream: int
    ) -> bool:
        """One tensor."""
        raise NotImplementedError("process_debug_tensor")


class IProgressMonitor(Subclassed):
    """Watches a build. Source: tensorrt-api spec 3.2."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """A phase begins, inside another or none."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """A step is done, counted from 0; False stops the build."""
        return True

    def phase_finish(self, phase_name: str) -> None:
        """A phase is over, done or not."""


class IProfiler(Subclassed):
    """Receives the time of each layer."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """One layer of one run, in milliseconds."""
        raise NotImplementedError("report_layer_time")


class Profiler(IProfiler):
    """Prints each time."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Print one layer of one run."""
        print(printable(f"{layer_name}: {ms}ms"))


class IRuntimeConfig(Strict):
    """Settings of contexts."""

    def __init__(self) -> None:
        self._strategy = ExecutionContextAllocationStrategy["STATIC"]

    def set_execution_context_allocation_strategy(self, strategy: NumberedEnum) -> None:
        """Recorded."""
        self._strategy = ExecutionContextAllocationStrategy(strategy)

    def get_execution_context_allocation_strategy(self) -> NumberedEnum:
        """The strategy that was set."""
        return self._strategy


class ISerializationConfig(Strict):
    """Settings of saving; weights are always saved."""

    def __init__(self) -> None:
        self._flags: set[str] = set()

    @property
    def flags(self) -> int:
        """Mask."""
        return from_mask("SerializationFlag", self._flags)

    def set_flag(self, flag: NumberedEnum) -> bool:
        """Recorded."""
        self._flags.add(flag.name)
        return True

    def clear_flag(self, flag: NumberedEnum) -> bool:
        """Undo `set_flag`."""
        self._flags.discard(flag.name)
        return True

    def get_flag(self, flag: NumberedEnum) -> bool:
        """Whether it was set."""
        return flag.name in self._flags


@dataclass(frozen=True, slots=True)
class TimingCacheKey:
    """The key of an entry: 16 bytes, written as hexadecimal digits."""

    data: bytes

    @staticmethod
    def parse(text: str) -> TimingCacheKey:
        """Read a key as `str` writes it.

        Raises:
            ValueError: `text` is not 32 hexadecimal digits, with or without 0x.
        """
        data = bytes.fromhex(text.removeprefix("0x"))
        if len(data) != 16:
            raise ValueError(f"{text!r} is no key: 32 hexadecimal digits")
        return TimingCacheKey(data)

    def __str__(self) -> str:
        return f"0x{self.data.hex()}"


@dataclass(slots=True)
class TimingCacheValue:
    """An entry: the number of the tactic, and its time in milliseconds."""

    tacticHash: int = 0
    timingMSec: float = float("nan")


def _tactics_in(data: bytes) -> dict[str, int]:
    """The tactics of a saved cache; none in bytes of another origin, or in damaged ones."""
    try:
        held = json.loads(data.removeprefix(_CACHE_MAGIC)) if data.startswith(_CACHE_MAGIC) else {}
    except ValueError:
        return {}
    if not isinstance(held, dict):
        return {}
    return {text: n for text, n in held.items() if isinstance(n, int) and not isinstance(n, bool)}


@versioned({">=10.8": "query_keys, queryKeys, query, update"})
class ITimingCache(Closable):
    """Keeps the fastest tactics of plugins; those of other layers a CPU has none of.

    Bytes of another origin are carried as they are, so that scripts that save and load them work.
    Headrace keeps measured times of runtimes elsewhere, see `headrace build --timing-cache`.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytes(data) or _CACHE_MAGIC
        self._tactics = _tactics_in(self._data)
        if self._tactics:
            self._data = _CACHE_MAGIC

    def serialize(self) -> IHostMemory:
        """The bytes to save."""
        if not self._tactics:
            return IHostMemory(self._data)
        return IHostMemory(_CACHE_MAGIC + json.dumps(self._tactics, sort_keys=True).encode())

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Take another cache in."""
        if not isinstance(input_cache, ITimingCache):
            raise TypeError(f"a timing cache, not a {type(input_cache).__name__}")
        if len(input_cache._data) > len(self._data):
            self._data = input_cache._data
        self._tactics = {**input_cache._tactics, **self._tactics}
        return True

    def reset(self) -> bool:
        """Forget everything."""
        self._data, self._tactics = _CACHE_MAGIC, {}
        return True

    def query_keys(self) -> list[TimingCacheKey]:
        """Keys of an editable cache; none, since Headrace keeps times elsewhere."""
        return []

    queryKeys = query_keys

    def query(self, key: TimingCacheKey) -> TimingCacheValue:
        """The entry of a key: without one, the tactic 0 and the time NaN."""
        return TimingCacheValue()

    def update(self, key: TimingCacheKey, value: TimingCacheValue) -> bool:
        """Set the entry of a key; False if the key is not in the cache."""
        return False
