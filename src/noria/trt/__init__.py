"""A module shaped like Python's `tensorrt`, on the CPU: `import noria.trt as trt`.

Scripts that say `import tensorrt as trt` run unchanged under `noria exec script.py`. Names are
the union of TensorRT 8.6, 10 and 11; `noria.trt.release` hides what one release lacks. Device
pointers are addresses of host memory: `array_at(address, shape, dtype)` views one as an array.
Those of a GPU that the process uses are taken, too; what is there is copied. Names resolve on first
use. Source: tensorrt-api spec.
"""

from __future__ import annotations

import importlib
from typing import Any

from noria.plugins.memory import address_of as address_of
from noria.plugins.memory import array_at as array_at
from noria.trt import release
from noria.trt.exports import MODULES, SPANS

_WHERE = {name: module for module, names in MODULES.items() for name in names.split()}
_ENUMS = ("LayerType", "BuilderFlag", "NetworkDefinitionCreationFlag", "PreviewFeature",
          "TacticSource")  # fmt: skip
_ALIASES = ("float32", "float16", "bfloat16", "int8", "int32", "int64", "bool", "uint8", "fp8",
            "int4", "fp4")  # fmt: skip
_OLD_NAMES = {"PluginFormat": "TensorFormat", "ResizeMode": "InterpolationMode",
              "SliceMode": "SampleMode"}  # fmt: skip


def _shown() -> list[str]:
    number = release.current().number
    names = [*_WHERE, *_ENUMS, *_ALIASES, *_OLD_NAMES]
    names += ["init_libnvinfer_plugins", "get_builder_plugin_registry"]
    return sorted(n for n in names if SPANS.get(n, release.Span()).has(number))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return release.current().version
    if name == "__all__":
        return _shown()
    span = SPANS.get(name)
    if span is not None and not span.has(release.current().number):
        raise AttributeError(
            f"module 'tensorrt' has no attribute {name!r} in TensorRT {release.current().version}"
        )
    if name in _ENUMS:
        from noria.trt.api.versioned_enums import enum_class

        return enum_class(name)
    if name in _ALIASES:
        from noria.trt.api.types import DATA_TYPES

        return DATA_TYPES[name]
    if name in _OLD_NAMES:
        return __getattr__(_OLD_NAMES[name])
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'tensorrt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_shown(), "__version__", "address_of", "array_at", "release"]


def init_libnvinfer_plugins(logger: Any = None, namespace: str = "") -> Any:
    """Register the standard plugins; True if they are there."""
    from noria.plugins.standard import init_libnvinfer_plugins as register

    return register(logger, namespace)


def get_builder_plugin_registry(capability: Any) -> Any:
    """The registry for an `EngineCapability`; None for those that are not there."""
    from noria.plugins.registry import get_plugin_registry

    return get_plugin_registry() if int(capability) == 0 else None
