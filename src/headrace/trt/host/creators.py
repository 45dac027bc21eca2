"""C++ plugin creators as Python creators, and the registry as C++ sees it.

Source: tensorrt-plugins spec 8.2, 9.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from headrace._core.errors import PluginError
from headrace.binary.gpu_code import forget, look_at
from headrace.plugins.base import IPluginCreator, IPluginCreatorV3One
from headrace.plugins.drivers import for_this_engine
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.registry import PluginRegistry, get_plugin_registry
from headrace.plugins.types import APILanguage, TensorRTPhase
from headrace.trt.host.forwarding import Forwarding, fields_from, fields_to


class _Cpp(Forwarding):
    api_language = APILanguage.CPP

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        self.name = native.name()
        self.plugin_version = native.version()

    @staticmethod
    def _kind(native: Any) -> str:
        return f"{native.name()}Creator"

    @property
    def field_names(self) -> PluginFieldCollection:
        try:
            return fields_from(self.native.field_names())
        except ValueError as error:
            where, data = f"plugin creator of {self.native.name()}", {"method": "field_names"}
            raise PluginError(str(error), where=where, data=data) from None


class _CppCreator(_Cpp, IPluginCreator):  # type: ignore[override]
    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> object:
        return self.native.create(name, fields_to(field_collection), 0)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> object:
        return self.native.deserialize(name, bytes(serialized_plugin))


class _CppCreatorV3(_Cpp, IPluginCreatorV3One):  # type: ignore[override]
    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> object:
        return self.native.create(name, fields_to(field_collection), int(phase))


_known: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Address of the C++ object -> its wrapper, while that is held."""

_loaded: dict[int, Any] = {}
"""Address -> native creator that does not keep its library loaded; while the library is."""


def creator(native: Any) -> Any:
    """Wrap a native creator, in the same object as long as that is held."""
    known = _known.get(native.address)
    if known is None:
        kind = _CppCreatorV3 if native.third else _CppCreator
        known = _known[native.address] = kind.of(native)
    return known


def register(registry: PluginRegistry, creator: Any, namespace: str) -> bool:
    """Add the creator that a library registers."""
    if isinstance(creator, _Cpp):
        _loaded[creator.native.address] = creator.native.copy(keep=False)
        look_at(creator.native.image, creator.library)
    return registry.register_creator(creator, namespace)


def deregister(registry: PluginRegistry, address: int) -> bool:
    """Remove the creator at `address`: its library is being unloaded."""
    if (gone := _loaded.pop(address, None)) is not None:
        forget(gone.image)
    known = _known.pop(address, None)
    return known is not None and registry.deregister_creator(known)


def image_of(registry: PluginRegistry, library: Path) -> int | None:
    """Address of the newest image of a library that has registered creators; None without one."""
    own = [c for c in registry.creators_of(library) if isinstance(c, _Cpp)]
    return int(own[-1].native.image) if own else None


def restore(registry: PluginRegistry, library: str) -> None:
    """Register the creators of a library that was still loaded, and so did not register them.

    `library`: its name for the loader.
    """
    held = {id(c) for c in registry.all_creators}
    for native in list(_loaded.values()):
        if native.library == library:
            restored = creator(native.copy(keep=True))
            if id(restored) not in held:
                registry.register_creator(
                    restored, "" if native.third else restored.plugin_namespace
                )


def own(among: Iterable[object], caller: int) -> Any:
    """Find the first native creator of the library that the C++ code at `caller` is in."""
    natives = (c.native for c in among if isinstance(c, _Cpp))
    return next((native for native in natives if native.is_of(caller)), None)


def forget_all(registry: PluginRegistry) -> None:
    """Remove all creators of C++ libraries."""
    for known in list(_known.values()):
        registry.deregister_creator(known)
    _loaded.clear()


def find(creator: object, caller: int) -> object:
    """Unwrap a creator for C++ code at the address `caller`, if it is of the same library."""
    if isinstance(creator, _Cpp) and creator.native.is_of(caller):
        return creator.native
    return creator


TYPE = "IPlugin"
"""The type of C++ plugins from before IPluginV2, which have none of their own."""
GIVEN = "the factory of deserializeCudaEngine"


def with_namespace(plugin: Any, namespace: str) -> Any:
    """Set the namespace of a plugin without a type of its own: it is found again by that."""
    if plugin is not None and getattr(plugin, "plugin_type", None) == TYPE:
        plugin.plugin_namespace = namespace
    return plugin


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

    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> object:
        """Refuse: plugins of a factory have no fields to choose one by."""
        raise ValueError("plugins from before IPluginV2 are made by factories alone")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        """Let the factory make the layer of that name from its bytes."""
        native = for_this_engine(self.plugin_namespace or GIVEN, self.factory)
        plugin = native.deserialize(name, bytes(serialized_plugin))
        return with_namespace(plugin, self.plugin_namespace)


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
