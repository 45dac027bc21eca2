"""Files of plugins that are loaded, and the one that is being loaded.

Light on purpose: most Python files that `custom-lib-path` names have a parser and no plugin, and
need none of the classes that plugins are made of.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

from headrace._core.files import hash_file

PYTHON_SUFFIXES = (".py", ".pyw")
_OWN_CODE = Path(__file__).parents[1]
FUNCTIONS = ("get_plugin_creators", "getPluginCreators")

_loaded: dict[Path, tuple[int, int]] = {}
"""Files with registered plugins -> time of their last change, size."""
_opened: dict[Path, tuple[int, int]] = {}
_loading: ContextVar[Path | None] = ContextVar("headrace_loading", default=None)
_serving: ContextVar[Path | None] = ContextVar("headrace_serving", default=None)


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


@contextmanager
def serving(path: Path | None) -> Iterator[None]:
    """Let the plugins of `path` go before others in models that are built meanwhile."""
    token = _serving.set(path)
    try:
        yield
    finally:
        _serving.reset(token)


def file_being_served() -> Path | None:
    """The file of the innermost `serving`; None outside."""
    return _serving.get()


def is_loaded(path: Path) -> bool:
    """Whether the plugins of a file are registered as it stands."""
    path = path.absolute()
    return _loaded.get(path) == _stamp(path)


def note_loaded(path: Path) -> None:
    """Remember that the plugins of a file are registered as it stands."""
    path = path.absolute()
    _loaded[path] = _stamp(path)


def note_opened(path: Path) -> bool:
    """Remember that a file is opened for its plugins, whether any is in it or not.

    Returns:
        False if it was opened before, as it stands.
    """
    stamp = _stamp(path)
    known, _opened[path.absolute()] = _opened.get(path.absolute()), stamp
    return known != stamp


def loaded_files() -> list[Path]:
    """Files that were loaded, whether plugins were in them or not."""
    return list(_opened | _loaded)


def may_have_creators(module: ModuleType) -> bool:
    """Whether creators can be in a module: their base class is imported, or it has `FUNCTIONS`."""
    named = any(hasattr(module, name) for name in FUNCTIONS)
    return named or "headrace.plugins.base" in sys.modules


def code_of(creator: object) -> str:
    """Hash the file that a creator is written in, of a compiled one its library.

    Returns:
        sha256; empty if the file is headrace's, or unknown.
    """
    library = getattr(creator, "library", None)  # of C++, here or in a worker
    definition = getattr(creator, "definition", None)  # plugins by decorators
    try:
        if isinstance(library, str) and library:
            return hash_file(library).sha256
        file = inspect.getsourcefile(getattr(definition, "describe", type(creator)))
        if file is None or Path(file).is_relative_to(_OWN_CODE):
            return ""
        return hash_file(file).sha256
    except (TypeError, OSError):
        return ""


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
