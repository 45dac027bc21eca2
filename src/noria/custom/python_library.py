"""Python modules as custom libraries."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from noria.custom.inputs import (
    INITIALIZER_SIGNATURE,
    INPUT_INITIALIZER,
    InputInitializer,
    checked_initializer,
)
from noria.custom.names import missing_name_hints
from noria.custom.user_code import describe
from noria.custom.validate import CheckedParser
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation
from noria.errors import CustomLibraryError
from noria.notices import Notice

__all__ = ["PythonLibrary"]

_importing = threading.RLock()  # sys.path and sys.modules are everybody's


class PythonLibrary:
    """The module that `custom-lib-path=my_parser.py` names.

    The file is run anew by every `PythonLibrary`. While it runs, its folder comes first on the
    import path, so it may import its siblings; afterwards they are only known to it, so that two
    parsers in two folders may each have a `utils.py`.

    Raises:
        CustomLibraryError: the file cannot be parsed or raises while it is imported.
    """

    kind: Literal["cpp", "python"] = "python"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decisions: list[Notice] = []
        self._module = _import_file(path)

    def __repr__(self) -> str:
        return f"PythonLibrary({str(self.path)!r})"

    def symbols(self) -> list[str]:
        """Public functions of the module that could be called as a parser, sorted."""
        return sorted(
            name
            for name, value in vars(self._module).items()
            if not name.startswith("_") and _is_parser_like(value, self._module.__name__)
        )

    def bbox_parser(self, name: str) -> CheckedParser:
        """The function `name(layers, network, params) -> Detections`, its results checked.

        Raises:
            CustomLibraryError: there is no such function, or it does not take three arguments.
        """
        return CheckedParser(*self._parser(name, "Detections"))

    def instance_parser(self, name: str) -> CheckedParser:
        """The same function type as `bbox_parser`; its Detections have masks."""
        return self.bbox_parser(name)

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """The function `name(layers, network, params) -> Classification`, its results checked.

        Raises:
            CustomLibraryError: there is no such function, or it does not take three arguments.
        """
        return CheckedClassifier(*self._parser(name, "Classification"))

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """The function `name(layers, network, params) -> Segmentation`, its results checked.

        Raises:
            CustomLibraryError: there is no such function, or it does not take three arguments.
        """
        return CheckedSegmentation(*self._parser(name, "Segmentation"))

    def input_initializer(self) -> InputInitializer | None:
        """The function `NvDsInferInitializeInputLayers(layers, network, max_batch)`, if any.

        Raises:
            CustomLibraryError: it does not take three arguments.
        """
        function = getattr(self._module, INPUT_INITIALIZER, None)
        if function is None:
            return None
        where = f"{self.path}: {INPUT_INITIALIZER}"
        _require_function(function, INPUT_INITIALIZER, where, INITIALIZER_SIGNATURE)
        return checked_initializer(function, where, self.path.parent)

    def _parser(self, name: str, result: str) -> tuple[Callable[..., Any], str, Path]:
        where = f"{self.path}: {name}"
        signature = f"def {name}(layers, network, params) -> {result}"
        function = getattr(self._module, name, None) if name.isidentifier() else None
        if function is None:
            raise CustomLibraryError(
                f"there is no function {name!r}",
                where=str(self.path),
                expected=signature,
                fix=missing_name_hints(name, self.symbols(), kind="parser-like functions"),
            )
        _require_function(function, name, where, signature)
        return function, where, self.path.parent


def _is_parser_like(value: Any, module: str) -> bool:
    return (
        inspect.isfunction(value)
        and value.__module__ == module
        and value.__name__ != INPUT_INITIALIZER
        and _signature_error(value) is None
    )


def _require_function(function: Any, name: str, where: str, expected: str) -> None:
    if not callable(function):
        raise CustomLibraryError(
            f"{name} is a {type(function).__name__}, not a function", where=where, expected=expected
        )
    if inspect.isclass(function):
        raise CustomLibraryError(
            f"{name} is a class",
            where=where,
            expected=expected,
            fix=f"give the module an instance that can be called: parse = {name}()",
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        kind = "generator" if inspect.isgeneratorfunction(function) else "coroutine"
        raise CustomLibraryError(
            f"{name} is a {kind} function: calling it gives no result",
            where=where,
            expected=expected,
        )
    if problem := _signature_error(function):
        raise CustomLibraryError(problem, where=where, expected=expected)


def _signature_error(function: Callable[..., Any]) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # compiled code without a signature: the call will tell
    try:
        signature.bind(None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        return f"{name}{signature} cannot be called with three arguments: {error}"
    return None


def _import_file(path: Path) -> ModuleType:
    digest = hashlib.sha1(str(path).encode(), usedforsecurity=False).hexdigest()[:10]
    name = f"noria_user_{path.stem}_{digest}"
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
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if before is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = before
            raise _import_failed(error, path) from error
    return module


def _import_failed(error: BaseException, path: Path) -> CustomLibraryError:
    found, line, trail = describe(error, path.parent)
    if isinstance(error, SystemExit):
        found = f"the module ended the program while it was imported (exit code {error.code})"
    fix = trail
    if isinstance(error, ModuleNotFoundError) and error.name:
        fix = [
            *trail,
            f"{error.name} is neither beside {path.name} nor installed for {sys.executable}",
        ]
    return CustomLibraryError(found, where=line or str(path), fix=fix)


@contextmanager
def _siblings_importable(folder: Path) -> Iterator[None]:
    """`folder` first on the import path; its modules do not stay in `sys.modules`.

    The working directory stays what it was, too: outputs are named relative to it.
    """
    siblings = _sibling_names(folder)
    hidden = {
        name: module
        for name, module in sys.modules.items()
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
