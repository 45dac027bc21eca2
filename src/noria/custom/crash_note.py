"""What a program says when a library that runs in its own process ends it by a signal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noria import _native
from noria._core.errors import CustomLibraryError

_noting = False
_loaded: dict[Path, str] = {}  # -> why it is in this process


@contextmanager
def crashes_are_noted() -> Iterator[None]:
    """Have libraries noted that are loaded into this process in the block: for programs of the
    command line, whose signals nobody else handles.
    """
    global _noting
    before, _noting = _noting, True
    try:
        yield
    finally:
        _noting = before


def note_loading(path: Path) -> None:
    """A C++ library is going to be loaded into this process: handlers of its own come after."""
    if not _noting:
        return
    from noria.custom.guard.limit import debugged

    if debugged():  # it shows more, and each fault would stop there twice
        return
    _loaded[path] = "which is trusted" if _is_trusted(path) else "which is not guarded"
    names = " and ".join(f"{path}, {why}," for path, why in _loaded.items())
    one = len(_loaded) == 1
    _native.note_crashes(
        f"this process has loaded {names.rstrip(',')}\n"
        f"  if {'it' if one else 'one of them'} crashed: --guard always runs "
        f"{'it' if one else 'them'} in a worker process, and tells in which function and line"
    )


def _is_trusted(path: Path) -> bool:
    from noria.custom.guard.trust import TrustStore, content_hash

    try:
        return TrustStore().get(content_hash(path)) is not None
    except CustomLibraryError:
        return False
