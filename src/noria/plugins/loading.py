"""Files of plugins that are loaded, and the one that is being loaded.

Light on purpose: most Python files that `custom-lib-path` names have a parser and no plugin, and
need none of the classes that plugins are made of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

PYTHON_SUFFIXES = (".py", ".pyw")
FUNCTIONS = ("get_plugin_creators", "getPluginCreators")

_loaded: dict[Path, tuple[int, int]] = {}
"""Files whose plugins are registered -> time of their last change, size."""
_loading: ContextVar[Path | None] = ContextVar("noria_loading", default=None)


@contextmanager
def loading(path: Path) -> Iterator[None]:
    """Creators that are registered meanwhile come from `path`."""
    token = _loading.set(path)
    try:
        yield
    finally:
        _loading.reset(token)


def file_being_loaded() -> Path | None:
    """The file of the innermost `loading`; None outside."""
    return _loading.get()


def is_loaded(path: Path) -> bool:
    """Whether the plugins of a file are registered as it stands."""
    path = path.absolute()
    return _loaded.get(path) == _stamp(path)


def note_loaded(path: Path) -> None:
    """Remember that the plugins of a file are registered as it stands."""
    path = path.absolute()
    _loaded[path] = _stamp(path)


def loaded_files() -> list[Path]:
    """Files that were loaded, whether plugins were in them or not."""
    return list(_loaded)


def may_have_creators(module: ModuleType) -> bool:
    """Whether creators can be in a module: their base class is imported, or it has `FUNCTIONS`."""
    named = any(hasattr(module, name) for name in FUNCTIONS)
    return named or "noria.plugins.base" in sys.modules


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
