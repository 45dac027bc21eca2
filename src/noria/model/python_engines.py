"""Calls of Python functions that make networks, as the original calls C++ ones.

They get `noria.trt` objects where C++ code gets TensorRT's. The engine builder builds the network
of their engine again, with the config's own batch, precision and runtime.
Source: custom-library spec 2.2, 2.3, 3.1, 3.2.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria import trt
from noria._core.errors import CustomLibraryError, NoriaError
from noria._core.notices import Notice
from noria._core.user_module import describe
from noria.binary.symbol_names import missing_name_hints
from noria.config.enums import NetworkMode
from noria.custom.missing import named_at
from noria.custom.python_library import IModelParser, PythonLibrary
from noria.model.init_params import python_init_params
from noria.model.source import CUDA_ENGINE_GET, MODEL_PARSER, FunctionSource
from noria.model.user_builder import builder_config, remembering_builder

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig
    from noria.network.network import Network

_SIGNATURES = {
    CUDA_ENGINE_GET: "def NvDsInferCudaEngineGet(builder, initParams, dataType) -> engine",
    MODEL_PARSER: "def NvDsInferCreateModelParser(initParams) -> IModelParser",
}


def python_source(cfg: ModelConfig, library: PythonLibrary) -> FunctionSource | None:
    """Find the function of `library` that makes the network of `cfg`; None if it has none.

    The order is the original's: what `engine-create-func-name` names, `NvDsInferCudaEngineGet`,
    `NvDsInferCreateModelParser`.

    Raises:
        CustomLibraryError: the function that the config names is not there, or cannot be called
            with what it is given.
    """
    named = cfg.engine_create_func_name
    names = [named] if named else [CUDA_ENGINE_GET, MODEL_PARSER]
    found = next((n for n in names if library.entry_point(n) is not None), None)
    if found is None:
        if named:
            error = CustomLibraryError(
                f"there is no function {named!r}",
                where=str(library.path),
                expected=engine_signature(named),
                fix=missing_name_hints(named, library.functions(), kind="functions"),
            )
            raise named_at(error, cfg.origin("engine_create_func_name"))
        return None
    function: Any = library.entry_point(found)
    _check(function, found, library.path)
    notices: list[Notice] = []
    maker = _NetworkMaker(cfg, library, found, function, notices)
    return FunctionSource.of(cfg, library.path, found, maker.make, notices)


class _NetworkMaker:
    """Calls one function, and takes its network."""

    def __init__(
        self, cfg: ModelConfig, library: PythonLibrary, name: str, function: Callable[..., Any],
        notices: list[Notice],
    ) -> None:  # fmt: skip
        self._cfg = cfg
        self._library = library
        self._name = name
        self._function = function
        self._notices = notices
        self._where = f"{library.path}: {name}"

    def make(self) -> Network:
        """Call the function.

        Raises:
            CustomLibraryError: the user's code raised, or made nothing usable.
        """
        # most libraries have parsers alone, and do without it
        from noria.trt.lowering.graph import from_network

        messages: list[tuple[int, str]] = []
        builder = remembering_builder(lambda severity, text: messages.append((severity, text)))
        builder._max_batch = self._cfg.batch_size
        work = self._parse if self._name == MODEL_PARSER else self._create
        try:
            network = work(builder)
            made = from_network(network)
        except CustomLibraryError as error:
            reasons = [text for severity, text in messages if severity <= 1][:5]
            raise CustomLibraryError(
                error.found, where=error.where, expected=error.expected,
                fix=[*error.fix, *reasons],
            ) from error  # fmt: skip
        except NoriaError as error:
            raise CustomLibraryError(
                f"its network cannot be used: {error.found}", where=self._where, fix=error.fix
            ) from error
        for severity, text in dict.fromkeys(messages):
            if severity <= 2:
                self._notices.append(Notice("warning", text, self._where))
        text = f"the network was made by {self._name}"
        self._notices.append(Notice("info", text, str(self._library.path)))
        return made

    def _create(self, builder: Any) -> Any:
        half = self._cfg.network_mode is NetworkMode.FP16
        dtype = trt.DataType.HALF if half else trt.DataType.FLOAT
        params = python_init_params(self._cfg)
        arguments: list[Any] = [builder, params, dtype]
        if self._name != CUDA_ENGINE_GET:
            arguments.insert(1, builder_config(builder, self._cfg))
        engine = self._call(self._function, *arguments)
        if isinstance(engine, trt.INetworkDefinition):
            return engine
        if engine is None or engine is False:
            raise CustomLibraryError(f"it returned {engine}: no engine", where=self._where)
        if builder.last is None:
            raise CustomLibraryError(
                f"it returned a {type(engine).__name__} that was not built by its `builder`",
                where=self._where,
                expected="an engine from builder.build_engine, the bytes from "
                "builder.build_serialized_network, or the network itself",
            )
        return builder.last

    def _parse(self, builder: Any) -> Any:
        parser = self._call(self._function, python_init_params(self._cfg))
        if parser is None or not hasattr(parser, "parseModel"):
            raise CustomLibraryError(
                f"it returned a {type(parser).__name__}",
                where=self._where,
                expected="an object of a class derived from noria.custom.IModelParser",
            )
        full = getattr(parser, "hasFullDimsSupported", IModelParser().hasFullDimsSupported)
        explicit = bool(self._call(full)) and not self._cfg.force_implicit_batch_dim
        network = trt.INetworkDefinition(
            builder, builder.logger, int(explicit), implicit=not explicit
        )
        status = self._call(parser.parseModel, network)
        if status not in (None, 0, True):
            raise CustomLibraryError(f"parseModel returned status {status}", where=self._where)
        if hasattr(parser, "getModelName"):
            self._call(parser.getModelName)
        return network

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except NoriaError:
            raise
        except Exception as error:
            found, line, trail = describe(error, self._library.path.parent)
            raise CustomLibraryError(found, where=line or self._where, fix=trail) from error


def engine_signature(name: str) -> str:
    """Write the signature of a function that makes a network, as Python has it."""
    return _SIGNATURES.get(name, f"def {name}(builder, config, initParams, dataType) -> engine")


def _check(function: Any, name: str, path: Path) -> None:
    where = f"{path}: {name}"
    if not callable(function):
        raise CustomLibraryError(
            f"{name} is a {type(function).__name__}, not a function", where=where,
            expected=engine_signature(name),
        )  # fmt: skip
    count = {CUDA_ENGINE_GET: 3, MODEL_PARSER: 1}.get(name, 4)
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError as error:
        raise CustomLibraryError(
            f"it cannot be called with {count} argument{'s' if count > 1 else ''}: {error}",
            where=where, expected=engine_signature(name),
        ) from error  # fmt: skip
    except ValueError:
        return  # compiled code without a signature: the call will show
