"""Creators of plugins of a library of another processor: listed, and refused where one is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace._core.errors import PluginError
from headrace.custom.emulated.messages import Reader
from headrace.plugins.base import IPluginCreator, IPluginCreatorV3One
from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from headrace.plugins.types import APILanguage

_MOST = 4096
"""As many creators, fields and refusals are read: the library's process wrote their numbers."""


class _Emulated:
    """A creator that an emulated program holds: its names and fields."""

    api_language = APILanguage.CPP

    def __init__(self, name: str, version: str, namespace: str, library: str, release: int) -> None:
        super().__init__()
        self.name = name
        self.plugin_version = version
        self.plugin_namespace = namespace
        self.library = library
        self.release = release
        self.field_names = PluginFieldCollection([])

    def create_plugin(self, *_: Any) -> object:
        """Refuse: no plugin of another processor is driven."""
        file = Path(self.library).name
        raise PluginError(
            f"{self.name} is a plugin of {file}, which is built for another processor: an "
            "emulator lists such plugins, and runs none",
            code="library-machine",
            expected="plugins of libraries that are built for this machine",
            fix=[
                "compile its source on this machine: headrace compile",
                f"or let a file of the same plugins stand for it: --plugins {file}=FILE",
                "or run the model on a machine of that processor",
            ],
        )

    def deserialize_plugin(self, *_: Any) -> object:
        """Refuse, as `create_plugin`."""
        return self.create_plugin()


class EmulatedCreator(_Emulated, IPluginCreator):
    """One of the V2 line."""


class EmulatedCreatorV3(_Emulated, IPluginCreatorV3One):
    """One of plugins of the third generation."""


def read_creators(answer: Reader, library: str) -> list[EmulatedCreator | EmulatedCreatorV3]:
    """Read the creators that the emulated program lists."""
    types = {int(kind): kind for kind in PluginFieldType}

    def numbers() -> range:
        return range(min(answer.numbers("I")[0], _MOST))

    creators: list[EmulatedCreator | EmulatedCreatorV3] = []
    for _ in numbers():
        name, version, namespace = answer.text(), answer.text(), answer.text()
        third, release = answer.numbers("II")
        kind = EmulatedCreatorV3 if third else EmulatedCreator
        creator = kind(name, version, namespace, library, release)
        fields = []
        for _ in numbers():
            field, (number,) = answer.text(), answer.numbers("i")
            fields.append(PluginField(field, None, types.get(number, PluginFieldType.UNKNOWN)))
        creator.field_names = PluginFieldCollection(fields)
        creators.append(creator)
    return creators
