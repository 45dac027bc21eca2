"""`IBuilderConfig`: how an engine is to be built."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.trt.api.interfaces import ITimingCache
from headrace.trt.api.profile import IOptimizationProfile
from headrace.trt.layers.base import ILayer
from headrace.trt.release import generation, versioned
from headrace.trt.types.enums import (
    DeviceType,
    EngineCapability,
    Flagged,
    HardwareCompatibilityLevel,
    MemoryPoolType,
    ProfilingVerbosity,
    RuntimePlatform,
    TilingOptimizationLevel,
    from_mask,
)
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Closable, Stored, always, counted

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.reporting import ILogger


_POOLS = {
    "DLA_LOCAL_DRAM": 2**30, "DLA_GLOBAL_DRAM": 2**29, "TACTIC_DRAM": 2**30,
    "TACTIC_SHARED_MEMORY": 2**30,
}  # fmt: skip
"""Pool -> bytes until it is limited. Source: docstrings of TensorRT's Python bindings."""

_PREVIEWS = {
    8: "FASTER_DYNAMIC_SHAPES_0805 DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805",
    10: "PROFILE_SHARING_0806",
    11: "",
}
"""Generation -> preview features that are on until they are switched off."""


@versioned(
    {
        "<10 deprecated>=8.4": "max_workspace_size -> set_memory_pool_limit, min_timing_iterations",
        "<11 deprecated>=10.1": (
            "int8_calibrator -> explicit quantisation, set_calibration_profile, "
            "get_calibration_profile"
        ),
        "<11 deprecated>=10.8": "algorithm_selector",
        "<11 deprecated>=10": "quantization_flags",
        "<11": "set_quantization_flag, clear_quantization_flag, get_quantization_flag",
        ">=8.4": "set_memory_pool_limit, get_memory_pool_limit",
        ">=8.6": (
            "builder_optimization_level, hardware_compatibility_level, max_aux_streams, "
            "plugins_to_serialize"
        ),
        ">=10": "progress_monitor",
        ">=10.3": "runtime_platform",
        ">=10.8": "tiling_optimization_level, l2_limit_for_tiling",
        ">=10.6": "max_num_tactics",
        ">=10.13": "remote_auto_tuning_config",
        ">=11.1": "build_route, all_build_routes",
    }
)
class IBuilderConfig(Flagged, Closable):
    """Made by `Builder.create_builder_config`. Source: tensorrt-api spec 3.2.

    Precision flags are recorded in the engine. FP16 and BF16 are computed in FP32; INT8 is
    computed where a calibrator or dynamic ranges give scales.
    """

    _FLAGS = "BuilderFlag"

    def __init__(self, logger: ILogger | None = None) -> None:
        self._logger = logger
        self._flags = frozenset({"TF32"})
        self._quantization_flags: set[str] = set()
        self._pools: dict[str, int] = {}
        self._profiles: list[IOptimizationProfile] = []
        self._calibration_profile: IOptimizationProfile | None = None
        self._devices: dict[str, NumberedEnum] = {}
        self._previews = set(_PREVIEWS[generation()].split())
        self._tactics: int | None = None
        self._timing_cache: ITimingCache | None = None
        self._plain: dict[str, Any] = {}

    default_device_type = Stored(DeviceType["GPU"], "GPU or DLA.", DeviceType)

    @property
    def DLA_core(self) -> int:
        """Number of the DLA core: -1, since there is none."""
        return -1

    @DLA_core.setter
    def DLA_core(self, value: int) -> None:
        if value != -1:
            report(self._logger, Severity.WARNING, f"there is no DLA core {value} here")

    profiling_verbosity = Stored(
        ProfilingVerbosity["LAYER_NAMES_ONLY"], "How much the inspector shows.", ProfilingVerbosity
    )
    engine_capability = Stored(EngineCapability["STANDARD"], "Recorded.", EngineCapability)
    hardware_compatibility_level = Stored(
        HardwareCompatibilityLevel["NONE"], "Recorded.", HardwareCompatibilityLevel
    )
    runtime_platform = Stored(RuntimePlatform["SAME_AS_BUILD"], "Recorded.", RuntimePlatform)
    tiling_optimization_level = Stored(
        TilingOptimizationLevel["NONE"], "Recorded.", TilingOptimizationLevel
    )
    builder_optimization_level = Stored(3, "0 to 5; recorded.", int)
    max_aux_streams = Stored(-1, "Recorded.", int)
    avg_timing_iterations = Stored(1, "Recorded.", int)
    min_timing_iterations = Stored(1, "Recorded.", int)
    l2_limit_for_tiling = Stored(-1, "Recorded.", int)
    max_num_tactics = Stored(-1, "Recorded.", int)
    remote_auto_tuning_config = Stored("", "Recorded.", str)
    build_route = Stored("", "Recorded.", str)
    all_build_routes = always("", "Knobs of build routes: none.")
    plugins_to_serialize = Stored([], "Recorded.", list)
    profile_stream = Stored(0, "Recorded.", int)
    int8_calibrator = Stored(None, "An `IInt8Calibrator`.")
    algorithm_selector = Stored(None, "An `IAlgorithmSelector`.")
    progress_monitor = Stored(None, "An `IProgressMonitor`.")

    @property
    def max_workspace_size(self) -> int:
        """Bytes of the workspace pool."""
        return self.get_memory_pool_limit(MemoryPoolType["WORKSPACE"])

    @max_workspace_size.setter
    def max_workspace_size(self, value: int) -> None:
        self.set_memory_pool_limit(MemoryPoolType["WORKSPACE"], value)

    def set_quantization_flag(self, flag: NumberedEnum) -> None:
        """Recorded."""
        self._quantization_flags.add(flag.name)

    def clear_quantization_flag(self, flag: NumberedEnum) -> None:
        """Undo `set_quantization_flag`."""
        self._quantization_flags.discard(flag.name)

    def get_quantization_flag(self, flag: NumberedEnum) -> bool:
        """Whether it was set."""
        return flag.name in self._quantization_flags

    @property
    def quantization_flags(self) -> int:
        """Mask."""
        return 1 if self._quantization_flags else 0

    @quantization_flags.setter
    def quantization_flags(self, value: int) -> None:
        self._quantization_flags = {"CALIBRATE_BEFORE_FUSION"} if value & 1 else set()

    def set_memory_pool_limit(self, pool: NumberedEnum, pool_size: int) -> None:
        """Most bytes of a pool; recorded."""
        if int(pool_size) < 0:
            raise TypeError(f"pool_size={pool_size}: bytes, 0 or more")
        self._pools[MemoryPoolType(pool).name] = int(pool_size)

    def get_memory_pool_limit(self, pool: NumberedEnum) -> int:
        """Most bytes of a pool; the workspace may take all memory until it is limited."""
        name = MemoryPoolType(pool).name
        default = _memory_bytes() if name == "WORKSPACE" else _POOLS.get(name, 0)
        return self._pools.get(name, default)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """Index of the profile; -1 if no shape is in it."""
        if not isinstance(profile, IOptimizationProfile):
            raise TypeError(f"a profile, not a {type(profile).__name__}")
        if profile._problem is not None:
            report(self._logger, Severity.ERROR, profile._problem)
            return -1
        self._profiles.append(profile)
        return len(self._profiles) - 1

    num_optimization_profiles = counted("_profiles", "Number of profiles.")

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """The shapes that the calibrator's batches have."""
        self._calibration_profile = profile
        return profile._problem is None

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        """The profile set by `set_calibration_profile`."""
        return self._calibration_profile

    def set_device_type(self, layer: ILayer, device_type: NumberedEnum) -> None:
        """Where a layer runs: here always on the CPU."""
        self._devices[layer._uid] = DeviceType(device_type)

    def get_device_type(self, layer: ILayer) -> NumberedEnum:
        """Where a layer was asked to run."""
        default: NumberedEnum = self.default_device_type
        return self._devices.get(layer._uid, default)

    def is_device_type_set(self, layer: ILayer) -> bool:
        """Whether `set_device_type` was called."""
        return layer._uid in self._devices

    def reset_device_type(self, layer: ILayer) -> None:
        """Undo `set_device_type`."""
        self._devices.pop(layer._uid, None)

    def can_run_on_DLA(self, layer: ILayer) -> bool:
        """There is no DLA."""
        return False

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Recorded."""
        self._tactics = int(tactic_sources)
        return True

    def get_tactic_sources(self) -> int:
        """The mask that was set, else the default of the release."""
        if self._tactics is not None:
            return self._tactics
        older = "CUBLAS CUBLAS_LT CUDNN" if generation() < 10 else ""
        return from_mask(
            "TacticSource", [*older.split(), "EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"]
        )

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache:
        """A cache from the bytes of one, or of nothing."""
        return ITimingCache(bytes(serialized_timing_cache))

    def get_timing_cache(self) -> ITimingCache | None:
        """The cache set by `set_timing_cache`; after a build there is one."""
        return self._timing_cache

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Use a cache."""
        if not isinstance(cache, ITimingCache):
            raise TypeError(f"a timing cache, not a {type(cache).__name__}")
        self._timing_cache = cache
        return True

    def set_preview_feature(self, feature: NumberedEnum, enable: bool) -> None:
        """Recorded."""
        (self._previews.add if enable else self._previews.discard)(feature.name)

    def get_preview_feature(self, feature: NumberedEnum) -> bool:
        """Whether it was asked for."""
        return feature.name in self._previews

    def reset(self) -> None:
        """Everything as it was made."""
        self.__init__(self._logger)  # type: ignore[misc]

    @property
    def _device_problem(self) -> str | None:
        """A DLA that is asked for without allowing anything else."""
        devices = [self.default_device_type, *self._devices.values()]
        dla = any(d.name == "DLA" for d in devices)
        if dla and "GPU_FALLBACK" not in self._flags:
            return "there is no DLA here; allow another device with BuilderFlag.GPU_FALLBACK"
        return None

    def _precisions(self) -> Sequence[str]:
        return [n for n in ("INT8", "FP16", "BF16", "FP8") if n in self._flags]


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 2**32
