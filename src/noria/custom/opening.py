"""Users' libraries, opened in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.custom.inputs import InputInitializer
from noria.custom.load_errors import compile_command
from noria.custom.validate import CheckedParser
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation

PYTHON_SUFFIXES = (".py", ".pyw")
CPP_SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hpp")


class CustomLibrary(Protocol):
    """A user's library, opened.

    Attributes:
        path: the file, absolute.
        kind: `cpp` or `python`.
        decisions: notices about it (box layout, dropped angles); grows while parsers run.
    """

    path: Path
    kind: Literal["cpp", "python"]
    decisions: list[Notice]

    def symbols(self) -> Sequence[str]:
        """List names in it that may be parsers, sorted."""
        ...

    def bbox_parser(self, name: str) -> CheckedParser:
        """Get the detector parser of that name (`parse-bbox-func-name`).

        The result's values are checked on every call; see `noria.custom.user_calls`.

        Raises:
            CustomLibraryError: there is no such function, or it cannot be a detector parser.
        """
        ...

    def instance_parser(self, name: str) -> CheckedParser:
        """Get the instance parser of that name (`parse-bbox-instance-mask-func-name`).

        Its Detections have masks. Checked and raising as `bbox_parser`.
        """
        ...

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """Get the classifier parser of that name (`parse-classifier-func-name`), likewise."""
        ...

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """Get the segmentation parser of that name (`parse-segmentation-func-name`), likewise."""
        ...

    def input_initializer(self) -> InputInitializer | None:
        """Get its function `NvDsInferInitializeInputLayers`; None if it has none."""
        ...


def library_file(path: str | Path, abi: str) -> Path:
    """Return the absolute path of a library that may be opened.

    Raises:
        CustomLibraryError: there is no such file, it is source code, or `abi` is no box layout.
    """
    if abi not in ("auto", "24", "28"):
        raise CustomLibraryError(
            f"abi={abi!r} is not a box layout", expected="'auto', '24' or '28' (bytes)"
        )
    path = Path(path).absolute()
    if not path.exists():
        raise CustomLibraryError(
            "the custom library does not exist",
            where=str(path),
            fix="custom-lib-path is relative to the folder of the config file",
        )
    if not path.is_file():
        raise CustomLibraryError(
            "the custom library is not a file",
            where=str(path),
            expected="a shared library (.so) or a Python file (.py)",
        )
    if path.suffix.lower() in CPP_SOURCE_SUFFIXES:
        raise CustomLibraryError(
            "the custom library is C++ source, not a compiled library",
            where=str(path),
            fix=f"compile it: {compile_command(path.name)}",
        )
    return path


def open_here(
    path: str | Path, *, abi: str = "auto", rotation: bool | None = None
) -> CustomLibrary:
    """Load a user's library into this process; arguments and errors as `open_library` has them."""
    path = library_file(path, abi)
    if path.suffix.lower() in PYTHON_SUFFIXES:
        from noria.custom.python_library import PythonLibrary

        return PythonLibrary(path)
    from noria.custom.cpp_library import CppLibrary

    return CppLibrary(path, abi=abi, rotation=rotation)
