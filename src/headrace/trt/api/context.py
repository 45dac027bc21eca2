"""`IExecutionContext`: shapes, addresses and runs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import EngineError, HeadraceError
from headrace._core.types import Array
from headrace.engine.plugin_graph.context_pool import ContextPool, runs_of
from headrace.network.shapes.node_shapes import Shape
from headrace.plugins.memory import read_at, write_at
from headrace.plugins.types import DataType, Dims
from headrace.trt.api.interfaces import IRuntimeConfig
from headrace.trt.release import CHOOSE_RELEASE, current, versioned
from headrace.trt.types.enums import ProfilingVerbosity, TensorLocation
from headrace.trt.types.reporting import Severity, note_without_effect, report
from headrace.trt.types.strict import Closable, Stored, by_binding, kept
from headrace.trt.types.values import address_of, strides

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.api.engine import Binding, ICudaEngine
    from headrace.trt.api.interfaces import IDebugListener, IOutputAllocator, IProfiler
    from headrace.trt.types.reporting import IErrorRecorder

ALIGNMENT = 256


@versioned(
    {
        "<10 deprecated>=8.5": (
            "set_binding_shape -> set_input_shape, get_binding_shape -> get_tensor_shape, "
            "get_strides -> get_tensor_strides, "
            "execute -> execute_v2, execute_async -> execute_async_v3, "
            "execute_async_v2 -> execute_async_v3, "
            "set_shape_input -> set_tensor_address, get_shape -> get_tensor_address"
        ),
        ">=8.5": (
            "set_input_shape, get_tensor_shape, set_tensor_address, get_tensor_address, "
            "execute_async_v3, infer_shapes"
        ),
        "<11 deprecated>=10": "all_shape_inputs_specified",
        ">=10": (
            "set_debug_listener, get_debug_listener, get_debug_state, set_tensor_debug_state, "
            "set_all_tensors_debug_state"
        ),
        ">=10.11": "get_runtime_config",
        ">=10.12": "unfused_tensors_debug_state",
    }
)
class IExecutionContext(Closable):
    """Shapes, addresses and runs of an engine.

    Streams are numbers that are ignored: every run is done when the call returns. A run that is
    refused gives False, and the logger has the reason. Source: tensorrt-api spec 4.3.
    """

    def __init__(self, engine: ICudaEngine, strategy: NumberedEnum) -> None:
        self._engine = engine
        self._strategy = strategy
        self._profile = 0
        self._shapes: dict[str, Shape] = {}
        self._values: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, IOutputAllocator] = {}
        self._profiler: IProfiler | None = None
        self._recorder: IErrorRecorder | None = None
        self._plain: dict[str, Any] = {}
        self._last_ms: float | None = None
        self._debugs: set[str] = set()
        self._owner = object()
        self._pool: ContextPool | None = None
        self._told = 0
        self._own_plugins()
        self._reset_shapes()

    def _own_plugins(self) -> None:
        """Take plugin objects of its own from the engine's session, which a refit exchanges."""
        pool = self._engine._session.contexts
        if pool is None or pool is self._pool:
            return
        self._pool, self._told = pool, 0
        pool.own(self._owner)
        weakref.finalize(self, pool.disown, self._owner)

    def _reset_shapes(self) -> None:
        lead = self._engine._offset
        for binding in self._engine._bindings:
            if binding.is_input and -1 not in binding.shape[lead:]:
                axes = binding.shape
                self._shapes[binding.name] = (1, *axes[1:]) if lead else axes

    engine = kept("_engine", "The engine it was made by.", read_only=True)

    name = Stored("", "A name of one's own.", str)
    debug_sync = Stored(False, "Every run is synchronous.")
    enqueue_emits_profile = Stored(True, "Report each run by itself.")
    device_memory = Stored(0, "Recorded; a CPU needs no device memory.")
    persistent_cache_limit = Stored(0, "Recorded.")
    temporary_allocator = Stored(None, "Kept.")
    nvtx_verbosity = Stored(ProfilingVerbosity["LAYER_NAMES_ONLY"], "Recorded.")
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")
    profiler = kept(
        "_profiler", "An `IProfiler`. The graph runs as a whole: it gets one time, under its name."
    )

    @property
    def active_optimization_profile(self) -> int:
        """Number of the profile that shapes must fit."""
        return self._profile

    @active_optimization_profile.setter
    def active_optimization_profile(self, value: int) -> None:
        self.set_optimization_profile_async(value, 0)

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Choose a profile; shapes must then be set again."""
        if not 0 <= profile_index < len(self._engine._record.profiles):
            self._report(f"there is no profile {profile_index}")
            return False
        if profile_index != self._profile:
            self._profile = profile_index
            self._shapes.clear()
            self._reset_shapes()
        return True

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """The shape of an input for the next runs; False if the profile does not have it."""
        binding = self._engine._find(name)
        if binding is None or not binding.is_input:
            self._report(f"there is no input {name!r}")
            return False
        axes = tuple(Dims(shape))
        lead = self._engine._offset
        want = binding.shape[lead:]
        fits = len(axes) == len(want) and all(
            w in (-1, d) and d >= 0 for w, d in zip(want, axes, strict=True)
        )
        limits = self._engine._record.profiles[self._profile].shapes.get(name)
        inside = limits is None or not fits or all(
            low <= d <= high for low, d, high in zip(limits[0], axes, limits[2], strict=True)
        )  # fmt: skip
        if not (fits and inside):
            range_ = f"; profile {self._profile} has {limits[0]} to {limits[2]}" if limits else ""
            self._report(f"input {name!r} cannot be {axes}: the engine has {want}{range_}")
            return False
        self._shapes[name] = (1, *axes) if lead else axes
        return True

    def get_tensor_shape(self, name: str) -> Dims:
        """Extents; -1 for those that depend on shapes that are not set, or on the data."""
        binding = self._engine._find(name)
        if binding is None:
            return Dims(())
        return Dims(self._shape_of(binding)[self._engine._offset :])

    def get_tensor_strides(self, name: str) -> Dims:
        """Steps between elements along each axis, in elements."""
        return strides(tuple(self.get_tensor_shape(name)))

    set_binding_shape = by_binding(set_input_shape, "binding")
    get_binding_shape = by_binding(get_tensor_shape, "binding")
    get_strides = by_binding(get_tensor_strides, "binding")

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Where an input is, or an output goes. `0` takes it back.

        Raises:
            AddressError: `memory` is no address but an array, say.
        """
        if self._engine._find(name) is None:
            return False
        self._addresses[name] = address_of(memory, f"set_tensor_address({name!r})")
        self._values.pop(name, None)  # the memory goes before the values of `set_shape_input`
        return True

    def get_tensor_address(self, name: str) -> int:
        """The address set by `set_tensor_address`; 0 if none."""
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: IOutputAllocator | None) -> bool:
        """Ask `output_allocator` for memory at each run."""
        binding = self._engine._find(name)
        if binding is None or binding.is_input:
            return False
        if output_allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> IOutputAllocator | None:
        """The allocator set by `set_output_allocator`, or None."""
        return self._allocators.get(name)

    def get_max_output_size(self, name: str) -> int:
        """Bytes of an output at the profile's largest shapes; -1 if they depend on the data."""
        binding = self._engine._find(name)
        if binding is None or binding.is_input:
            return -1
        profile = self._engine._record.profiles[self._profile]
        lead = (self._engine._record.max_batch,) if self._engine._offset else ()
        shapes = {n: (*lead, *r[2]) for n, r in profile.shapes.items()}
        shape = self._engine._output_shapes(shapes).get(name)
        if shape is None or -1 in shape:
            return -1
        return int(np.prod(shape) * binding.dtype.itemsize)

    def infer_shapes(self) -> list[str]:
        """Inputs without a shape or an address."""
        missing = []
        for binding in self._engine._bindings:
            host = self._engine.is_shape_inference_io(binding.name)
            if binding.is_input and (
                binding.name not in self._shapes
                or (
                    host
                    and not self._addresses.get(binding.name)
                    and binding.name not in self._values
                )
            ):
                missing.append(binding.name)
        return missing

    @property
    def all_binding_shapes_specified(self) -> bool:
        """Whether every input has a shape."""
        return all(b.name in self._shapes for b in self._engine._bindings if b.is_input)

    @property
    def all_shape_inputs_specified(self) -> bool:
        """Whether every input that decides shapes has values."""
        missing = self.infer_shapes()
        return not any(self._engine.is_shape_inference_io(name) for name in missing)

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run.

        Args:
            bindings: an address for each binding, all profiles counted.

        Raises:
            AddressError: one is no address but an array, say.
        """
        return self._execute_at(bindings, 0)

    def _execute_at(self, bindings: Sequence[int], stream: int) -> bool:
        count = len(self._engine._bindings)
        addresses = [
            address_of(a, f"binding {i}, {self._engine._bindings[i % count].name!r}")
            for i, a in enumerate(bindings)
        ]
        start = self._profile * count
        if len(addresses) < start + count:
            if len(addresses) != count:
                self._report(f"{len(addresses)} bindings; the engine has {count} for each profile")
                return False
            start = 0
        names = [b.name for b in self._engine._bindings]
        by_name = dict(zip(names, addresses[start : start + count], strict=True))
        return self._execute(by_name, {}, stream)

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run with the addresses that were set; done when the call returns."""
        return self._execute(self._addresses, self._allocators, int(stream_handle))

    def report_to_profiler(self) -> bool:
        """Report the last run, if `enqueue_emits_profile` is off."""
        if self._profiler is None or self._last_ms is None:
            return False
        self._profiler.report_layer_time(self._engine.name or "network", self._last_ms)
        return True

    # settings without effect on a CPU

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
        """Name it once: runs are in order, in one stream."""
        note_without_effect(self._engine._logger, "set_aux_streams" if aux_streams else "")

    def get_runtime_config(self) -> IRuntimeConfig:
        """Settings of this context."""
        config = IRuntimeConfig()
        config.set_execution_context_allocation_strategy(self._strategy)
        return config

    def set_debug_listener(self, listener: IDebugListener | None) -> bool:
        """Set the `IDebugListener` of debug tensors that are on."""
        self._plain["listener"] = listener
        return True

    def get_debug_listener(self) -> IDebugListener | None:
        """The listener that was set."""
        return self._plain.get("listener")

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        """Turn a debug tensor on or off; False if `mark_debug` was not called for it."""
        if name not in self._engine._record.debugged:
            self._report(f"{name!r} is no debug tensor of the engine")
            return False
        (self._debugs.add if flag else self._debugs.discard)(name)
        return True

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        """Turn all debug tensors on or off."""
        self._debugs = set(self._engine._record.debugged if flag else ())
        return True

    def get_debug_state(self, name: str) -> bool:
        """True if a debug tensor is on."""
        return name in self._debugs

    unfused_tensors_debug_state = property(
        lambda self: bool(self._debugs),
        lambda self, value: self.set_all_tensors_debug_state(value),
        doc="True if debug tensors are on.",
    )

    # bindings by number

    def set_shape_input(self, binding: int, shape: Sequence[int]) -> bool:
        """Values of an input that decides shapes; False if the profile does not have them."""
        tensor = self._engine._at(binding)
        problem = self._values_problem(tensor.name, [int(v) for v in shape])
        if problem:
            self._report(problem)
            return False
        self._values[tensor.name] = np.array(shape, tensor.graph)
        return True

    def get_shape(self, binding: int) -> list[int]:
        """The values set by `set_shape_input`."""
        values = self._values.get(self._engine._at(binding).name)
        return [] if values is None else [int(v) for v in values.reshape(-1)]

    def execute_async_v2(
        self, bindings: Sequence[int], stream_handle: int, input_consumed: object = None
    ) -> bool:
        """As `execute_v2`."""
        return self._execute_at(bindings, int(stream_handle or 0))

    def execute(self, batch_size: int = 1, bindings: Sequence[int] = ()) -> bool:
        """Run with an implicit batch."""
        return self._execute_batch(batch_size, bindings, 0)

    def execute_async(
        self, batch_size: int = 1, bindings: Sequence[int] = (), stream_handle: int = 0,
        input_consumed: object = None,
    ) -> bool:  # fmt: skip
        """As `execute`."""
        return self._execute_batch(batch_size, bindings, int(stream_handle or 0))

    def _execute_batch(self, batch_size: int, bindings: Sequence[int], stream: int) -> bool:
        if self._engine._record.implicit:
            if not 1 <= batch_size <= self._engine._record.max_batch:
                self._report(
                    f"a batch of {batch_size}; the engine has at most "
                    f"{self._engine._record.max_batch}"
                )
                return False
            shapes = self._shapes
            for binding in self._engine._bindings:
                if binding.is_input:
                    shapes[binding.name] = (int(batch_size), *binding.shape[1:])
        elif batch_size != 1 and current().number is None:
            self._report(f"a batch of {batch_size}: {CHOOSE_RELEASE}")
            return False
        return self._execute_at(bindings, stream)

    # inside the module

    def _shape_of(self, binding: Binding) -> Shape:
        if binding.is_input:
            return self._shapes.get(binding.name, binding.shape)
        shapes = {
            b.name: self._shapes.get(b.name, b.shape) for b in self._engine._bindings if b.is_input
        }
        shape = self._engine._output_shapes(shapes, self._host_values()).get(binding.name)
        if shape is None:
            return binding.shape
        return tuple(known if d < 0 <= known else d for d, known in _aligned(shape, binding.shape))

    def _host_values(self) -> dict[str, Array]:
        """Values of inputs that decide shapes, as far as they are set."""
        values = dict(self._values)
        for name in self._engine._by_name:
            address = self._addresses.get(name)
            shape = self._shapes.get(name)
            binding = self._engine._by_name[name]
            if address and shape is not None and self._engine.is_shape_inference_io(name):
                values[name] = read_at(address, shape, binding.dtype).astype(binding.graph)
        return values

    def _values_problem(self, name: str, values: Sequence[int]) -> str | None:
        """Why these values of an input cannot decide shapes."""
        limits = self._engine._record.profiles[self._profile].values.get(name)
        if limits is None:
            return f"the values of input {name!r} decide no shapes"
        low, _, high = limits
        if len(values) == len(low) and all(
            a <= v <= b for a, v, b in zip(low, values, high, strict=True)
        ):
            return None
        return (
            f"input {name!r} cannot hold {tuple(values)}: profile {self._profile} has {low} to "
            f"{high}"
        )

    def _execute(
        self, addresses: dict[str, int], allocators: dict[str, IOutputAllocator], stream: int
    ) -> bool:
        try:
            return self._run(addresses, allocators, stream)
        except (HeadraceError, ValueError, TypeError) as error:  # also: an address that cannot be
            self._report(str(error))
        return False

    def _run(
        self, addresses: dict[str, int], allocators: dict[str, IOutputAllocator], stream: int
    ) -> bool:
        feeds = {}
        for binding in self._engine._bindings:
            if not binding.is_input:
                continue
            shape = self._shapes.get(binding.name)
            if shape is None:
                self._report(
                    f"input {binding.name!r} has no shape yet: {tuple(binding.shape)} has free "
                    "axes; set_input_shape"
                )
                return False
            address = addresses.get(binding.name, 0)
            values = self._values.get(binding.name)
            if values is None and not address and int(np.prod(shape)):
                self._report(f"input {binding.name!r} has no address; set_tensor_address")
                return False
            if values is None:
                with _at(binding, address):
                    array = read_at(address, shape, binding.dtype, stream=stream)
                array = array.astype(binding.graph, copy=False)
            else:
                array = values.reshape(shape)
            if self._engine.is_shape_inference_io(binding.name):
                problem = self._values_problem(binding.name, array.reshape(-1).tolist())
                if problem:
                    self._report(problem)
                    return False
            feeds[binding.name] = array
        for binding in self._engine._bindings:
            ready = addresses.get(binding.name) or binding.name in allocators
            if not binding.is_input and not ready:
                self._report(f"output {binding.name!r} has no address; set_tensor_address")
                return False
        started = time.perf_counter()
        self._own_plugins()
        with runs_of(self._owner):
            outputs = self._engine._session.run(feeds)
        self._tell_notices()
        self._last_ms = (time.perf_counter() - started) * 1000
        self._tell_listener({**feeds, **outputs}, stream)
        for name, binding in self._engine._by_name.items():
            if not binding.is_input:
                self._deliver(binding, outputs[name], addresses, allocators, stream)
        if self._profiler is not None and self._plain.get("enqueue_emits_profile", True):
            self.report_to_profiler()
        return True

    def _tell_notices(self) -> None:
        """Log the notices of plugins, each once."""
        notices = [] if self._pool is None else self._pool.notices
        for notice in notices[self._told :]:
            report(self._engine._logger, Severity.WARNING, str(notice))
        self._told = len(notices)

    def _tell_listener(self, values: dict[str, Array], stream: int) -> None:
        """Show the debug tensors that are on to the listener: in device memory, as TensorRT."""
        listener = self._plain.get("listener")
        if listener is None:
            return
        for name in (n for n in self._engine._record.debugged if n in self._debugs):
            array = np.ascontiguousarray(values[name])
            listener.process_debug_tensor(
                array.ctypes.data, TensorLocation["DEVICE"], DataType.of(array.dtype),
                Dims(array.shape), name, stream,
            )  # fmt: skip

    def _deliver(
        self,
        binding: Binding,
        array: Array,
        addresses: dict[str, int],
        allocators: dict[str, IOutputAllocator],
        stream: int,
    ) -> None:
        """Write an output where it is wanted."""
        size = int(array.size * binding.dtype.itemsize)
        address = addresses.get(binding.name, 0)
        allocator = allocators.get(binding.name)
        if allocator is not None:
            name = binding.name
            if type(allocator).__dict__.get("reallocate_output_async"):
                address = allocator.reallocate_output_async(name, address, size, ALIGNMENT, stream)
            else:
                address = allocator.reallocate_output(name, address, size, ALIGNMENT)
            addresses[name] = int(address or 0)
            allocator.notify_shape(name, Dims(array.shape[self._engine._offset :]))
        if array.size:
            with _at(binding, address):
                write_at(int(address or 0), array, binding.dtype, stream=stream)

    def _report(self, text: str) -> None:
        self._engine._report(text, Severity.ERROR, self._recorder)

    def __repr__(self) -> str:
        return f"IExecutionContext({self._engine.name!r}, profile {self._profile})"


@contextmanager
def _at(binding: Binding, address: int) -> Iterator[None]:
    """Errors of the GPU say which memory it was."""
    try:
        yield
    except EngineError as error:
        raise EngineError(
            f"{'input' if binding.is_input else 'output'} {binding.name!r} at {address:#x}: "
            f"{error:brief}",
            expected="memory of the first GPU, as much as the tensor has",
        ) from error


def _aligned(actual: Shape, declared: Shape) -> list[tuple[int, int]]:
    if len(actual) != len(declared):
        return [(d, -1) for d in actual]
    return list(zip(actual, declared, strict=True))
