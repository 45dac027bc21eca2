"""The user's own code: C++ libraries and Python modules that `custom-lib-path` names."""

from noria.custom.inputs import INPUT_INITIALIZER, InputInitializer
from noria.custom.library import CustomLibrary, include_dir, open_library
from noria.custom.model_parser import IModelParser
from noria.custom.validate import MAX_OBJECTS, CheckedParser, checked
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation

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
