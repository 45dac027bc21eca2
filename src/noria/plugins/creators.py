"""Creators: they make plugins from fields, or from data of an engine.

Source: tensorrt-plugins spec 8.2.
"""

from __future__ import annotations

from typing import Any

from noria.plugins.base import missing
from noria.plugins.field_data import PluginFieldCollection
from noria.plugins.types import APILanguage, TensorRTPhase
from noria.plugins.v3 import InterfaceInfo


class IPluginCreatorInterface:
    """Base of all creators.

    Attributes:
        name, plugin_version, plugin_namespace: what the creator is found by; the registry sets the
            namespace.
        field_names: the fields it takes. Only names and types mean something.
    """

    api_language = APILanguage.PYTHON
    _info = InterfaceInfo("PLUGIN CREATOR", 1, 0)
    name: str
    plugin_version: str
    plugin_namespace: str = ""
    field_names: PluginFieldCollection

    def __init__(self) -> None:
        """Subclasses call it first, as in the original."""

    @property
    def interface_info(self) -> InterfaceInfo:
        """Kind and version of this interface."""
        return self._info


class IPluginCreator(IPluginCreatorInterface):
    """Creator of plugins of the version-2 line."""

    _info = InterfaceInfo("PLUGIN CREATOR_V1", 1, 0)

    def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> Any:
        """A plugin for the layer `name`; None is a failure."""
        raise missing(self, "create_plugin")

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        """Make a plugin from the bytes of `serialize`; None is a failure."""
        raise missing(self, "deserialize_plugin")


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Creator of plugins of version 3."""

    _info = InterfaceInfo("PLUGIN CREATOR_V3ONE", 1, 0)

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> Any:
        """A plugin for the layer `name`.

        Args:
            name: of the layer.
            field_collection: BUILD: what the network says; RUNTIME: what
                `get_fields_to_serialize` gave.
            phase: what the plugin is for.
        """
        raise missing(self, "create_plugin")
