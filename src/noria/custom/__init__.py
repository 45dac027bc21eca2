"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.custom.inputs import INPUT_INITIALIZER, InputInitializer
    from noria.custom.library import CustomLibrary, include_dir, open_library
    from noria.custom.model_parser import IModelParser
    from noria.custom.validate import MAX_OBJECTS, CheckedParser, checked
    from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation

# Public name -> module; resolved on first use: compiling and reading libraries needs no arrays.
_LAZY = {
    "INPUT_INITIALIZER": "noria.custom.inputs",
    "InputInitializer": "noria.custom.inputs",
    "CustomLibrary": "noria.custom.library",
    "include_dir": "noria.custom.toolchain",
    "open_library": "noria.custom.library",
    "IModelParser": "noria.custom.model_parser",
    "MAX_OBJECTS": "noria.custom.validate",
    "CheckedParser": "noria.custom.validate",
    "checked": "noria.custom.validate",
    "CheckedClassifier": "noria.custom.validate_maps",
    "CheckedSegmentation": "noria.custom.validate_maps",
}

__all__ = [
    "INPUT_INITIALIZER",
    "MAX_OBJECTS",
    "CheckedClassifier",
    "CheckedParser",
    "CheckedSegmentation",
    "CustomLibrary",
    "IModelParser",
    "InputInitializer",
    "checked",
    "include_dir",
    "open_library",
]

# A module has the name of a function, too. It is loaded now, so that no later import puts it here.
importlib.import_module("noria.custom.checked")
del globals()["checked"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'noria.custom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
