"""Calls of functions that make networks, in C++ and in Python, and the networks that they leave.

Python functions get `headrace.trt` objects where C++ code gets TensorRT's.
Source: custom-library spec 2.2, 2.3, 3.1, 3.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import trt
from headrace._core import _native
from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.user_module import describe
from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import OLD_SIGNATURE_BEFORE, made_for_tensorrt
from headrace.binary.tensorrt_line import served
from headrace.config.enums import NetworkMode
from headrace.custom.emulated.networks import EmulatedNetworks, EmulatedParams
from headrace.custom.library import open_library
from headrace.custom.python_library import IModelParser, PythonLibrary
from headrace.engine.plan import MODEL_BLOB
from headrace.infer.model.init_params import init_params, python_init_params
from headrace.infer.model.source import CUDA_ENGINE_GET, MODEL_PARSER
from headrace.network.network import Network
from headrace.network.onnx_file import network_from_onnx_bytes
from headrace.plugins.calls import within
from headrace.plugins.registry import get_plugin_registry
from headrace.plugins.spoken import FUNCTION
from headrace.trt.host import functions
from headrace.trt.host.callback_errors import CallbackErrors, collected_errors, report_log
from headrace.trt.host.creators import image_of
from headrace.trt.host.loading import set_up

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

log = logging.getLogger("headrace.trt.host")
_FLAGS = {
    NetworkMode.FP16: ("FP16",),
    NetworkMode.INT8: ("INT8",),
    NetworkMode.BEST: ("INT8", "FP16"),
}


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
        self.decisions: list[Finding] = [  # those about parsers come when parsers are opened
            n
            for n in self._library.decisions
            if n.level == "warning" or n.code == "function-on-gpu"
        ]

    @cached_property
    def _networks(self) -> EmulatedNetworks | None:
        """The functions of a library that an emulator runs; None if it is in this process."""
        emulated = self._library.emulated
        return None if emulated is None else EmulatedNetworks(emulated.link)

    def make(self, function: str, notices: list[Finding]) -> Network:
        """Make a network by an entry point; its notices are appended.

        Raises:
            CustomLibraryError: it failed, or made nothing usable.
        """
        call = self._parse if function == MODEL_PARSER else self._create
        release = self._release(function)
        where = f"{self._path}: {function}{release}"
        called = f"{FUNCTION}{function}{release}"
        if self._networks is not None:
            self._networks.called = called
        mark = _native.host_count()
        try:
            with collected_errors() as errors, within(called):
                try:
                    network = call(function, where, errors)
                except _native.CustomCodeError as error:
                    raise _failed(where, f"it threw {error}", errors) from error
                except ValueError as error:  # what it gave for an engine is none
                    raise _failed(where, f"{error}", errors) from error
        finally:
            _native.host_forget(mark)
            if self._networks is not None:
                self._networks.forget()
            functions.forget_partial()
        warnings = [text for severity, text in errors.log if severity == 2][:5]
        texts = dict.fromkeys([*errors.failures, *warnings])
        notices += [Finding("builder-warns", "warning", text, where) for text in texts]
        notices.append(_made_by(function, self._path))
        return network

    def _create(self, function: str, where: str, errors: CallbackErrors) -> Network:
        builder = _remembering_builder(_log_message)
        builder.max_batch_size = self._cfg.batch_size
        config = None
        line = self._line(function)
        release = line or made_for_tensorrt(self._elf) or 10
        if function != CUDA_ENGINE_GET and release >= OLD_SIGNATURE_BEFORE:
            config = _builder_config(builder, self._cfg)
        params, kind = init_params(self._cfg), int(_data_type(self._cfg))
        if (networks := self._networks) is not None:
            params = init_params(self._cfg, EmulatedParams())
            succeeded, engine = networks.create(function, builder, config, params, kind, line)
        else:
            succeeded, engine = _native.call_engine_creator(
                self._library.native, function, builder, config, params, kind, line
            )
        if not succeeded:
            raise _failed(where, "it returned false", errors)
        if engine is None:
            raise _failed(where, "it returned true, but no engine", errors)
        return _network_of_engine(engine, builder)

    def _parse(self, function: str, where: str, errors: CallbackErrors) -> Network:
        builder = _remembering_builder(_log_message)
        parser: Any
        params = init_params(self._cfg)
        if self._networks is not None:
            parser = self._networks.model_parser(init_params(self._cfg, EmulatedParams()))
        else:
            parser = _native.create_model_parser(self._library.native, params)
        if parser is None:
            raise _failed(where, "it returned no parser", errors)
        try:
            network = _empty_network(builder, self._cfg, parser.has_full_dims())
            status = parser.parse(network, self._line(function))
            if status:
                raise _failed(where, f"parseModel returned status {status}", errors)
            try:
                imported = _from_network(network)
            except HeadraceError as error:
                raise _failed(where, f"its network cannot be used: {error:brief}", errors,
                              error.finding.remedies) from error  # fmt: skip
            log.debug("%s: made %r", where, parser.name())
        finally:
            parser.close()
        return imported

    def _release(self, function: str) -> str:
        """The release of TensorRT's own headers that it was compiled against; empty without."""
        line = self._line(function)
        if not line:
            return ""
        if self._networks is not None:
            _, release = self._networks.release(function)
            return f" for {_native.foreign_release_text(line, release)}"
        image = image_of(get_plugin_registry(), self._path)
        _, release = (0, 0) if image is None else _native.foreign_origin(image)
        return f" for {_native.foreign_release_text(line, release)}"

    def _line(self, function: str) -> int:
        """The line of TensorRT's own headers that it was compiled against; 0 without."""
        use = served(self._elf, function)
        if use is None or use.line is None:
            return 0
        set_up()  # a library that asks for nothing by name was opened without
        return use.line


def _failed(where: str, problem: str, errors: CallbackErrors, more: Any = ()) -> CustomLibraryError:
    reason = errors.reason
    fix = list(dict.fromkeys([*errors.hints, *more]))
    if not (fix or reason):
        fix = ["what it printed above may say why; nothing that it called here failed"]
    return CustomLibraryError(f"{problem}{f': {reason}' if reason else ''}", where=where, fix=fix)


def _network_of_engine(engine: Any, builder: Any) -> Network:
    """Take an engine's network, with the engine's plan, which need not be built again.

    The network that it was built from here may be built another way, if a tactic or a precision is
    asked for; an engine that was only loaded is known by its graph.
    """
    plan, last = engine._plan, builder.last
    names = [] if last is None else [last.get_output(i).name for i in range(last.num_outputs)]
    if last is not None and names == [s.name for s in plan.outputs]:
        imported = _from_network(last)
    else:
        imported = network_from_onnx_bytes(plan.blobs[MODEL_BLOB], Path("engine.onnx"))
        imported.path = None
    imported.built = plan
    return imported


def _log_message(severity: int, text: str) -> None:
    report_log(severity, text)
    log.debug("%s", text)


class PythonEngine:
    """A Python function that makes a network.

    The engine builder builds the network of its engine again, with the config's own batch,
    precision and runtime. `make` appends to the notices.
    """

    def __init__(
        self, cfg: ModelConfig, library: PythonLibrary, name: str, notices: list[Finding]
    ) -> None:
        self._cfg = cfg
        self._library = library
        self._name = name
        self._function: Any = library.entry_point(name)
        self._notices = notices
        self._where = f"{library.path}: {name}"

    def make(self) -> Network:
        """Call the function.

        Raises:
            CustomLibraryError: the user's code raised, or made nothing usable.
        """
        messages: list[tuple[int, str]] = []
        builder = _remembering_builder(lambda severity, text: messages.append((severity, text)))
        builder._max_batch = self._cfg.batch_size
        work = self._parse if self._name == MODEL_PARSER else self._create
        try:
            imported = _from_network(work(builder))
        except CustomLibraryError as error:
            reasons = [text for severity, text in messages if severity <= 1][:5]
            raise CustomLibraryError(error.finding, fix=reasons) from error
        except HeadraceError as error:
            finding = error.finding.changed(prefix="its network cannot be used: ")
            code = CustomLibraryError.code
            raise CustomLibraryError(finding, where=self._where, code=code) from error
        for severity, text in dict.fromkeys(messages):
            if severity <= 2:
                self._notices.append(Finding("builder-warns", "warning", text, self._where))
        self._notices.append(_made_by(self._name, self._library.path))
        return imported

    def _create(self, builder: Any) -> Any:
        arguments = [builder, python_init_params(self._cfg), _data_type(self._cfg)]
        if self._name != CUDA_ENGINE_GET:
            arguments.insert(1, _builder_config(builder, self._cfg))
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

    def _parse(self, builder: object) -> Any:
        parser = self._call(self._function, python_init_params(self._cfg))
        if parser is None or not hasattr(parser, "parseModel"):
            raise CustomLibraryError(
                f"it returned a {type(parser).__name__}",
                where=self._where,
                expected="an object of a class derived from headrace.custom.IModelParser",
            )
        full = getattr(parser, "hasFullDimsSupported", IModelParser().hasFullDimsSupported)
        network = _empty_network(builder, self._cfg, self._call(full))
        status = self._call(parser.parseModel, network)
        if status not in (None, 0, True):
            raise CustomLibraryError(f"parseModel returned status {status}", where=self._where)
        if hasattr(parser, "getModelName"):
            self._call(parser.getModelName)
        return network

    def _call(self, function: Callable[..., object], *arguments: object) -> Any:
        try:
            return function(*arguments)
        except HeadraceError:
            raise
        except Exception as error:
            text, line, trail = describe(error, self._library.path.parent)
            raise CustomLibraryError(text, where=line or self._where, fix=trail) from error


def _made_by(function: str, path: Path) -> Finding:
    return Finding("network-by-function", "info", f"the network was made by {function}", str(path))


def _from_network(network: Any) -> Network:
    # a library of plugins alone does without it
    from headrace.trt.lowering.graph import from_network

    return from_network(network)


def _empty_network(builder: Any, cfg: ModelConfig, full_dims: Any) -> Any:
    explicit = bool(full_dims) and not cfg.force_implicit_batch_dim
    return trt.INetworkDefinition(builder, builder.logger, int(explicit), implicit=not explicit)


def _data_type(cfg: ModelConfig) -> Any:
    return trt.DataType.HALF if cfg.network_mode is NetworkMode.FP16 else trt.DataType.FLOAT


def _remembering_builder(log_message: Callable[[int, str], None]) -> Any:
    """Make a `trt.Builder` that remembers the network of its last engine: `last`."""

    class Listener(trt.ILogger):  # type: ignore[misc]
        def log(self, severity: Any, msg: str) -> None:
            log_message(int(severity), str(msg))

    class Builder(trt.Builder):  # type: ignore[misc]
        last: Any = None

        def _plan(self, network: object, config: object) -> Any:
            plan = super()._plan(network, config)
            self.last = network if plan is not None else self.last
            return plan

    return Builder(Listener())


def _builder_config(builder: Any, cfg: ModelConfig) -> Any:
    """Make a builder's config with the precisions of `cfg`, as the original's host does.

    INT8 is set only with a calibration table that exists. Source: custom-library spec 3.2.
    """
    config = builder.create_builder_config()
    table = cfg.int8_calib_file
    for name in _FLAGS.get(cfg.network_mode, ()):
        if name != "INT8":
            config.set_flag(trt.BuilderFlag[name])
        elif table is not None and table.exists():
            config.set_flag(trt.BuilderFlag.INT8)
            config.int8_calibrator = _table_calibrator(table)
    return config


def _table_calibrator(table: Path) -> Any:
    """Make a calibrator that has the table alone, as the original's."""

    class Table(trt.IInt8EntropyCalibrator2):  # type: ignore[misc]
        def get_batch_size(self) -> int:
            return 0

        def get_batch(self, names: object) -> None:
            return None

        def read_calibration_cache(self) -> bytes:
            return table.read_bytes()

        def write_calibration_cache(self, cache: object) -> None:
            return None

    return Table()
