"""C++ plugin creators as Python creators, and the registry as C++ sees it.

Source: tensorrt-plugins spec 8.2, 9.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from noria.binary.gpu_code import forget, look_at
from noria.host.forwarding import Forwarding, fields_from, fields_to
from noria.plugins.base import IPluginCreator, IPluginCreatorV3One
from noria.plugins.field_data import PluginFieldCollection
from noria.plugins.registry import PluginRegistry
from noria.plugins.types import APILanguage, TensorRTPhase


class _Cpp(Forwarding):
    api_language = APILanguage.CPP

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        self.name = native.name()
        self.plugin_version = native.version()

    @property
    def plugin_namespace(self) -> str:
        return str(self.native.get_namespace())

    @plugin_namespace.setter
    def plugin_namespace(self, value: str) -> None:
        self.native.set_namespace(value)

    @property
    def field_names(self) -> PluginFieldCollection:
        return fields_from(self.native.field_names())


class _CppCreator(_Cpp, IPluginCreator):  # type: ignore[override]
    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> Any:
        return self.native.create(name, fields_to(field_collection), 0)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        return self.native.deserialize(name, bytes(serialized_plugin))


class _CppCreatorV3(_Cpp, IPluginCreatorV3One):  # type: ignore[override]
    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> Any:
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


def register(registry: PluginRegistry, given: Any, namespace: str) -> bool:
    """Add the creator that a library registers."""
    if isinstance(given, _Cpp):
        _loaded[given.native.address] = given.native.copy(keep=False)
        look_at(given.native.image, given.library)
    return registry.register_creator(given, namespace)


def deregister(registry: PluginRegistry, address: int) -> bool:
    """Remove the creator at `address`: its library is being unloaded."""
    if (gone := _loaded.pop(address, None)) is not None:
        forget(gone.image)
    known = _known.pop(address, None)
    return known is not None and registry.deregister_creator(known)


def image_of(registry: PluginRegistry, library: Path) -> int | None:
    """Address of the newest image of a library that has registered creators; None without one."""
    own = [c for c in registry.all_creators if isinstance(c, _Cpp) and c.library == str(library)]
    return int(own[-1].native.image) if own else None


def restore(registry: PluginRegistry, library: Path) -> None:
    """Register the creators of a library that was still loaded, and so did not register them."""
    held = {id(c) for c in registry.all_creators}
    for native in list(_loaded.values()):
        if native.library == str(library):
            made = creator(native.copy(keep=True))
            if id(made) not in held:
                registry.register_creator(made, "")


def forget_all(registry: PluginRegistry) -> None:
    """Remove all creators of C++ libraries."""
    for known in list(_known.values()):
        registry.deregister_creator(known)
    _loaded.clear()


def find(found: Any, caller: int) -> Any:
    """Unwrap a creator for C++ code at the address `caller`, if it is of the same library."""
    if isinstance(found, _Cpp) and found.native.is_of(caller):
        return found.native
    return found
