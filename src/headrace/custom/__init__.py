"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.custom.compile.toolchain import include_dir
    from headrace.custom.library import open_library
    from headrace.custom.python_library import IModelParser
    from headrace.custom.user_calls import INPUT_INITIALIZER, InputInitializer
    from headrace.custom.validate import (
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
