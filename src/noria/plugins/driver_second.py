"""The common part of the life cycles of the version-2 line.

One engine-level object per profile, each serialised apart; `initialize` and `terminate` once for
each of them, never for clones of networks and contexts. Source: tensorrt-plugins spec 2.1, 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from noria._core.text import quoted
from noria.plugins import checks
from noria.plugins.base import IPluginV2DynamicExt, IPluginV2Ext
from noria.plugins.calls import Instance, Rollback
from noria.plugins.context import ContextPlugin
from noria.plugins.layer import EnginePlugin, EngineSpec, LayerPlugin, SavedPlugin
from noria.plugins.negotiate import canonical
from noria.plugins.trace import Phase
from noria.plugins.types import DataType


class SecondContext(ContextPlugin):
    """See `ContextPlugin`."""

    def _free(self) -> None:
        for instance in self.instances:
            if _attaches(instance):
                instance.quietly("destroy", "detach_from_context")
            instance.destroy()


class SecondEngine(EnginePlugin):
    """See `EnginePlugin`.

    Args:
        base: what the objects were cloned from; it ends when they are ready.
        loaded: they come out of a plan.
    """

    context_class: ClassVar[type[SecondContext]]

    def __init__(
        self,
        spec: EngineSpec,
        instances: Sequence[Instance],
        *,
        base: Instance | None = None,
        loaded: bool = False,
    ) -> None:
        super().__init__(spec, instances)
        self._base = base
        self._phase: Phase = "load" if loaded else "build"
        self._ready: list[Instance] = []

    def finish(self) -> None:
        for instance in self.instances:
            checks.status_of(instance, self._phase, "initialize")
            self._ready.append(instance)
        if self._base is not None:
            self._base.destroy("build")

    def save(self) -> SavedPlugin:
        return SavedPlugin(self.spec, tuple(_serialized(e) for e in self.instances))

    def context(self) -> SecondContext:
        with Rollback() as rollback:
            clones = [rollback.add(e.clone("run")) for e in self.instances]
            for clone in clones:
                if _attaches(clone):
                    clone.call("run", "attach_to_context", None, None, None)
                    rollback.detach(clone)
            made = self.context_class(self.spec, clones)
            rollback.keep()
        return made

    def _free(self) -> None:
        for instance in self.instances:
            if instance in self._ready:
                instance.quietly("destroy", "terminate")
            instance.destroy()
        if self._base is not None:
            self._base.destroy()


def read_names(layer: LayerPlugin, user: Instance) -> None:
    """Type, version and namespace of a plugin, checked."""
    text = checks.as_text
    layer.type = text(user, "plugin_type", user.get("parse", "plugin_type"))
    copy = layer.instance
    layer.version = text(copy, "plugin_version", getattr(copy.plugin, "plugin_version", None))
    layer.namespace = text(
        copy, "plugin_namespace", getattr(copy.plugin, "plugin_namespace", None), empty=True
    )
    copy.name = quoted(f"{layer.type} version {layer.version}", limit=None)


def told_types(
    instance: Instance, phase: Phase, method: str, count: int, input_types: Sequence[DataType]
) -> tuple[DataType, ...]:
    """Types of the outputs, asked one by one."""
    asked = [canonical(t) for t in input_types]
    return tuple(
        checks.as_type(instance, method, instance.call(phase, method, i, asked))
        for i in range(count)
    )


def _attaches(instance: Instance) -> bool:
    return isinstance(instance.plugin, IPluginV2Ext | IPluginV2DynamicExt)


def _serialized(instance: Instance) -> bytes:
    """The blob of a plugin."""
    for attribute in ("plugin_type", "plugin_version", "plugin_namespace"):
        instance.get("save", attribute)
    if hasattr(instance.plugin, "get_serialization_size"):
        size = instance.call("save", "get_serialization_size")
    else:
        size = instance.get("save", "serialization_size")
    size = checks.as_size(instance, "get_serialization_size", size)
    return checks.as_blob(instance, "serialize", instance.call("save", "serialize"), size)
