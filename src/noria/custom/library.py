"""Opening what `custom-lib-path` names, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.custom.guard.options import GuardMode, GuardOptions
from noria.custom.inputs import InputInitializer
from noria.custom.validate import CheckedParser
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation

PYTHON_SUFFIXES = (".py", ".pyw")
CPP_SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hpp")


class CustomLibrary(Protocol):
    """A user's library, ready to be asked for parsers.

    Attributes:
        path: the file, absolute.
        kind: `cpp` or `python`.
        decisions: what was decided about it (box layout, dropped angles); grows while parsers run.
    """

    path: Path
    kind: Literal["cpp", "python"]
    decisions: list[Notice]

    def symbols(self) -> Sequence[str]:
        """Names in it that may be parsers, sorted."""
        ...

    def bbox_parser(self, name: str) -> CheckedParser:
        """The detector parser of that name (`parse-bbox-func-name`).

        The result's values are checked on every call; see `noria.custom.user_calls`.

        Raises:
            CustomLibraryError: there is no such function, or it cannot be a detector parser.
        """
        ...

    def instance_parser(self, name: str) -> CheckedParser:
        """The instance parser of that name (`parse-bbox-instance-mask-func-name`): its Detections
        have masks. Checked and raising as `bbox_parser`.
        """
        ...

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """The classifier parser of that name (`parse-classifier-func-name`), checked likewise."""
        ...

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """The segmentation parser of that name (`parse-segmentation-func-name`), likewise."""
        ...

    def input_initializer(self) -> InputInitializer | None:
        """The function `NvDsInferInitializeInputLayers` of the library, None if it has none."""
        ...


def open_library(
    path: str | Path,
    *,
    abi: str = "auto",
    rotation: bool | None = None,
    guard: GuardMode = "never",
    guard_options: GuardOptions | None = None,
) -> CustomLibrary:
    """Load a user's C++ shared library (`.so`) or Python module (`.py`).

    Its code runs in this process with this process's rights, as in the original, or in a worker
    process of its own, whose end does no harm here.

    Args:
        path: the file that `custom-lib-path` names.
        abi: bytes of one box that a C++ detector parser returns: `24` (generation 8.0 and older),
            `28` (9.0 and newer) or `auto`, which looks for evidence and says what it found.
        rotation: whether `rotation_angle` of 28-byte boxes means something. None: only for
            functions known to set it, because most parsers leave it uninitialised.
        guard: `never`: in this process. `always`: in a worker process. `auto`: a C++ library that
            is not trusted yet in a worker process, any other here. `decisions` says which.
        guard_options: limits of the worker process.

    Raises:
        CustomLibraryError: the file is missing, of the wrong kind or architecture, needs libraries
            that are not there, or its code fails while it is loaded.
    Source: custom-library spec 1.6, 2.1, 5.4.
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
    python = path.suffix.lower() in PYTHON_SUFFIXES
    if path.suffix.lower() in CPP_SOURCE_SUFFIXES:
        raise CustomLibraryError(
            "the custom library is C++ source, not a compiled library",
            where=str(path),
            fix=f"compile it: {compile_command(path.name)}",
        )
    library: CustomLibrary | None = None
    notices: list[Notice] = []
    if guard != "never":
        from noria.custom.guard.choice import guarded_library

        library, notices = guarded_library(
            path, python, abi=abi, rotation=rotation, guard=guard, options=guard_options
        )
    if library is None and python:
        from noria.custom.python_library import PythonLibrary

        library = PythonLibrary(path)
    elif library is None:
        from noria.custom.cpp_library import CppLibrary

        library = CppLibrary(path, abi=abi, rotation=rotation)
    library.decisions[:0] = notices
    return library


def compile_command(source: str) -> str:
    """How to compile a parser's source file."""
    return f"noria compile {source} -o lib{Path(source).stem}.so"
