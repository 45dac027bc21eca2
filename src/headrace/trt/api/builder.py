"""`Builder`: makes networks, configs, profiles and engines."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace.plugins.registry import PluginRegistry, get_plugin_registry
from headrace.trt.api.build import build_plan
from headrace.trt.api.config import IBuilderConfig
from headrace.trt.api.engine import ICudaEngine, open_engine
from headrace.trt.api.network import INetworkDefinition
from headrace.trt.api.profile import IOptimizationProfile
from headrace.trt.release import CHOOSE_RELEASE, current, generation, versioned
from headrace.trt.types.enums import ErrorCodeTRT, names_in
from headrace.trt.types.reporting import Severity, note_without_effect, report
from headrace.trt.types.strict import Closable, Stored, always, kept
from headrace.trt.types.values import IHostMemory

if TYPE_CHECKING:
    from headrace.engine.plan import Plan
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.api.interfaces import IGpuAllocator, IStreamWriter
    from headrace.trt.types.reporting import IErrorRecorder, ILogger


@versioned(
    {
        "<10 deprecated>=8.4": "max_batch_size",
        "<10 deprecated>=8": "build_engine -> build_serialized_network",
        "<8": (
            "build_cuda_engine, max_workspace_size, fp16_mode, int8_mode, "
            "strict_type_constraints, int8_calibrator"
        ),
        ">=10": "build_engine_with_config",
        ">=10.13": "build_serialized_network_to_stream",
        "<11 deprecated>=10.5": "platform_has_fast_fp16, platform_has_fast_int8, platform_has_tf32",
        ">=8.6": "get_plugin_registry",
    }
)
class Builder(Closable):
    """Builds engines; None, with a report to the logger, if it cannot.

    Source: tensorrt-api spec 3.1.
    """

    def __init__(self, logger: ILogger | None) -> None:
        self._logger = logger
        self._recorder: IErrorRecorder | None = None
        self._allocator: IGpuAllocator | None = None
        self._max_batch = 1
        self._sets_batch = False
        self._undecided: weakref.WeakSet[INetworkDefinition] = weakref.WeakSet()
        self._max_threads = 1
        self._plain: dict[str, object] = {}
        self._registry: PluginRegistry | None = None

    logger = kept("_logger", "Where errors are reported.", read_only=True)
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")

    @property
    def gpu_allocator(self) -> IGpuAllocator | None:
        """An `IGpuAllocator`: kept and not called, since memory is the host's."""
        return self._allocator

    @gpu_allocator.setter
    def gpu_allocator(self, value: IGpuAllocator | None) -> None:
        self._allocator = value
        note_without_effect(self._logger, "gpu_allocator" if value is not None else "")

    @property
    def max_batch_size(self) -> int:
        """Largest batch of networks with an implicit one.

        Where no release is chosen, setting it makes the batch of this builder's networks implicit,
        if they were made without EXPLICIT_BATCH and have no input yet.
        """
        return self._max_batch

    @max_batch_size.setter
    def max_batch_size(self, value: int) -> None:
        self._max_batch = int(value)
        self._sets_batch = True
        for network in self._undecided:
            if network._inputs:
                report(self._logger, Severity.WARNING, CHOOSE_RELEASE)
            else:
                network._implicit = True
        self._undecided.clear()

    max_threads = kept("_max_threads", "Recorded.", convert=int)

    max_workspace_size = Stored(
        0, "As `IBuilderConfig.max_workspace_size`, for `build_cuda_engine`.", int
    )
    fp16_mode = Stored(False, "The FP16 flag, for `build_cuda_engine`.", bool)
    int8_mode = Stored(False, "The INT8 flag, for `build_cuda_engine`.", bool)
    strict_type_constraints = Stored(False, "The STRICT_TYPES flag, for `build_cuda_engine`.", bool)
    int8_calibrator = Stored(None, "As `IBuilderConfig.int8_calibrator`, for `build_cuda_engine`.")

    platform_has_fast_fp16 = always(
        True, "True: scripts refuse half precision otherwise. It is computed in FP32."
    )
    platform_has_fast_int8 = always(True, "True: with scales, INT8 is computed.")
    platform_has_tf32 = always(False, "FP32 is computed in full.")
    num_DLA_cores = always(0, "None here.")
    max_DLA_batch_size = always(0, "None here.")

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """An empty network.

        Args:
            flags: mask of `NetworkDefinitionCreationFlag`s. Looking like 8.6 or 9, one without
                EXPLICIT_BATCH has an implicit batch; otherwise every batch is explicit, unless
                the script sets `max_batch_size`.
        """
        names = names_in("NetworkDefinitionCreationFlag", int(flags))
        free = generation() < 10 and not {"EXPLICIT_BATCH", "STRONGLY_TYPED"} & names
        chosen = current().number is not None
        implicit = free and (chosen or self._sets_batch)
        network = INetworkDefinition(self, self._logger, int(flags), implicit=implicit)
        if free and not implicit:
            self._undecided.add(network)
        return network

    def create_builder_config(self) -> IBuilderConfig:
        """Settings of a build."""
        return IBuilderConfig(self._logger)

    def create_optimization_profile(self) -> IOptimizationProfile:
        """An empty profile."""
        return IOptimizationProfile(self._logger)

    def get_plugin_registry(self) -> PluginRegistry:
        """A registry of this builder, in front of the global one."""
        if self._registry is None:
            self._registry = PluginRegistry(get_plugin_registry())
        return self._registry

    def is_network_supported(self, network: INetworkDefinition, config: IBuilderConfig) -> bool:
        """Whether an engine could be built, as far as layers tell."""
        errors = network._errors()
        for error in errors:
            self._tell(error)
        return not errors and bool(network._outputs)

    def reset(self) -> None:
        """As it was made."""
        self._max_batch, self._max_threads, self._plain = 1, 1, {}

    def build_serialized_network(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> IHostMemory | None:
        """The bytes of an engine; None if there can be none."""
        plan = self._plan(network, config)
        return None if plan is None else IHostMemory(b"".join(plan.to_chunks()))

    def build_serialized_network_to_stream(
        self, network: INetworkDefinition, config: IBuilderConfig, stream_writer: IStreamWriter
    ) -> bool:
        """Hand the bytes to `stream_writer.write`; whether all went through."""
        plan = self.build_serialized_network(network, config)
        return plan is not None and int(stream_writer.write(bytes(plan))) == len(plan)

    def build_engine(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> ICudaEngine | None:
        """An engine; None if there can be none."""
        return self._engine(self._plan(network, config))

    def build_engine_with_config(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> ICudaEngine | None:
        """`build_engine` by its newer name."""
        return self._engine(self._plan(network, config))

    def build_cuda_engine(self, network: INetworkDefinition) -> ICudaEngine | None:
        """`build_engine` with the settings of the builder itself."""
        config = IBuilderConfig(self._logger)
        flags = {
            "FP16": self.fp16_mode,
            "INT8": self.int8_mode,
            "STRICT_TYPES": self.strict_type_constraints,
        }
        config._flags |= {flag for flag, wants in flags.items() if wants}
        config.int8_calibrator = self.int8_calibrator
        return self._engine(self._plan(network, config))

    def _plan(self, network: INetworkDefinition, config: IBuilderConfig) -> Plan | None:
        if not isinstance(network, INetworkDefinition):
            raise TypeError(f"a network, not a {type(network).__name__}")
        if not isinstance(config, IBuilderConfig):
            raise TypeError(f"a builder config, not a {type(config).__name__}")
        try:
            return build_plan(network, config, self._logger, max_batch=self._max_batch)
        except HeadraceError as error:
            self._tell(str(error), network)
            if network in self._undecided and any(len(x.shape) == 3 for x in network._inputs):
                report(self._logger, Severity.WARNING, CHOOSE_RELEASE)  # images without a batch
            return None

    def _engine(self, plan: Plan | None) -> ICudaEngine | None:
        if plan is None:
            return None
        try:
            return open_engine(plan, self._logger, self._recorder)
        except HeadraceError as error:
            self._tell(str(error))
            return None

    def _tell(self, text: str, network: INetworkDefinition | None = None) -> None:
        recorder = self._recorder or (network._recorder if network is not None else None)
        report(
            self._logger,
            Severity.ERROR,
            text,
            recorder=recorder,
            code=ErrorCodeTRT["INVALID_CONFIG"],
        )


def get_builder_plugin_registry(capability: NumberedEnum) -> PluginRegistry | None:
    """The registry for an `EngineCapability`; None for a capability that is not there."""
    return get_plugin_registry() if int(capability) == 0 else None
