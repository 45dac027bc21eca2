"""Choose the driver of a plugin, and load saved plugins.

The layers of one engine may share objects while it is loaded, such as their factory.
Source: custom-library spec 2.2, rows 9 to 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from headrace._core.errors import PluginError
from headrace.plugins.base import IPluginCreatorV3One, IPluginV2, IPluginV2DynamicExt, IPluginV3
from headrace.plugins.calls import Instance, Rollback, call_creator
from headrace.plugins.driver_dynamic import DYNAMIC, DynamicLayer
from headrace.plugins.driver_v2 import BATCHED, BatchedLayer
from headrace.plugins.driver_v3 import THIRD, V3Layer, set_loaded_tactics
from headrace.plugins.layer import (
    EnginePlugin,
    EngineSpec,
    Generation,
    LayerPlugin,
    Life,
    SavedPlugin,
)
from headrace.plugins.registry import PluginRegistry
from headrace.plugins.trace import record
from headrace.plugins.types import DataType, TensorRTPhase

T = TypeVar("T")
_open: ContextVar[dict[str, Any] | None] = ContextVar("headrace_deserialising", default=None)


@contextmanager
def deserialising(shared: dict[str, Any] | None = None) -> Iterator[None]:
    """Layers that are loaded meanwhile are of one engine. Within another one: of that.

    `for_this_engine` finds what is in `shared` already.
    """
    if _open.get() is not None:
        yield
        return
    token = _open.set(dict(shared or {}))
    try:
        yield
    finally:
        _open.reset(token)


def for_this_engine(key: str, make: Callable[[], T]) -> T:
    """Get the shared object of the engine being loaded; outside of that, make a new one."""
    held = _open.get()
    if held is None:
        return make()
    if key not in held:
        held[key] = make()
    shared: T = held[key]
    return shared


LIVES: dict[Generation, Life] = {
    "V2": BATCHED, "V2Ext": BATCHED, "V2IOExt": BATCHED, "V2DynamicExt": DYNAMIC, "V3": THIRD,
}  # fmt: skip


def add_layer(
    plugin: object,
    *,
    layer: str,
    input_types: Sequence[DataType],
    num_shape_inputs: int = 0,
    implicit_batch: bool = False,
) -> LayerPlugin:
    """Add a plugin to a network: the network keeps a clone, the object stays the caller's.

    `input_types` leaves shape inputs out. With `implicit_batch` the network's shapes leave the
    batch out (Caffe, UFF): `IPluginV2` is allowed only there.

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
    creator = registry.find(spec.type, spec.version, spec.namespace, spec.code)
    where = spec.where
    if creator is None:
        raise PluginError(
            "no creator is registered for it",
            where=where,
            expected=f"one called {spec.type!r}, version {spec.version!r}, "
            f"namespace {spec.namespace!r}",
            fix=registry.near(spec.type, spec.version, spec.namespace),
            data={"clause": "names"},
        )
    host = getattr(creator, "host", None)  # its objects live in another process
    if host is not None:
        layer: EnginePlugin = host.load(saved)
        return layer
    life = LIVES[spec.generation]
    third = life is THIRD
    if third != isinstance(creator, IPluginCreatorV3One):
        raise PluginError(
            f"its creator {type(creator).__name__} is of another generation",
            where=where,
            expected="an IPluginCreatorV3One" if third else "an IPluginCreator",
        )
    more = (TensorRTPhase.RUNTIME,) if third else ()
    with Rollback() as rollback:
        instances = []
        for data in saved.data:
            for attribute in ("plugin_version", "plugin_namespace"):
                value = getattr(creator, attribute, None)
                record(("load", spec.layer, creator, attribute, ()), value, perf_counter())
            plugin = call_creator(
                creator, "load", spec.layer, life.restore, spec.layer, data, *more
            )
            instances.append(rollback.add(Instance(plugin, spec.layer, spec.name)))
            if not isinstance(plugin, life.plugin):
                raise PluginError(
                    f"{life.restore} returned a {type(plugin).__name__}",
                    where=where,
                    expected=f"an IPlugin{spec.generation}",
                )
        if third:
            set_loaded_tactics(spec, instances)
        rollback.keep()
    return EnginePlugin(spec, instances, life, phase="load")
