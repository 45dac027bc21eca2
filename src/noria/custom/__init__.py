"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from noria.custom.library import CustomLibrary, include_dir, open_library
from noria.custom.validate import MAX_OBJECTS, CheckedParser, checked

__all__ = [
    "MAX_OBJECTS",
    "CheckedParser",
    "CustomLibrary",
    "checked",
    "include_dir",
    "open_library",
]
