"""The user's Python files: run under names of their own, errors reported by file and line."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from headrace._core.errors import CustomLibraryError
from headrace._core.files import sha256_of
from headrace._core.text import error_text

_importing = threading.RLock()  # sys.path and sys.modules are everybody's
SHOWN = 4
_OWN_CODE = Path(__file__).parents[1]


def user_frames(trace: TracebackType | None, folder: Path) -> list[traceback.FrameSummary]:
    """The calls in `trace` that are in the user's files below `folder`, outermost first."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if Path(frame.filename).is_relative_to(folder)
        and not Path(frame.filename).is_relative_to(_OWN_CODE)
        and "site-packages" not in Path(frame.filename).relative_to(folder).parts
    ]


def describe(error: BaseException, folder: Path) -> tuple[str, str | None, list[str]]:
    """Return the error in words, `file:line` in the user's code, and the user's lines above it."""
    message = error_text(error)
    if isinstance(error, SyntaxError) and error.filename:
        lines = [error.text.strip()] if error.text else []
        return f"{type(error).__name__}: {error.msg}", f"{error.filename}:{error.lineno}", lines
    frames = user_frames(error.__traceback__, folder)
    if not frames:
        return message, None, []
    last = frames[-1]
    hints = [f"{Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in frames[-SHOWN:]]
    return message, f"{last.filename}:{last.lineno}", hints


def is_interrupt(error: BaseException) -> bool:
    """Return whether `error` may be a real Ctrl-C.

    Python interrupts the main thread alone, and a worker of a guarded library ignores the signal:
    elsewhere the code itself raised it.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )


def import_file(path: Path) -> ModuleType:
    """Run the file anew and give its module.

    While it runs, its folder comes first on the import path, so it may import its siblings;
    afterwards they are only known to it, so that two files in two folders may each have a
    `utils.py`.
    """
    digest = sha256_of(str(path).encode())[:10]
    name = f"headrace_user_{path.stem}_{digest}"
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with _importing, _siblings_importable(path.parent):
        before = sys.modules.get(name)
        sys.modules[name] = module  # dataclasses and pickle look their module up
        try:
            # Not exec_module: a cached .pyc is taken for current if the file was changed within a
            # second without changing its length.
            code = loader.source_to_code(loader.get_data(str(path)), str(path))
            exec(code, module.__dict__)
        except BaseException as error:
            if is_interrupt(error):
                raise
            if before is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = before
            raise _import_failed(error, path) from error
    return module


def _import_failed(error: BaseException, path: Path) -> CustomLibraryError:
    message, line, trail = describe(error, path.parent)
    if isinstance(error, SystemExit):
        message = f"the module ended the program while it was imported (exit code {error.code})"
    fix = trail
    if isinstance(error, ModuleNotFoundError) and error.name == "tensorrt":
        fix = [*trail, "write: import headrace.trt as trt"]
    elif isinstance(error, ModuleNotFoundError) and error.name:
        fix = [
            *trail,
            f"{error.name} is neither beside {path.name} nor installed for {sys.executable}",
        ]
    return CustomLibraryError(message, where=line or str(path), fix=fix)


@contextmanager
def _siblings_importable(folder: Path) -> Iterator[None]:
    """`folder` first on the import path; its modules do not stay in `sys.modules`.

    The working directory stays what it was, too: outputs are named relative to it.
    """
    siblings = _sibling_names(folder)
    # other threads import, too
    imported = sys.modules.copy() if siblings & sys.modules.keys() else {}
    hidden = {
        name: module
        for name, module in imported.items()
        if name.partition(".")[0] in siblings and not _is_below(module, folder)
    }
    for name in hidden:
        del sys.modules[name]
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    here = _working_directory()
    try:
        yield
    finally:
        if here is not None and here != _working_directory():
            with suppress(OSError):
                os.chdir(here)
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in siblings:
                del sys.modules[name]
        sys.modules.update(hidden)


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _sibling_names(folder: Path) -> set[str]:
    """Modules and packages directly in `folder` that could be meant by an import there."""
    names = {p.stem for p in folder.glob("*.py")} | {
        p.parent.name for p in folder.glob("*/__init__.py")
    }
    return names - set(sys.stdlib_module_names) - {__name__.partition(".")[0], "__main__"}


def _is_below(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder)
