"""The plugins that come with TensorRT (libnvinfer_plugin), computed on the CPU.

Names, versions, fields and shapes are the original's; docs/standard-plugins.md has the table.

Start at `layer.py`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from headrace.plugins.registry import PluginRegistry, get_plugin_registry

if TYPE_CHECKING:
    from headrace.plugins.standard.layer import StandardLayer

__all__ = ["init_libnvinfer_plugins", "register_standard", "standard_layers"]

_FAMILIES = (
    "efficient_nms",
    "batched_nms",
    "priors",
    "elementwise",
    "data_movement",
    "roi",
    "proposals",
    "deformable",
    "pillars",
    "bert",
    "attention",
)


@functools.cache
def standard_layers() -> tuple[type[StandardLayer], ...]:
    """The class of each standard plugin: those of the families that have a name of their own."""
    from importlib import import_module

    from headrace.plugins.standard.layer import StandardLayer

    layers: list[type[StandardLayer]] = []
    for family in _FAMILIES:
        for layer in vars(import_module(f"{__name__}.{family}")).values():
            if not (isinstance(layer, type) and issubclass(layer, StandardLayer)):
                continue
            if "name" in vars(layer):
                layers.append(layer)
                for version, interface in vars(layer).get("later", ()):
                    more = {"version": version, "interface": interface, "__doc__": layer.__doc__}
                    layers.append(type(f"{layer.__name__}{version}", (layer,), more))
    return tuple(layers)


def register_standard(registry: PluginRegistry, namespace: str = "") -> None:
    """Register a creator of every standard plugin; one that is there already stays."""
    from headrace.plugins.standard.adapters import creator_of

    taken = {
        (c.name, c.plugin_version) for c in registry.all_creators if c.plugin_namespace == namespace
    }
    for layer in standard_layers():
        if (layer.name, layer.version) not in taken:
            registry.register_creator(creator_of(layer), namespace)


def init_libnvinfer_plugins(logger: Any = None, namespace: str = "") -> bool:
    """Register the standard plugins with the registry of this process; more than once is fine.

    Args:
        logger: taken for the original's sake.
        namespace: to register them in.
    """
    register_standard(get_plugin_registry(), namespace)
    return True
