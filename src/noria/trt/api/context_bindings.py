"""The older half of `IExecutionContext`, and settings without effect on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noria.trt.api.enums import ProfilingVerbosity
from noria.trt.api.strict import Closable, setting
from noria.trt.release import versioned

if TYPE_CHECKING:
    from noria.trt.api.engine import ICudaEngine


@versioned(
    {
        "<10 deprecated>=8.5": (
            "execute -> execute_v2, execute_async -> execute_async_v3, "
            "execute_async_v2 -> execute_async_v3, "
            "set_shape_input -> set_tensor_address, get_shape -> get_tensor_address"
        ),
    }
)
class ContextBindings(Closable):
    """Base of `IExecutionContext`."""

    _engine: ICudaEngine
    _plain: dict[str, Any]
    _profile: int

    debug_sync = setting("debug_sync", False, "Every run is synchronous.")
    enqueue_emits_profile = setting("enqueue_emits_profile", True, "Report each run by itself.")
    device_memory = setting("device_memory", 0, "Recorded; a CPU needs no device memory.")
    persistent_cache_limit = setting("persistent_cache_limit", 0, "Recorded.")
    temporary_allocator = setting("temporary_allocator", None, "Kept.")
    nvtx_verbosity = setting("nvtx_verbosity", ProfilingVerbosity["LAYER_NAMES_ONLY"], "Recorded.")

    def set_device_memory(self, memory: int, size: int) -> None:
        """Record the address; a CPU needs no device memory."""
        self._plain["device_memory"] = int(memory)

    def update_device_memory_size_for_shapes(self) -> int:
        """Device memory required; always 0 on a CPU."""
        return 0

    def set_input_consumed_event(self, event: int) -> bool:
        """Inputs are consumed when a run returns."""
        self._plain["event"] = int(event)
        return True

    def get_input_consumed_event(self) -> int:
        """The event that was set."""
        return int(self._plain.get("event", 0))

    def set_aux_streams(self, aux_streams: Sequence[int]) -> None:
        """There are no streams."""

    def set_debug_listener(self, listener: Any) -> bool:
        """Kept; debug tensors are marked as outputs to see them."""
        self._plain["listener"] = listener
        return True

    def get_debug_listener(self) -> Any:
        """The listener that was set."""
        return self._plain.get("listener")

    def set_shape_input(self, binding: int, shape: Sequence[int]) -> bool:
        """Values of an input that decides shapes; False if the profile does not have them."""
        found = self._engine._at(binding)
        problem = self._values_problem(found.name, [int(v) for v in shape])  # type: ignore[attr-defined]
        if problem:
            self._report(problem)  # type: ignore[attr-defined]
            return False
        values = np.array(shape, found.graph)
        self._values[found.name] = values  # type: ignore[attr-defined]
        return True

    def get_shape(self, binding: int) -> list[int]:
        """The values set by `set_shape_input`."""
        values = self._values.get(self._engine._at(binding).name)  # type: ignore[attr-defined]
        return [] if values is None else [int(v) for v in values.reshape(-1)]

    def execute_async_v2(
        self, bindings: Sequence[int], stream_handle: int, input_consumed: Any = None
    ) -> bool:
        """As `execute_v2`."""
        return self._execute_at(bindings, int(stream_handle or 0))  # type: ignore[attr-defined, no-any-return]

    def execute(self, batch_size: int = 1, bindings: Sequence[int] = ()) -> bool:
        """Run with an implicit batch."""
        return self._execute_batch(batch_size, bindings, 0)

    def execute_async(
        self, batch_size: int = 1, bindings: Sequence[int] = (), stream_handle: int = 0,
        input_consumed: Any = None,
    ) -> bool:  # fmt: skip
        """As `execute`."""
        return self._execute_batch(batch_size, bindings, int(stream_handle or 0))

    def _execute_batch(self, batch_size: int, bindings: Sequence[int], stream: int) -> bool:
        if self._engine._record.implicit:
            if not 1 <= batch_size <= self._engine._record.max_batch:
                self._report(  # type: ignore[attr-defined]
                    f"a batch of {batch_size}; the engine has at most "
                    f"{self._engine._record.max_batch}"
                )
                return False
            shapes = self._shapes  # type: ignore[attr-defined]
            for binding in self._engine._bindings:
                if binding.is_input:
                    shapes[binding.name] = (int(batch_size), *binding.shape[1:])
        return self._execute_at(bindings, stream)  # type: ignore[attr-defined, no-any-return]
