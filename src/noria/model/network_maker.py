"""Calls of a Python function that makes a network: the objects it gets, the network it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noria import trt
from noria._core.errors import CustomLibraryError, NoriaError
from noria._core.notices import Notice
from noria._core.user_module import describe
from noria.config.enums import NetworkMode
from noria.custom.python_library import IModelParser, PythonLibrary
from noria.model.init_params import python_init_params
from noria.model.source import CUDA_ENGINE_GET, MODEL_PARSER
from noria.model.user_builder import builder_config, remembering_builder
from noria.trt.lowering.graph import from_network

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig
    from noria.network.network import Network


class NetworkMaker:
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
