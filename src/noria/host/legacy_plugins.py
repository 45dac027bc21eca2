"""Plugins from before IPluginV2: they have no creators, only factories that know them by layer.

Source: custom-library spec 2.2, rows 9 to 11; tensorrt-plugins spec 4.3, 10.
"""

from __future__ import annotations

from typing import Any

from noria.plugins.base import IPluginCreator
from noria.plugins.drivers import for_this_engine
from noria.plugins.field_data import PluginFieldCollection
from noria.plugins.registry import get_plugin_registry

TYPE = "IPlugin"
"""The type of C++ plugins from before IPluginV2, which have none of their own."""
GIVEN = "the factory of deserializeCudaEngine"


def with_namespace(made: Any, namespace: str) -> Any:
    """Set the namespace of a plugin without a type of its own: it is found again by that."""
    if made is not None and getattr(made, "plugin_type", None) == TYPE:
        made.plugin_namespace = namespace
    return made


class LegacyCreator(IPluginCreator):
    """Stands in the registry for a runtime factory.

    Args:
        namespace: of the plugins' records in engines: the library's name.
        factory: gives the factory for the engine that is being loaded.
        library: the file.
    """

    def __init__(self, namespace: str, factory: Any, library: str = "") -> None:
        super().__init__()
        self.name = TYPE
        self.plugin_version = "1"
        self.plugin_namespace = namespace
        self.field_names = PluginFieldCollection([])
        self.library = library
        self.factory = factory

    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> Any:
        """Refuse: plugins of a factory have no fields to choose one by."""
        raise ValueError("plugins from before IPluginV2 are made by factories alone")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        """Let the factory make the layer of that name from its bytes."""
        native = for_this_engine(self.plugin_namespace or GIVEN, self.factory)
        made = native.deserialize(name, bytes(serialized_plugin))
        return with_namespace(made, self.plugin_namespace)


def register_given() -> None:
    """Register a creator for engines that C++ code loads with a factory of its own."""
    register_legacy(LegacyCreator("", _nothing_given))


def _nothing_given() -> Any:
    """Take the newest library's runtime factory, in the place of one that is given."""
    for creator in reversed(get_plugin_registry().all_creators):
        if isinstance(creator, LegacyCreator) and creator.library:
            return creator.factory()
    raise ValueError(
        "the engine has layers from before IPluginV2: load it with their factory, or export "
        "NvDsInferPluginFactoryRuntimeGet"
    )


def register_legacy(creator: LegacyCreator) -> None:
    """Register a creator in the place of the one of its name, version and namespace."""
    registry = get_plugin_registry()
    before = registry.find(creator.name, creator.plugin_version, creator.plugin_namespace)
    if before is not None:
        registry.deregister_creator(before)
    registry.register_creator(creator, creator.plugin_namespace)
