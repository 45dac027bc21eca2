"""Whether a library runs in a worker process or in the application's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.custom.guard.options import GuardMode, GuardOptions

if TYPE_CHECKING:
    from noria.custom.guard.library import GuardedLibrary


def guarded_library(
    path: Path,
    python: bool,
    *,
    abi: str,
    rotation: bool | None,
    guard: GuardMode,
    options: GuardOptions | None = None,
) -> tuple[GuardedLibrary | None, list[Notice]]:
    """The library in a worker process, or None where it may run in this one, and why.

    Raises:
        CustomLibraryError: it cannot be loaded; or `always`, and there are no workers here.
    """
    guarded, notices = is_guarded(path, python, guard)
    if not guarded:
        return None, notices
    from noria.custom.guard.library import GuardedLibrary

    if not python:
        from noria.custom.library import compile_command
        from noria.custom.load_errors import check_header

        check_header(path, compile_command("parser.cpp"))
    library = GuardedLibrary(
        path,
        "python" if python else "cpp",
        abi=abi,
        rotation=rotation,
        guard=guard,
        options=options or GuardOptions(),
    )
    return library, []


def is_guarded(path: Path, python: bool, guard: GuardMode) -> tuple[bool, list[Notice]]:
    """Whether a library is to run in a worker process, and why not, where that is worth a word.

    Raises:
        CustomLibraryError: `always`, and there are no workers here.
    """
    if guard not in get_args(GuardMode):
        raise CustomLibraryError(
            f"guard={guard!r} is no way to guard a library", expected="auto, always or never"
        )
    if guard == "never" or (guard == "auto" and python):
        return False, []
    from noria.custom.guard.keeper import can_guard

    if problem := can_guard():
        text = f"it cannot run in a worker process: {problem}"
        if guard == "always":
            raise CustomLibraryError(text, where=str(path), fix="guard=never runs it in this one")
        return False, [Notice("warning", f"{text}; it runs in this one", str(path))]
    if guard == "auto" and (notice := _trusted(path)):
        return False, [notice]
    return True, []


def _trusted(path: Path) -> Notice | None:
    from noria.custom.guard.trust import TrustStore, content_hash

    entry = TrustStore().get(content_hash(path))
    if entry is None:
        return None
    text = f"it runs in this process: trusted since {entry.since} ({entry.why})"
    return Notice("info", text, str(path))
