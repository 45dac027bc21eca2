"""Creators of plugins of a library of another processor."""

from __future__ import annotations

from headrace.custom.emulated.messages import Reader
from headrace.custom.emulated.plugins import PluginLink
from headrace.plugins.base import IPluginCreator, IPluginCreatorV3One
from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from headrace.plugins.types import APILanguage, TensorRTPhase
from headrace.trt.host.forwarding import named_class

_MOST = 4096
"""As many creators, fields and refusals are read: the library's process wrote their numbers."""


class _Emulated:
    """A creator that an emulated program holds: its names and fields."""

    api_language = APILanguage.CPP

    def __init__(
        self, index: int, name: str, version: str, namespace: str, link: PluginLink, release: int
    ) -> None:
        super().__init__()
        self.name = name
        self.plugin_version = version
        self.plugin_namespace = namespace
        self.library = link.library
        self.release = release
        self.field_names = PluginFieldCollection([])
        self._index, self._link = index, link


class EmulatedCreator(_Emulated, IPluginCreator):
    """One of the V2 line."""

    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> object:
        """Let the creator make a plugin; None: it made none."""
        return self._link.create(self._index, name, field_collection, 0, third=False)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> object:
        """Let the creator make a plugin of its bytes; None: it made none."""
        return self._link.deserialize(self._index, name, bytes(serialized_plugin))


class EmulatedCreatorV3(_Emulated, IPluginCreatorV3One):
    """One of plugins of the third generation."""

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> object:
        """Let the creator make a plugin; None: it made none."""
        return self._link.create(self._index, name, field_collection, int(phase), third=True)


def read_creators(answer: Reader, link: PluginLink) -> list[EmulatedCreator | EmulatedCreatorV3]:
    """Read the creators that the emulated program lists."""
    types = {int(kind): kind for kind in PluginFieldType}

    def numbers() -> range:
        return range(min(answer.numbers("I")[0], _MOST))

    creators: list[EmulatedCreator | EmulatedCreatorV3] = []
    for index in numbers():
        of, name, version, namespace = (answer.name() for _ in range(4))
        third, release = answer.numbers("II")
        kind: type[EmulatedCreator | EmulatedCreatorV3]
        kind = EmulatedCreatorV3 if third else EmulatedCreator
        creator = named_class(kind, of or f"{name}Creator")(
            index, name, version, namespace, link, release
        )
        fields = []
        for _ in numbers():
            field, (number,) = answer.name(), answer.numbers("i")
            fields.append(PluginField(field, None, types.get(number, PluginFieldType.UNKNOWN)))
        creator.field_names = PluginFieldCollection(fields)
        creators.append(creator)
    return creators
