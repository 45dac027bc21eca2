"""Users' libraries: opened in this process, or in a worker process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.text import shortened
from headrace.config.library_sources import build_command
from headrace.custom.guard.options import GuardMode, GuardOptions
from headrace.custom.validate import CustomLibrary
from headrace.plugins.loading import PYTHON_SUFFIXES

CPP_SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hpp")


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
        command = build_command(path)
        raise CustomLibraryError(
            "the custom library does not exist",
            where=str(path),
            fix="custom-lib-path is relative to the folder of the config file"
            if command is None
            else f"compile it from the sources beside it: {command}",
            code="missing-file",
        )
    if not path.is_file():
        raise CustomLibraryError(
            "the custom library is not a file",
            where=str(path),
            expected="a shared library (.so) or a Python file (.py)",
        )
    if path.suffix.lower() in CPP_SOURCE_SUFFIXES:
        from headrace.custom.load_errors import compile_command

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
        from headrace.custom.python_library import PythonLibrary

        return PythonLibrary(path)
    from headrace.custom.cpp_library import CppLibrary

    return CppLibrary(path, abi=abi, rotation=rotation)


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
            `28` (9.0 and newer) or `auto`, which looks for evidence and reports it in `decisions`.
        rotation: whether `rotation_angle` of 28-byte boxes means something. None: only for
            functions known to set it, because most parsers leave it uninitialised.
        guard: `never`: in this process. `always`: in a worker process. `auto`: a C++ library that
            is not trusted yet in a worker process, any other here. `decisions` reports the choice.
        guard_options: limits of the worker process.

    Raises:
        CustomLibraryError: the file is missing, of the wrong kind or architecture, needs libraries
            that are not there, or its code fails while it is loaded.
    Source: custom-library spec 1.6, 2.1, 5.4.
    """
    path = library_file(path, abi)
    python = path.suffix.lower() in PYTHON_SUFFIXES
    guarded, notices = is_guarded(path, python, guard)
    if not guarded:
        library = open_here(path, abi=abi, rotation=rotation)
        library.decisions[:0] = notices
        return library
    from headrace.custom.guard.library import GuardedLibrary

    if not python:
        from headrace.custom.load_errors import check_header  # brings the readers of ELF files

        check_header(path)
    return GuardedLibrary(
        path,
        "python" if python else "cpp",
        abi=abi,
        rotation=rotation,
        guard=guard,
        options=guard_options or GuardOptions(),
    )


def unguarded(what: str, path: Path, guard: GuardMode) -> Finding:
    """Make the notice that part of a library runs in this process.

    Args:
        what: the part, and the reason.
        path: the library.
        guard: the mode that the user wants.

    Raises:
        CustomLibraryError: that is `always`, which allows nothing of the kind.
    """
    if guard == "always":
        raise CustomLibraryError(
            what,
            where=str(path),
            expected="with guard=always: code that a worker process can run",
            fix=[
                "guard=auto (custom-lib-guard=auto, --guard auto) runs it in this process",
                "or bring networks and plugins as a C++ library whose plugins have creators",
            ],
            code="not-guarded",
        )
    return Finding("not-guarded", "warning", what, str(path))


def is_guarded(path: Path, python: bool, guard: GuardMode) -> tuple[bool, list[Finding]]:
    """Decide whether a library runs in a worker process.

    Args:
        path: the library.
        python: it is a Python module.
        guard: the mode that the user wants.

    Returns:
        True for a worker process; notices about the reason, if it is False.

    Raises:
        CustomLibraryError: `always`, and there are no workers here.
    """
    if guard not in get_args(GuardMode):
        raise CustomLibraryError(
            f"guard={guard!r} is no way to guard a library", expected="auto, always or never"
        )
    if guard == "never" or (guard == "auto" and python):
        return False, []
    from headrace.custom.guard.keeper import can_guard
    from headrace.custom.guard.trust import TrustStore, content_hash

    if problem := can_guard():
        text = f"it cannot run in a worker process: {problem}"
        if guard == "always":
            raise CustomLibraryError(text, where=str(path), fix="guard=never runs it in this one")
        text += "; it runs in this one"
        return False, [Finding("not-guarded", "warning", text, str(path))]

    if guard == "auto" and (entry := TrustStore().get(content_hash(path))):
        text = f"it runs in this process: trusted since {entry.since} ({entry.why})"
        return False, [Finding("guard-used", "info", text, str(path))]
    return True, []


def parsers_in(path: Path) -> list[str]:
    """Functions of a library that are detector parsers, as far as they can be recognised."""
    from headrace.binary.elf import ElfError, ElfFile
    from headrace.binary.entry_points import entry_points
    from headrace.binary.symbol_names import LONGEST
    from headrace.custom.python_library import PythonLibrary

    try:
        if path.suffix.lower() in PYTHON_SUFFIXES:
            return PythonLibrary(path).symbols()
        points = entry_points(ElfFile.read(path))
    except (CustomLibraryError, ElfError, OSError):
        return []  # it is no help
    return [shortened(p.name, LONGEST) for p in points if p.kind == "detector" and not p.device]
