"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.custom.compile.toolchain import include_dir
    from noria.custom.inputs import INPUT_INITIALIZER, InputInitializer
    from noria.custom.library import open_library
    from noria.custom.opening import CustomLibrary
    from noria.custom.python_library import IModelParser
    from noria.custom.validate import MAX_OBJECTS, CheckedParser, checked
    from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".inputs": "INPUT_INITIALIZER InputInitializer",
            ".library": "open_library",
            ".opening": "CustomLibrary",
            ".python_library": "IModelParser",
            ".compile.toolchain": "include_dir",
            ".validate": "MAX_OBJECTS CheckedParser checked",
            ".validate_maps": "CheckedClassifier CheckedSegmentation",
        },
    )

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
