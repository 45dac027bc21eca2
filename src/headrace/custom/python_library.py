"""Python modules as custom libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.user_module import import_file
from headrace.binary.symbol_names import missing_name_hints
from headrace.custom.user_calls import (
    INITIALIZER_SIGNATURE,
    INPUT_INITIALIZER,
    InputInitializer,
    ParserKind,
    checked_initializer,
)
from headrace.custom.validate import CustomLibrary, UserParser
from headrace.plugins.loading import loading, may_have_creators, note_loaded

_RESULTS: dict[ParserKind, str] = {
    "bbox": "Detections",
    "instance": "Detections",
    "classifier": "Classification",
    "segmentation": "Segmentation",
}
_KEYS = {
    "Detections": "parse-bbox-func-name or parse-bbox-instance-mask-func-name",
    "Classification": "parse-classifier-func-name",
    "Segmentation": "parse-segmentation-func-name",
}


class PythonLibrary(CustomLibrary):
    """The module that `custom-lib-path=my_parser.py` names.

    The file is run anew by every `PythonLibrary`. While it runs, its folder comes first on the
    import path, so it may import its siblings; afterwards only this module knows them, so that two
    parsers in two folders may each have a `utils.py`.

    Raises:
        CustomLibraryError: the file cannot be parsed or raises while it is imported.
    """

    kind = "python"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decisions: list[Finding] = []
        with loading(path):
            self._module = module = import_file(path)
            note_loaded(path)
            if may_have_creators(module):
                from headrace.plugins.registry import get_plugin_registry, register_module

                register_module(module, path, get_plugin_registry())

    def __repr__(self) -> str:
        return f"PythonLibrary({str(self.path)!r})"

    def functions(self) -> list[str]:
        """List public functions that the module itself defines, sorted."""
        return sorted(
            name
            for name, value in vars(self._module).items()
            if not name.startswith("_")
            and inspect.isfunction(value)
            and value.__module__ == self._module.__name__
        )

    def symbols(self) -> list[str]:
        """List public functions of the module that may be parsers, sorted."""
        candidates = {name: getattr(self._module, name) for name in self.functions()}
        return [
            name
            for name, value in candidates.items()
            if value.__name__ != INPUT_INITIALIZER and _signature_error(value) is None
        ]

    def input_initializer(self) -> InputInitializer | None:
        """Get the function `NvDsInferInitializeInputLayers(layers, network, max_batch)`, if any.

        Raises:
            CustomLibraryError: it does not take three arguments.
        """
        function = getattr(self._module, INPUT_INITIALIZER, None)
        if function is None:
            return None
        where = f"{self.path}: {INPUT_INITIALIZER}"
        _require_function(function, INPUT_INITIALIZER, where, INITIALIZER_SIGNATURE)
        return checked_initializer(function, where, self.path.parent)

    def entry_point(self, name: str) -> Any | None:
        """Get the object of this name in the module; None if there is none."""
        return getattr(self._module, name, None) if name.isidentifier() else None

    def _parser(self, kind: ParserKind, name: str) -> UserParser:
        """Find the function `name(layers, network, params) -> result`."""
        result = _RESULTS[kind]
        where = f"{self.path}: {name}"
        signature = f"def {name}(layers, network, params) -> {result}"
        function = self.entry_point(name)
        if function is None:
            near = missing_name_hints(
                name,
                self.symbols(),
                kind="parser-like functions",
                standing=lambda other: self._standing(other, result),
            )
            raise CustomLibraryError(
                f"there is no function {name!r}",
                where=str(self.path),
                expected=signature,
                fix=near.hints,
                data=near.data,
                code="function-missing",
            )
        _require_function(function, name, where, signature)
        if returned := self._returns_other(name, result):
            raise CustomLibraryError(
                f"{name} returns {returned} by its annotation: it is another kind of parser",
                where=where,
                expected=signature,
                fix=f"name it in {_KEYS[returned]}, or name a function that returns {result}",
                code="function-of-other-kind",
            )
        return function, where, self.path.parent, []

    def _standing(self, name: str, result: str) -> tuple[int, str]:
        """Return how badly a function fits one that returns `result`, by its annotations."""
        returned = self._returns_other(name, result)
        return (1, f"which returns {returned}") if returned else (0, "")

    def _returns_other(self, name: str, result: str) -> str | None:
        """The other kind of result that a function's annotation names, if it names one."""
        returns = getattr(getattr(self._module, name), "__annotations__", {}).get("return", result)
        returned = str(getattr(returns, "__name__", returns)).rpartition(".")[2]
        return returned if returned in _RESULTS.values() and returned != result else None


def _require_function(function: object, name: str, where: str, expected: str) -> None:
    if not callable(function):
        raise CustomLibraryError(
            f"{name} is a {type(function).__name__}, not a function",
            where=where,
            expected=expected,
            code="function-missing",
        )
    if inspect.isclass(function):
        raise CustomLibraryError(
            f"{name} is a class",
            where=where,
            expected=expected,
            fix=f"give the module an instance that can be called: parse = {name}()",
            code="function-signature",
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        kind = "generator" if inspect.isgeneratorfunction(function) else "coroutine"
        raise CustomLibraryError(
            f"{name} is a {kind} function: calling it gives no result",
            where=where,
            expected=expected,
            code="function-signature",
        )
    if problem := _signature_error(function):
        raise CustomLibraryError(problem, where=where, expected=expected, code="function-signature")


def _signature_error(function: Callable[..., Any]) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # compiled code without a signature: the call shows
    try:
        signature.bind(None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        return f"{name}{signature} cannot be called with three arguments: {error}"
    return None


class FunctionLibrary(CustomLibrary):
    """A function of the program that stands for a library: every parser is this function.

    Raises:
        CustomLibraryError: it is no function of three arguments.
    """

    kind = "python"

    def __init__(self, function: Callable[..., Any]) -> None:
        plain = function
        while isinstance(plain, partial):
            plain = plain.func
        plain = inspect.unwrap(plain)
        code = getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)
        file = "<program>" if code is None else code.co_filename
        self.name: str = getattr(plain, "__name__", type(plain).__name__)
        self.path = Path(file)
        self.decisions: list[Finding] = []
        self._function = function

    def symbols(self) -> list[str]:
        """List its name."""
        return [self.name]

    def input_initializer(self) -> InputInitializer | None:
        """It has none."""
        return None

    def _parser(self, kind: ParserKind, name: str) -> UserParser:
        signature = f"def {self.name}(layers, network, params) -> {_RESULTS[kind]}"
        where = f"{self.path}: {self.name}"
        _require_function(self._function, self.name, where, signature)
        folder = None if str(self.path).startswith("<") else self.path.parent
        return self._function, where, folder, []


class IModelParser:
    """Base class of model parsers in Python: makes a network from a model of one's own format.

    `NvDsInferCreateModelParser(initParams)` of the custom library gives one. Its methods are called
    in this order: `hasFullDimsSupported`, `parseModel`, `getModelName`.
    Source: custom-library spec 2.3.
    """

    def hasFullDimsSupported(self) -> bool:
        """Return whether the network's shapes include the batch."""
        return True

    def parseModel(self, network: Any) -> int | None:
        """Add layers to `network`, a `headrace.trt.INetworkDefinition`, and mark its outputs.

        Returns:
            0 or None if all went well, else a status of NvDsInferStatus.
        """
        raise NotImplementedError("parseModel")

    def getModelName(self) -> str:
        """Return the name of the model, for messages."""
        return type(self).__name__
