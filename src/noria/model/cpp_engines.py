"""Calls of C++ functions that make networks, and the networks of their engines.

Source: custom-library spec 2.2, 2.3, 3.1, 3.2.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria import _native, trt
from noria._core.errors import CustomLibraryError, NoriaError
from noria._core.notices import Notice
from noria.binary.elf import ElfFile
from noria.binary.entry_points import OLD_SIGNATURE_BEFORE, made_for_tensorrt
from noria.binary.gpu_code import ON_DEVICE
from noria.config.enums import NetworkMode
from noria.custom.library import open_library
from noria.engine.plan import MODEL_BLOB
from noria.host import functions
from noria.host.callback_errors import CallbackErrors, collected_errors, report_log
from noria.model.init_params import init_params
from noria.model.source import CUDA_ENGINE_GET, MODEL_PARSER
from noria.model.user_builder import builder_config, remembering_builder
from noria.network.network import Network
from noria.network.onnx_file import network_from_onnx_bytes

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

log = logging.getLogger("noria.host")
FLOAT, HALF = 0, 1


class CppEngines:
    """The entry points for engines of one library, which is loaded into this process.

    Attributes:
        decisions: notices of loading it.
    """

    def __init__(self, cfg: ModelConfig, path: Path, elf: ElfFile) -> None:
        self._cfg = cfg
        self._path = path
        self._elf = elf
        self._library: Any = open_library(path, abi=cfg.custom_lib_abi)
        self.decisions: list[Notice] = [  # those about parsers come when parsers are opened
            n for n in self._library.decisions if n.level == "warning" or ON_DEVICE in n.message
        ]

    def make(self, function: str, notices: list[Notice]) -> Network:
        """Make a network.

        Args:
            function: the entry point.
            notices: appended to.

        Raises:
            CustomLibraryError: it failed, or made nothing usable.
        """
        call = self._parse if function == MODEL_PARSER else self._create
        where = f"{self._path}: {function}"
        mark = _native.host_count()
        try:
            with collected_errors() as errors:
                try:
                    network = call(function, where, errors)
                except _native.CustomCodeError as error:
                    raise _failed(where, f"it threw {error}", errors) from error
        finally:
            _native.host_forget(mark)
            functions.forget_partial()
        texts = dict.fromkeys([*errors.failures, *_warnings(errors)])
        notices += [Notice("warning", text, where) for text in texts]
        notices.append(Notice("info", f"the network was made by {function}", str(self._path)))
        return network

    def _create(self, function: str, where: str, errors: CallbackErrors) -> Network:
        builder = _builder()
        builder.max_batch_size = self._cfg.batch_size
        config = None
        if function != CUDA_ENGINE_GET and self._generation() >= OLD_SIGNATURE_BEFORE:
            config = self._config(builder)
        kind = HALF if self._cfg.network_mode is NetworkMode.FP16 else FLOAT
        succeeded, engine = _native.call_engine_creator(
            self._library.native, function, builder, config, init_params(self._cfg), kind
        )
        if not succeeded:
            raise _failed(where, "it returned false", errors)
        if engine is None:
            raise _failed(where, "it returned true, but no engine", errors)
        return _network(engine, builder)

    def _parse(self, function: str, where: str, errors: CallbackErrors) -> Network:
        # a library of plugins alone does without it
        from noria.trt.lowering.graph import from_network

        builder = _builder()
        parser: Any = _native.create_model_parser(self._library.native, init_params(self._cfg))
        if parser is None:
            raise _failed(where, "it returned no parser", errors)
        try:
            explicit = parser.has_full_dims() and not self._cfg.force_implicit_batch_dim
            network = trt.INetworkDefinition(
                builder, builder.logger, int(explicit), implicit=not explicit
            )
            status = parser.parse(network)
            if status:
                raise _failed(where, f"parseModel returned status {status}", errors)
            try:
                made = from_network(network)
            except NoriaError as error:
                raise _failed(where, f"its network cannot be used: {error.found}", errors,
                              error.fix) from error  # fmt: skip
            log.debug("%s: made %r", where, parser.name())
        finally:
            parser.close()
        return made

    def _generation(self) -> int:
        """Release of TensorRT that the library was compiled for."""
        return made_for_tensorrt(self._elf) or 10

    def _config(self, builder: Any) -> Any:
        config = builder_config(builder, self._cfg)
        if self._cfg.workspace_size and self._generation() < OLD_SIGNATURE_BEFORE:
            config.max_workspace_size = self._cfg.workspace_size << 20
        return config


def _network(engine: Any, builder: Any) -> Network:
    """Take an engine's network, with the engine's plan, which need not be built again.

    The network that it was built from here may be built another way, if a tactic or a precision is
    asked for; an engine that was only loaded is known by its graph.
    """
    from noria.trt.lowering.graph import from_network  # as above

    plan = engine._plan
    if builder.last is not None and _names(builder.last) == [s.name for s in plan.outputs]:
        made = from_network(builder.last)
    else:
        made = network_from_onnx_bytes(plan.blobs[MODEL_BLOB], Path("engine.onnx"))
        made.path = None
    made.built = plan
    return made


def _names(network: Any) -> list[str]:
    return [network.get_output(i).name for i in range(network.num_outputs)]


def _builder() -> Any:
    def log_message(severity: int, text: str) -> None:
        report_log(severity, text)
        log.debug("%s", text)

    return remembering_builder(log_message)


def _warnings(errors: CallbackErrors) -> list[str]:
    return [text for severity, text in errors.log if severity == 2][:5]


def _failed(where: str, found: str, errors: CallbackErrors, more: Any = ()) -> CustomLibraryError:
    reason = errors.reason
    return CustomLibraryError(
        f"{found}{f': {reason}' if reason else ''}",
        where=where,
        fix=list(dict.fromkeys([*errors.hints, *more])) or _advice(reason),
    )


def _advice(reason: str) -> list[str]:
    if reason:
        return []
    return ["what it printed above may say why; nothing that it called here failed"]
