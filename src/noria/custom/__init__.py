"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.custom.compile.toolchain import include_dir
    from noria.custom.library import open_library
    from noria.custom.python_library import IModelParser
    from noria.custom.user_calls import INPUT_INITIALIZER, InputInitializer
    from noria.custom.validate import (
        MAX_OBJECTS,
        CheckedClassifier,
        CheckedParser,
        CheckedSegmentation,
        CustomLibrary,
        checked,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".user_calls": "INPUT_INITIALIZER InputInitializer",
            ".library": "open_library",
            ".python_library": "IModelParser",
            ".compile.toolchain": "include_dir",
            ".validate": "MAX_OBJECTS CheckedClassifier CheckedParser CheckedSegmentation "
            "CustomLibrary checked",
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
