"""`ICudaEngine`: a plan that is ready to make contexts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.types import DType
from headrace.engine.plan import MODEL_BLOB, Plan
from headrace.engine.plan_header import TensorRecord
from headrace.engine.plugin_graph.plugin_saving import spec_of
from headrace.engine.session import FreeSession
from headrace.network.shapes.model_shapes import ModelShapes
from headrace.network.shapes.node_shapes import Shape
from headrace.network.tensor_spec import TensorType
from headrace.plugins.expressions import evaluate_free
from headrace.plugins.types import DataType, Dims, TensorFormat
from headrace.trt.api.context import IExecutionContext
from headrace.trt.api.inspector import EngineInspector, linear
from headrace.trt.api.interfaces import IRuntimeConfig, ISerializationConfig
from headrace.trt.api.record import ShapeRanges, TrtRecord, record_of, record_of_foreign
from headrace.trt.api.refitter import weight_bytes
from headrace.trt.release import current, generation, versioned
from headrace.trt.types.enums import (
    EngineCapability,
    ExecutionContextAllocationStrategy,
    HardwareCompatibilityLevel,
    ProfilingVerbosity,
    TensorIOMode,
    TensorLocation,
)
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Closable, always, by_binding, counted, kept
from headrace.trt.types.values import IHostMemory, elem_of

if TYPE_CHECKING:
    from onnx import NodeProto

    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.reporting import IErrorRecorder, ILogger


@dataclass(frozen=True, slots=True)
class Binding:
    """An input or output.

    Attributes:
        dtype: as the user sees it; `graph` as the graph has it.
        shape: -1 for free axes, the implicit batch among them.
    """

    name: str
    dtype: DataType
    graph: DType
    shape: Shape
    is_input: bool


@versioned(
    {
        "<10 deprecated>=8.5": (
            "get_binding_shape -> get_tensor_shape, get_binding_dtype -> get_tensor_dtype, "
            "get_binding_format -> get_tensor_format, "
            "get_binding_format_desc -> get_tensor_format_desc, "
            "get_binding_bytes_per_component -> get_tensor_bytes_per_component, "
            "get_binding_components_per_element -> get_tensor_components_per_element, "
            "get_binding_vectorized_dim -> get_tensor_vectorized_dim, "
            "get_location -> get_tensor_location, is_shape_binding -> is_shape_inference_io, "
            "num_bindings -> num_io_tensors, max_batch_size -> explicit batches, "
            "get_binding_index -> names, get_binding_name -> get_tensor_name, "
            "binding_is_input -> get_tensor_mode, get_profile_shape -> get_tensor_profile_shape, "
            "get_profile_shape_input -> get_tensor_profile_values, "
            "is_execution_binding -> get_tensor_mode"
        ),
        ">=10 <11": (
            "get_device_memory_size_for_profile, weight_streaming_budget, "
            "minimum_weight_streaming_budget"
        ),
        ">=10 ": "streamable_weights_size, is_debug_tensor",
        ">=10.14": "get_engine_stat",
        ">=8.5": (
            "num_io_tensors, get_tensor_name, get_tensor_mode, get_tensor_shape, get_tensor_dtype"
        ),
        ">=10": "get_tensor_profile_values, create_serialization_config, serialize_with_config",
        ">=10.15": "get_aliased_input_tensor",
        "<11 deprecated>=10.1": "device_memory_size",
        ">=10.1": (
            "device_memory_size_v2, get_device_memory_size_for_profile_v2, "
            "weight_streaming_budget_v2, get_weight_streaming_automatic_budget, "
            "weight_streaming_scratch_memory_size"
        ),
        ">=10.11": "create_runtime_config",
        "<11": "create_execution_context_without_device_memory",
        "<11 deprecated>=10": "has_implicit_batch_dimension",
        ">=8.6": "hardware_compatibility_level, num_aux_streams",
    }
)
class ICudaEngine(Closable):
    """Device pointers are addresses of host memory. Source: tensorrt-api spec 4.2.

    Up to 9.x bindings have numbers: with k profiles there are k copies of them; names of later
    copies end in ` [profile p]`.
    """

    def __init__(
        self, plan: Plan, logger: ILogger | None = None, recorder: IErrorRecorder | None = None
    ) -> None:
        self._plan = plan
        self._logger = logger
        self._recorder = recorder
        self._record = record_of(plan) or record_of_foreign(plan)
        self._session = _free_session(plan)
        self._shapes: ModelShapes | None = None
        self._lock = threading.Lock()
        self._budget: int | None = None
        self._bindings = [
            *(_binding(r, self._record, is_input=True) for r in plan.header.inputs),
            *(
                _binding(r, self._record, is_input=False)
                for r in plan.header.outputs
                if r.name not in self._record.hidden
            ),
        ]
        self._by_name = {b.name: b for b in self._bindings}

    name = kept("_record.name", "Name of the network.", read_only=True)
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")
    num_io_tensors = counted("_bindings", "Inputs and outputs.")
    num_layers = counted("_record.layers", "Layers of the network.")
    num_optimization_profiles = counted("_record.profiles", "Profiles.")
    has_implicit_batch_dimension = kept(
        "_record.implicit", "Whether shapes leave the batch out.", read_only=True
    )

    @property
    def refittable(self) -> bool:
        """Whether weights can be replaced."""
        return bool({"REFIT", "REFIT_IDENTICAL", "REFIT_INDIVIDUAL"} & set(self._record.flags))

    @property
    def profiling_verbosity(self) -> NumberedEnum:
        """How much the inspector shows."""
        return ProfilingVerbosity[self._record.verbosity]

    engine_capability = always(EngineCapability["STANDARD"], "Always STANDARD.")
    hardware_compatibility_level = always(
        HardwareCompatibilityLevel["NONE"], "Plans run on every machine."
    )
    tactic_sources = always(0, "Nothing of a GPU.")
    num_aux_streams = always(0, "There are no streams.")
    device_memory_size = always(0, "Bytes of device memory: none.")
    device_memory_size_v2 = always(0, "Bytes of device memory: none.")
    weight_streaming_scratch_memory_size = always(0, "Bytes of scratch memory: none.")
    minimum_weight_streaming_budget = always(0, "Least budget, in bytes.")

    def get_device_memory_size_for_profile(self, profile_index: int) -> int:
        """Bytes of device memory for a profile: none."""
        self._profile(profile_index)
        return 0

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        """Bytes of device memory for a profile: none."""
        return self.get_device_memory_size_for_profile(profile_index)

    @property
    def streamable_weights_size(self) -> int:
        """Bytes of weights, of an engine built with WEIGHT_STREAMING; 0 of others."""
        streams = "WEIGHT_STREAMING" in self._record.flags
        return weight_bytes(self._plan) if streams else 0

    @property
    def weight_streaming_budget_v2(self) -> int:
        """The budget that was set, by default all weights; they stay in the host's memory."""
        return self.streamable_weights_size if self._budget is None else self._budget

    @weight_streaming_budget_v2.setter
    def weight_streaming_budget_v2(self, value: int) -> None:
        if value < 0:
            self._report(f"a budget of {value} bytes for streamed weights; 0 or more")
        else:
            self._budget = min(int(value), self.streamable_weights_size)

    @property
    def weight_streaming_budget(self) -> int:
        """The budget by its older name: -1 streams nothing, 0 lets the engine choose."""
        return 0 if self._budget is None else self._budget

    @weight_streaming_budget.setter
    def weight_streaming_budget(self, value: int) -> None:
        self._budget = None if value == 0 else int(value)

    def get_weight_streaming_automatic_budget(self) -> int:
        """The budget that fits the memory: all weights."""
        return self.streamable_weights_size

    def get_engine_stat(self, stat: NumberedEnum) -> int:
        """Bytes of the weights; stripped ones, of an engine built with STRIP_PLAN, else -1."""
        if stat.name == "STRIPPED_WEIGHTS_SIZE" and "STRIP_PLAN" not in self._record.flags:
            return -1
        return weight_bytes(self._plan)

    def is_debug_tensor(self, name: str) -> bool:
        """Whether debug listeners receive its values."""
        return name in self._record.debugged

    def get_tensor_name(self, index: int) -> str:
        """Name of an input or output."""
        return self._bindings[index].name

    def get_tensor_mode(self, name: str) -> NumberedEnum:
        """INPUT, OUTPUT, or NONE if nothing is called so."""
        binding = self._find(name)
        if binding is None:
            return TensorIOMode["NONE"]
        return TensorIOMode["INPUT" if binding.is_input else "OUTPUT"]

    def get_tensor_shape(self, name: str) -> Dims:
        """Extents; -1 for free axes."""
        binding = self._find(name)
        return Dims(()) if binding is None else Dims(binding.shape[self._offset :])

    def get_tensor_dtype(self, name: str) -> DataType:
        """Element type."""
        binding = self._find(name)
        return DataType.FLOAT if binding is None else binding.dtype

    def get_tensor_location(self, name: str) -> NumberedEnum:
        """HOST for inputs that decide shapes."""
        host = self.is_shape_inference_io(name)
        return TensorLocation["HOST" if host else "DEVICE"]

    def is_shape_inference_io(self, name: str) -> bool:
        """Whether its values decide shapes."""
        return any(name in p.values for p in self._record.profiles)

    def get_tensor_format(self, name: str, profile_index: int = 0) -> TensorFormat:
        """Always LINEAR."""
        return TensorFormat.LINEAR

    def get_tensor_format_desc(self, name: str, profile_index: int = 0) -> str:
        """The format in words."""
        binding = self._find(name)
        kind = "FLOAT" if binding is None else binding.dtype.name
        return f"{linear(kind)} format (kLINEAR)"

    def get_tensor_bytes_per_component(self, name: str, profile_index: int = 0) -> int:
        """Bytes of an element."""
        binding = self._find(name)
        return -1 if binding is None else int(binding.dtype.itemsize)

    def get_tensor_components_per_element(self, name: str, profile_index: int = 0) -> int:
        """-1: the format is not vectorised."""
        return -1

    def get_tensor_vectorized_dim(self, name: str, profile_index: int = 0) -> int:
        """-1: the format is not vectorised."""
        return -1

    get_binding_shape = by_binding(get_tensor_shape)
    get_binding_dtype = by_binding(get_tensor_dtype)
    get_binding_format = by_binding(get_tensor_format)
    get_binding_format_desc = by_binding(get_tensor_format_desc)
    get_binding_bytes_per_component = by_binding(get_tensor_bytes_per_component)
    get_binding_components_per_element = by_binding(get_tensor_components_per_element)
    get_binding_vectorized_dim = by_binding(get_tensor_vectorized_dim)
    get_location = by_binding(get_tensor_location)
    is_shape_binding = by_binding(is_shape_inference_io, "binding")

    def get_aliased_input_tensor(self, name: str) -> str | None:
        """No output shares an input's memory."""
        return None

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Dims]:
        """[min, opt, max] of an input."""
        profile = self._profile(profile_index)
        limits = profile.shapes.get(name)
        if limits is not None:
            return [Dims(s) for s in limits]
        binding = self._find(name)
        if binding is None:
            return []
        dims = []
        for which in range(3):  # of an output: from the inputs' shapes
            shapes = {n: (*((1,) * self._offset), *r[which]) for n, r in profile.shapes.items()}
            shape = self._output_shapes(shapes).get(name) or binding.shape
            dims.append(Dims(shape[self._offset :]))
        return dims

    def get_tensor_profile_values(self, profile_index: int, name: str) -> list[list[int]]:
        """[min, opt, max] of the values of an input that decides shapes."""
        values = self._profile(profile_index).values.get(name)
        return [] if values is None else [list(v) for v in values]

    def create_execution_context(
        self, strategy: NumberedEnum | None = None, runtime_config: IRuntimeConfig | None = None
    ) -> IExecutionContext | None:
        """A context; any number of them may be in use.

        None, with a report to the logger, if a plugin cannot be attached to it.
        """
        if strategy is not None and not hasattr(strategy, "name"):
            strategy = None
        try:
            return IExecutionContext(self, strategy or ExecutionContextAllocationStrategy["STATIC"])
        except HeadraceError as error:
            report(self._logger, Severity.ERROR, str(error), recorder=self._recorder)
            return None

    def create_execution_context_without_device_memory(self) -> IExecutionContext | None:
        """As `create_execution_context`: there is no device memory."""
        return self.create_execution_context()

    def create_runtime_config(self) -> IRuntimeConfig:
        """Settings of contexts."""
        return IRuntimeConfig()

    def create_engine_inspector(self) -> EngineInspector:
        """An inspector of the layers."""
        return EngineInspector(self)

    def create_serialization_config(self) -> ISerializationConfig:
        """Settings of `serialize_with_config`."""
        return ISerializationConfig()

    def serialize(self) -> IHostMemory:
        """The bytes of the engine."""
        return IHostMemory(b"".join(self._plan.to_chunks()))

    def serialize_with_config(self, config: ISerializationConfig) -> IHostMemory:
        """`serialize`; weights are always in it."""
        return self.serialize()

    # bindings by number

    @property
    def num_bindings(self) -> int:
        """Inputs and outputs times profiles."""
        return len(self._bindings) * max(1, len(self._record.profiles))

    @property
    def max_batch_size(self) -> int:
        """Largest implicit batch; 1 where batches are explicit."""
        return self._record.max_batch if self._record.implicit else 1

    def __len__(self) -> int:
        self._need_old("__len__")
        return len(self._bindings) * max(1, len(self._record.profiles))

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return (
            map(self.get_tensor_name, range(len(self._bindings)))
            if _by_name()
            else iter([self._name_at(i) for i in range(len(self))])
        )

    def __getitem__(self, key: int | str) -> str | int:
        if not isinstance(key, str):
            return self.get_tensor_name(key) if _by_name() else self._name_at(self._index_of(key))
        self._need_old("__getitem__ for names")
        return self._index_of(key)

    def get_binding_index(self, name: str) -> int:
        """Index of a binding; -1 if nothing is called so."""
        try:
            return self._index_of(name)
        except KeyError:
            return -1

    def get_binding_name(self, index: int) -> str:
        """Name of a binding."""
        return self._name_at(self._index_of(index))

    def binding_is_input(self, index: int | str) -> bool:
        """Whether a binding is fed."""
        return self._at(index).is_input

    def get_profile_shape(self, profile_index: int, binding: int | str) -> list[Dims]:
        """[min, opt, max] of an input."""
        shapes = self._record.profiles[profile_index].shapes.get(self._at(binding).name)
        return [] if shapes is None else [Dims(s) for s in shapes]

    def get_profile_shape_input(self, profile_index: int, binding: int | str) -> list[list[int]]:
        """[min, opt, max] of the values of an input that decides shapes."""
        values = self._record.profiles[profile_index].values.get(self._at(binding).name, ())
        return [list(v) for v in values]

    def is_execution_binding(self, binding: int) -> bool:
        """Every binding is."""
        return True

    def _name_at(self, index: int) -> str:
        profile, at = divmod(index, len(self._bindings))
        name = self._bindings[at].name
        return name if profile == 0 else f"{name} [profile {profile}]"

    def _index_of(self, key: int | str) -> int:
        total = len(self._bindings) * max(1, len(self._record.profiles))
        if isinstance(key, str):
            base, mark, rest = key.partition(" [profile ")
            names = [b.name for b in self._bindings]
            if key in names:
                return names.index(key)
            if mark and base in names and rest.rstrip("]").isdigit():
                return int(rest.rstrip("]")) * len(names) + names.index(base)
            raise KeyError(key)
        if not -total <= int(key) < total:
            raise IndexError(f"binding {key} of {total}")
        return int(key) % total

    def _at(self, key: int | str) -> Binding:
        return self._bindings[self._index_of(key) % len(self._bindings)]

    def _need_old(self, name: str) -> None:
        if _by_name():
            raise TypeError(f"an engine has no {name} since TensorRT 10.0; use num_io_tensors")

    # inside the module

    @property
    def _offset(self) -> int:
        return int(self._record.implicit)

    def _find(self, name: str) -> Binding | None:
        binding = self._by_name.get(name)
        if binding is None:
            self._report(f"the engine has no input or output called {name!r}")
        return binding

    def _profile(self, index: int) -> ShapeRanges:
        if not 0 <= index < len(self._record.profiles):
            raise IndexError(f"profile {index} of {len(self._record.profiles)}")
        return self._record.profiles[index]

    def _report(
        self,
        text: str,
        severity: NumberedEnum = Severity.ERROR,
        recorder: IErrorRecorder | None = None,
    ) -> None:
        report(self._logger, severity, text, recorder=recorder or self._recorder)

    def _output_shapes(
        self, inputs: dict[str, Shape], values: dict[str, Any] | None = None
    ) -> dict[str, Shape | None]:
        with self._lock:
            if self._shapes is None:
                plugin_types = partial(_plugin_types, self._plan)
                self._shapes = ModelShapes(self._plan.blobs[MODEL_BLOB], plugin_types)
            return self._shapes.outputs(inputs, values)

    def _refitted(self, plan: Plan) -> None:
        """Go on with other weights; contexts that there are use them at their next run."""
        session = _free_session(plan)
        with self._lock:
            self._plan, before, self._session = plan, self._session, session
            self._shapes = None
        before.close()

    def __repr__(self) -> str:
        return f"ICudaEngine({self.name!r}: {', '.join(b.name for b in self._bindings)})"


def _by_name() -> bool:
    """True if the release has no bindings by number."""
    number = current().number
    return number is not None and number >= (10, 0)


def open_engine(
    plan: Plan, logger: ILogger | None, recorder: IErrorRecorder | None = None
) -> ICudaEngine:
    """An engine from a plan.

    Raises:
        EngineError: the runtime is missing or refuses the model; a damaged record.
    """
    return ICudaEngine(plan, logger, recorder)


def _free_session(plan: Plan) -> FreeSession:
    session = plan.open_session()
    if isinstance(session, FreeSession):
        return session
    # batches are padded and cut for nvinfer; here every shape is the caller's
    return FreeSession(
        session._open_runner(), plan.header, where=plan.header.model.name, options=session.options
    )


def _binding(record: TensorRecord, meta: TrtRecord, *, is_input: bool) -> Binding:
    shown = meta.types.get(record.name)
    dtype = np.dtype(record.dtype)
    if shown is not None:
        kind = DataType[shown]
    elif dtype == np.float64:
        kind = DataType.FLOAT
    elif dtype == np.int64 and generation() < 10:
        kind = DataType.INT32
    else:
        kind = DataType.of(dtype)
    axes = tuple(d if isinstance(d, int) else -1 for d in record.shape)
    known = meta.shapes.get(record.name)
    if known is not None and (not axes or len(known) == len(axes)):
        axes = known
    return Binding(record.name, kind, dtype, axes, is_input)


def _plugin_types(
    plan: Plan, node: NodeProto, infos: Mapping[str, TensorType]
) -> list[TensorType | None] | None:
    """Types of the outputs of a plugin's node in a plan; None if its inputs are unknown."""
    record = next((r for r in plan.header.plugins if r.node == node.name), None)
    if record is None or any(infos.get(n) is None for n in record.inputs if n):
        return None
    dims = []
    for n in record.inputs:
        shape = infos[n].shape if n else ()
        if shape is None:
            return None
        dims.append(shape)
    values = []
    for name in record.shape_inputs:
        known = infos[name].value if name in infos else None
        if known is None:
            return None
        values.append(tuple(-1 if np.isnan(float(v)) else int(v) for v in known.reshape(-1)))
    spec = spec_of(record)
    try:
        shapes = evaluate_free(spec.shapes, dims, values, spec.layer)
    except HeadraceError:
        return None
    kinds = [elem_of(DataType.of(d)) for d in spec.dtypes]
    types = dict(zip(record.outputs, zip(kinds, shapes, strict=True), strict=True))
    return [TensorType(*types[n]) if n in types else None for n in node.output]
