"""Device memory for plugins whose code runs on a GPU: tensors are copied there and back.

TensorRT gives `enqueue` addresses of the GPU's memory, and a stream to queue work in. Where the
rest of a network has its tensors on the host, each call is given copies: of the inputs before it,
of the outputs after it. Source: tensorrt-plugins spec 2.4, 2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from noria.cuda import Memory, Stream, driver, why_lost
from noria.errors import EngineError, PluginError
from noria.plugins.calls import Instance

__all__ = ["DeviceStage", "stage_for"]

ALIGNMENT = 256
"""Bytes that device addresses are a multiple of, as those of `cudaMalloc`."""
Addresses = list[int]


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
    """Memory and a stream on the GPU for the calls of one context, one at a time.

    Args:
        where: the plugin and its layer, for errors.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._memory: Memory | None = None
        try:
            self._stream = Stream()
        except EngineError as error:
            raise self._refused("a stream of the GPU", error) from error

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
        """While it is entered, the inputs are on the device; then the outputs are copied back.

        Args:
            inputs, outputs: host addresses. Of one address there is one copy: an output that has
                the memory of an input has it on the device, too.
            sizes: bytes of the outputs, then of the inputs.
            workspace_bytes: of scratch memory; 0 for none.

        Yields:
            device addresses of the inputs, of the outputs, and of the workspace (0 for none).

        Raises:
            PluginError: the GPU has no room; or it failed in what was queued meanwhile.
        """
        places: dict[int, tuple[int, int]] = {}  # host address -> (offset on the device, bytes)
        end = 0
        for address, size in zip([*outputs, *inputs], sizes, strict=True):
            if address not in places or size > places[address][1]:
                places[address] = end, size
                end += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        base = self._room(end + workspace_bytes)
        with self._checked():
            for address in dict.fromkeys(inputs):
                at, size = places[address]
                if size:
                    self._stream.upload(address, size, base + at)
        into = [base + places[address][0] for address in outputs]
        try:
            yield (
                [base + places[address][0] for address in inputs],
                into,
                base + end if workspace_bytes else 0,
            )
        except BaseException as error:
            self._settle(error)
            raise
        with self._checked():
            for address, pointer, size in zip(outputs, into, sizes, strict=False):
                if size:
                    self._stream.download(pointer, address, size)
            self._stream.wait()

    def wait(self) -> None:
        """Until what was queued is done.

        Raises:
            PluginError: the GPU failed in it.
        """
        with self._checked():
            self._stream.wait()

    def _room(self, size: int) -> int:
        """The address of as many bytes."""
        try:
            driver()  # its context becomes that of this thread
            if self._memory is None or self._memory.size_bytes < size:
                self._memory = None
                self._memory = Memory(size)
        except EngineError as error:
            raise self._refused(f"{size} bytes of the GPU's memory", error) from error
        return self._memory.pointer

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except EngineError as error:
            raise self._broken(why_lost() or error.found) from error

    def _settle(self, failure: BaseException) -> None:
        """After a failed call: its copies are not in use any more. What the GPU says goes first."""
        try:
            self._stream.wait()
        except EngineError as error:
            raise self._broken(why_lost() or error.found) from failure

    def _broken(self, text: str, found: str = "enqueue left the GPU unusable") -> PluginError:
        return PluginError(
            f"{found}: {text}",
            where=self._where,
            fix=[
                "no call of CUDA works in this process any more; in a worker "
                "(custom-lib-guard=always) the next batch finds a new one",
                "compute-sanitizer, of NVIDIA's toolkit, names the kernel and the line",
            ],
        )

    def _refused(self, wanted: str, error: EngineError) -> PluginError:
        if lost := why_lost():
            return self._broken(lost, "an earlier call left the GPU unusable")
        return PluginError(f"it needs {wanted}: {error.found}", where=self._where)
