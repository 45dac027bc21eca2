"""Functions of the headers that belong to no object, and calls with another form in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace import trt
from headrace.plugins.drivers import deserialising
from headrace.plugins.registry import PluginRegistry, known_plugins
from headrace.plugins.registry import get_plugin_registry as _registry
from headrace.trt.host import creators
from headrace.trt.host.callback_errors import report_failure
from headrace.trt.host.creators import GIVEN, register_given
from headrace.trt.host.details import NETWORK_FLAGS, forget_lent, shapes_of
from headrace.trt.host.forwarding import CppAddress
from headrace.trt.types.enums import from_mask

if TYPE_CHECKING:
    from headrace.trt.api.builder import Builder
    from headrace.trt.api.config import IBuilderConfig
    from headrace.trt.api.legacy_parsers import UffParser
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.api.profile import IOptimizationProfile
    from headrace.trt.api.runtime import Runtime
    from headrace.trt.layers.base import ILayer


_resources: dict[str, list[int]] = {}
"""Key -> [address of the C++ resource, number of holders]."""


def get_plugin_registry() -> PluginRegistry:
    """getPluginRegistry(): the process's; standard plugins are added when it is searched."""
    return _registry()


def count_creators(registry: PluginRegistry, which: int) -> int:
    """IPluginRegistry::getPluginCreatorList and getAllCreators: how many there are."""
    return len(_creators(registry, which))


def creator_at(registry: PluginRegistry, which: int, index: int, caller: int) -> object:
    """Return one of them, for C++ code at the address `caller`."""
    return creators.find(_creators(registry, which)[index], caller)


def _creators(registry: PluginRegistry, which: int) -> list[object]:
    """Those of the version-2 line (0), all (1), or all of the registries in front too (2)."""
    known_plugins()
    if which == 2:
        return list(registry.all_creators_recursive)
    return list(registry.all_creators if which else registry.plugin_creator_list)


def init_libnvinfer_plugins(namespace: str = "") -> bool:
    """initLibNvInferPlugins()."""
    return bool(trt.init_libnvinfer_plugins(None, namespace))


def fail_foreign(function: str, why: str) -> None:
    """Report a call of a library of TensorRT's own headers that failed."""
    report_failure(function, why)


def refuse_foreign(interface: str, function: str) -> None:
    """Report a call of such a library that is not served; it was answered with zero."""
    report_failure(f"{interface}::{function}", "not served for compiled libraries of TensorRT")


def create_network(builder: Builder, flags: int) -> INetworkDefinition:
    """IBuilder::createNetworkV2: without flag 0 (explicit batch), the batch is implicit."""
    names = {name for i, name in enumerate(NETWORK_FLAGS) if flags >> i & 1}
    network: INetworkDefinition = trt.INetworkDefinition(
        builder, builder.logger, from_mask("NetworkDefinitionCreationFlag", names),
        implicit="EXPLICIT_BATCH" not in names,
    )  # fmt: skip
    network._strong = network._strong or "STRONGLY_TYPED" in names
    return network


def build_engine(
    builder: Builder, network: INetworkDefinition, config: IBuilderConfig | None = None
) -> Any:
    """IBuilder::buildEngineWithConfig, and buildCudaEngine of the generations before."""
    if config is None:
        config = _config_of(builder)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return None
    return trt.Runtime(builder.logger).deserialize_cuda_engine(plan)


def deserialize_with_factory(runtime: Runtime, engine: bytes, factory: Any) -> Any:
    """IRuntime::deserializeCudaEngine with a factory: for layers from before IPluginV2."""
    register_given()
    with deserialising({GIVEN: factory.native}):
        return runtime.deserialize_cuda_engine(engine)


def builder_setting(builder: Builder, name: str, value: Any) -> bool:
    """Keep a setting that builders had before there were configs, for `build_engine`."""
    settings = _settings.setdefault(id(builder), (builder, {}))[1]
    settings[name] = value
    return True


_settings: dict[int, tuple[object, dict[str, Any]]] = {}


def _config_of(builder: Builder) -> Any:
    config = builder.create_builder_config()
    _, settings = _settings.pop(id(builder), (builder, {}))
    for name, value in settings.items():
        if name not in trt.BuilderFlag.__members__:
            setattr(config, name, value)
        elif value:
            config.set_flag(getattr(trt.BuilderFlag, name))
    devices = _devices.pop(id(builder), (builder, None))[1]
    if devices is not None:
        config._devices = devices._devices
    return config


def builder_setting_of(builder: Builder, name: str) -> Any:
    """Read a setting that builders had before there were configs."""
    kept = _settings.get(id(builder), (builder, {}))[1]
    if name in trt.BuilderFlag.__members__:
        return bool(kept.get(name, False))
    if name == "max_workspace_size":
        return int(kept.get(name, 0))
    return kept.get(name, getattr(builder.create_builder_config(), name))


def builder_of_layer(builder: Builder, method: str, layer: ILayer, value: Any) -> Any:
    """IBuilder::setDeviceType and others up to 7: the config of the build keeps it."""
    config = _devices.setdefault(id(builder), (builder, builder.create_builder_config()))[1]
    arguments = (layer,) if value is None else (layer, value)
    return getattr(config, method)(*arguments)


_devices: dict[int, tuple[object, IBuilderConfig]] = {}


def profile_set_dimensions(
    profile: IOptimizationProfile, name: str, which: int, dims: Iterable[int]
) -> bool:
    """IOptimizationProfile::setDimensions: one of the three shapes at a time."""
    return _set_one(profile, name, which, dims, partial(profile.set_shape, name))


def profile_get_dimensions(profile: IOptimizationProfile, name: str, which: int) -> object:
    """IOptimizationProfile::getDimensions."""
    return shapes_of(profile).get(name, [None] * 3)[which]


def profile_set_values(
    profile: IOptimizationProfile, name: str, which: int, values: list[int]
) -> bool:
    """IOptimizationProfile::setShapeValues."""
    give = partial(profile.set_shape_input, name)
    return _set_one(profile, f"values of {name}", which, values, give)


def _set_one(
    profile: IOptimizationProfile, key: str, which: int, numbers: Any, give: Callable[..., Any]
) -> bool:
    """Keep one of three; set all when the last is there. False if there were not as many before."""
    shapes = shapes_of(profile).setdefault(key, [None, None, None])
    given = tuple(numbers)
    if any(one is not None and len(one) != len(given) for one in shapes):
        return False
    shapes[which] = given
    if None not in shapes:
        give(*shapes)
    return True


def forget_partial() -> None:
    """Drop profiles and settings of builds that have ended."""
    _settings.clear()
    _devices.clear()
    forget_lent()


def uff_register_input(parser: UffParser, name: str, dims: Iterable[int], order: int) -> bool:
    """IUffParser::registerInput."""
    return bool(parser.register_input(name, tuple(dims), trt.UffInputOrder(order)))


def resource_acquire(key: str) -> object:
    """IPluginRegistry::acquirePluginResource: the address of a resource, or None."""
    held = _resources.get(key)
    if held is None:
        return None
    held[1] += 1
    return CppAddress(held[0])


def resource_keep(key: str, address: int) -> bool:
    """Keep the resource of the first caller to acquire a key."""
    _resources[key] = [address, 1]
    return True


def resource_release(key: str) -> object:
    """Release a resource: True while it is held, else its address; None for a wrong key."""
    held = _resources.get(key)
    if held is None:
        return None
    held[1] -= 1
    if held[1]:
        return True
    del _resources[key]
    return CppAddress(held[0])
