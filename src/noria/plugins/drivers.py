"""Which driver a plugin gets, and how saved plugins come back."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from noria._core.errors import PluginError
from noria.plugins.base import IPluginCreatorV3One, IPluginV2, IPluginV2DynamicExt, IPluginV3
from noria.plugins.calls import Instance, Rollback, call_creator
from noria.plugins.driver_v2 import BatchedEngine, BatchedLayer, DynamicEngine, DynamicLayer
from noria.plugins.driver_v3 import V3Engine, V3Instance, V3Layer
from noria.plugins.layer import EnginePlugin, EngineSpec, LayerPlugin, SavedPlugin
from noria.plugins.registry import PluginRegistry
from noria.plugins.trace import record
from noria.plugins.types import DataType, TensorRTPhase


def add_layer(
    plugin: Any,
    *,
    layer: str,
    input_types: Sequence[DataType],
    num_shape_inputs: int = 0,
    implicit_batch: bool = False,
) -> LayerPlugin:
    """Add a plugin to a network: the network keeps a clone, the object stays the caller's.

    Args:
        plugin: object of one of the five classes.
        layer: name of its node.
        input_types: of its inputs, without shape inputs.
        num_shape_inputs: how many inputs are shape inputs (version 3).
        implicit_batch: the network's shapes leave the batch out (Caffe, UFF): `IPluginV2` is
            allowed only there.

    Raises:
        PluginError: not a plugin; it failed; an `IPluginV2` where it is not allowed.
    Source: tensorrt-plugins spec 4.1 and 4.2, "add layer".
    """
    user = Instance(plugin, layer)
    if isinstance(plugin, IPluginV3):
        return V3Layer.add(user, len(input_types), input_types, num_shape_inputs)
    if num_shape_inputs:
        raise PluginError(
            f"{num_shape_inputs} shape input(s)", where=user.where, expected="an IPluginV3"
        )
    if isinstance(plugin, IPluginV2DynamicExt):
        return DynamicLayer.add(user, len(input_types), input_types)
    if isinstance(plugin, IPluginV2):
        return BatchedLayer.add(user, len(input_types), input_types, implicit_batch=implicit_batch)
    raise PluginError(
        f"a {type(plugin).__name__} is not a plugin",
        where=f"layer {layer!r}",
        expected="an object of a class derived from IPluginV3, IPluginV2DynamicExt, "
        "IPluginV2IOExt, IPluginV2Ext or IPluginV2",
    )


def missing_creators(
    saved: Sequence[EngineSpec], registry: PluginRegistry
) -> list[tuple[str, str, str]]:
    """(type, version, namespace) that `registry` has no creator for, each once."""
    keys = dict.fromkeys((s.type, s.version, s.namespace) for s in saved)
    return [key for key in keys if registry.find(*key) is None]


def load_engine_plugin(saved: SavedPlugin, registry: PluginRegistry) -> EnginePlugin:
    """Make a plugin layer from the data of a plan; `finish` gets it ready.

    Raises:
        PluginError: there is no creator; it, or the plugin, failed. Nothing it made is left.
    Source: tensorrt-plugins spec 12.
    """
    spec = saved.spec
    creator = registry.find(spec.type, spec.version, spec.namespace)
    where = f"plugin {spec.name}, layer {spec.layer!r}"
    if creator is None:
        raise PluginError(
            "no creator is registered for it",
            where=where,
            expected=f"one called {spec.type!r}, version {spec.version!r}, "
            f"namespace {spec.namespace!r}",
            fix=registry.near(spec.type, spec.version, spec.namespace),
        )
    host = getattr(creator, "host", None)  # its objects live in another process
    if host is not None:
        layer: EnginePlugin = host.load(saved)
        return layer
    third = spec.generation == "V3"
    if third != isinstance(creator, IPluginCreatorV3One):
        raise PluginError(
            f"its creator {type(creator).__name__} is of another generation",
            where=where,
            expected="an IPluginCreatorV3One" if third else "an IPluginCreator",
        )
    with Rollback() as rollback:
        instances = []
        for data in saved.data:
            for attribute in ("plugin_version", "plugin_namespace"):
                value = getattr(creator, attribute, None)
                record("load", spec.layer, creator, attribute, (), value, perf_counter())
            method = "create_plugin" if third else "deserialize_plugin"
            more = (TensorRTPhase.RUNTIME,) if third else ()
            made = call_creator(creator, "load", spec.layer, method, spec.layer, data, *more)
            kind = V3Instance if third else Instance
            instances.append(rollback.add(kind(made, spec.layer, spec.name)))
            _check_class(made, spec, method, where)
        engine = _engine(spec, instances)
        rollback.keep()
    if isinstance(engine, V3Engine):
        try:
            engine.tell_tactics()
        except PluginError:
            engine.close()
            raise
    return engine


def _engine(spec: EngineSpec, instances: list[Instance]) -> EnginePlugin:
    if spec.generation == "V3":
        return V3Engine(spec, instances)
    if spec.generation == "V2DynamicExt":
        return DynamicEngine(spec, instances, loaded=True)
    return BatchedEngine(spec, instances, loaded=True)


def _check_class(made: Any, spec: EngineSpec, method: str, where: str) -> None:
    wanted = {"V3": IPluginV3, "V2DynamicExt": IPluginV2DynamicExt}.get(spec.generation, IPluginV2)
    if not isinstance(made, wanted):
        raise PluginError(
            f"{method} returned a {type(made).__name__}",
            where=where,
            expected=f"an I{'Plugin' + spec.generation}",
        )
