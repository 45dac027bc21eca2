"""Device memory for plugins with code for a GPU: tensors are copied there and back.

TensorRT gives `enqueue` addresses of the GPU's memory, and a stream to queue work in. Where the
rest of a network has its tensors on the host, each call is given copies: of the inputs before it,
of the outputs after it. Source: tensorrt-plugins spec 2.4, 2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from headrace._core.errors import DeviceMemoryError, EngineError, PluginError
from headrace._core.gpu.cuda import FAULT_HINT, Memory, Stream, entered, why_lost
from headrace.plugins.calls import Instance

ALIGNMENT = 256
"""Bytes that device addresses are a multiple of, as those of `cudaMalloc`."""
Addresses = list[int]
_UNUSABLE = "gpu-unusable"
_NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED
_EARLIER = "an earlier call"


def stage_for(instances: Sequence[Instance]) -> DeviceStage | None:
    """A stage for plugins that take addresses of the GPU's memory; None for others.

    Raises:
        PluginError: the GPU cannot be used any more.
    """
    for instance in instances:
        if getattr(instance.plugin, "on_device", False):
            return DeviceStage(instance.where)
    return None


class DeviceStage:
    """Memory and a stream on the thread's GPU for the calls of one context, one at a time."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._memory: Memory | None = None
        try:
            self._stream = Stream()
        except EngineError as error:
            raise self._failed("it needs a stream of the GPU", error, _EARLIER) from error

    @property
    def stream(self) -> int:
        """The stream, as `enqueue` is given it."""
        return self._stream.handle

    @contextmanager
    def lend(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        sizes: Sequence[int],
        workspace_bytes: int,
    ) -> Iterator[tuple[Addresses, Addresses, int]]:
        """Copy the inputs to the device for a block, and the outputs back after it.

        `sizes` are the bytes of the outputs, then of the inputs. An output whose address is an
        input's, too, has one copy on the device.

        Yields:
            device addresses of the inputs, of the outputs, and of the workspace (0 for none).

        Raises:
            PluginError: the GPU has no room; or it failed in what was queued meanwhile.
        """
        slots: dict[int, tuple[int, int]] = {}  # host address -> (offset on the device, bytes)
        end = 0
        for address, size in zip([*outputs, *inputs], sizes, strict=True):
            if address not in slots or size > slots[address][1]:
                slots[address] = end, size
                end += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        base = self._room(end + workspace_bytes)
        into = [base + slots[address][0] for address in outputs]
        with self._safe():
            with self._step("copying its inputs to the GPU failed", _EARLIER):
                for address in dict.fromkeys(inputs):
                    at, size = slots[address]
                    if size:
                        self._stream.upload(address, size, base + at)
            yield (
                [base + slots[address][0] for address in inputs],
                into,
                base + end if workspace_bytes else 0,
            )
            with self._step("copying its outputs from the GPU failed"):
                for address, pointer, size in zip(outputs, into, sizes, strict=False):
                    if size:
                        self._stream.download(pointer, address, size)
                self._stream.wait()

    def wait(self) -> None:
        """Wait until the queued work is done.

        Raises:
            PluginError: the GPU failed in it.
        """
        with self._step("waiting for the GPU failed"):
            self._stream.wait()

    def _room(self, size: int) -> int:
        """The address of as many bytes."""
        try:
            if self._memory is None or self._memory.size_bytes < size:
                self._memory = None
                with entered(self._stream.gpu):
                    self._memory = Memory(size)
        except EngineError as error:
            problem = f"it needs {size} bytes of the GPU's memory"
            raise self._failed(problem, error, _EARLIER) from error
        return self._memory.pointer

    @contextmanager
    def _step(self, problem: str, lost: str = "enqueue") -> Iterator[None]:
        """Set the GPU's context for a block: the plugin may have exchanged it for another."""
        try:
            with entered(self._stream.gpu):
                yield
        except EngineError as error:
            raise self._failed(problem, error, lost) from error

    @contextmanager
    def _safe(self) -> Iterator[None]:
        """Wait for pending copies on exit, after an error too; CUDA's error goes before others."""
        try:
            with entered(self._stream.gpu):
                yield
        except BaseException as failure:
            try:
                with entered(self._stream.gpu):
                    self._stream.wait()
            except EngineError:  # the addresses are not used again
                self._memory = None
                with suppress(EngineError), entered(self._stream.gpu):
                    self._stream = Stream()
            reported = isinstance(failure, PluginError) and failure.code == _UNUSABLE
            if not reported and (lost := why_lost()):
                raise self._unusable("enqueue", lost) from failure
            raise

    def _failed(self, problem: str, error: EngineError, lost: str) -> PluginError:
        if text := why_lost():
            return self._unusable(lost, text)
        fix = []
        if isinstance(error, DeviceMemoryError):
            fix = ["a smaller batch; nvidia-smi tells which programs use the GPU's memory"]
        elif error.data.get("cuda") == _NOT_INITIALISED:
            fix = ["CUDA does not work in a process forked off one that uses it: start it anew"]
        return PluginError(f"{problem}: {error:brief}", where=self._where, fix=fix)

    def _unusable(self, what: str, text: str) -> PluginError:
        return PluginError(
            f"{what} left the GPU unusable: {text}",
            code=_UNUSABLE,
            where=self._where,
            fix=[
                "no call of CUDA works in this process any more; in a worker, which "
                "custom-lib-guard=always gives a config's library, the next batch finds a new one",
                FAULT_HINT,
            ],
        )
