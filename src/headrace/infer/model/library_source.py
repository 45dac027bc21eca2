"""The function of the custom library that makes a config's network.

The order is the original's: the function that `engine-create-func-name` names, then
`NvDsInferCudaEngineGet`, then `NvDsInferCreateModelParser`; each goes before every model file.
Source: custom-library spec 2.2, 3.1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.binary.symbol_names import missing_name_hints
from headrace.config.model_files import model_kind
from headrace.infer.model.source import CUDA_ENGINE_GET, MODEL_PARSER, FunctionSource

if TYPE_CHECKING:
    from headrace.binary.elf import ElfFile
    from headrace.binary.tensorrt_line import TensorrtUse
    from headrace.config.model_config import ModelConfig
    from headrace.custom.python_library import PythonLibrary
    from headrace.infer.model.engine_functions import CppEngines
    from headrace.infer.model.guarded_engines import GuardedEngines
    from headrace.network.network import Network


_FACTORY = "NvDsInferPluginFactory(Caffe|Uff|Runtime)Get"


def library_source(cfg: ModelConfig, notices: list[Finding]) -> FunctionSource | None:
    """Find the function of the custom library that makes the network; None if none applies.

    A library of plugins or networks is loaded into this process and stays there, or into a worker,
    as `custom-lib-guard` asks. Its notices are appended.

    Raises:
        CustomLibraryError: the library cannot be loaded; the function that the config names is not
            in it, was compiled against other headers and no model file could do instead, or takes
            other arguments.
    """
    path = cfg.custom_lib_path
    assert path is not None
    if not path.is_file():
        return None
    if path.suffix.lower() in (".py", ".pyw"):
        from headrace.custom.python_library import PythonLibrary

        source = _python_source(cfg, PythonLibrary(path))
        if source is not None and cfg.custom_lib_guard == "always":
            from headrace.custom.library import unguarded

            text = "networks that Python makes are not guarded: its function runs in this process"
            notices.append(unguarded(text, path, "always"))
        return source
    from headrace.binary.elf import ElfError, ElfFile  # for C++ libraries alone
    from headrace.binary.entry_points import checked_kind, made_for_tensorrt, uses_host
    from headrace.binary.tensorrt_line import served

    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        return None  # opening it for its parser raises the error
    exported = elf.exported()
    named = cfg.engine_create_func_name
    if named and named not in exported:
        from headrace.custom.load_errors import named_at, no_such_function

        macro = "CHECK_CUSTOM_ENGINE_CREATE_FUNC_PROTOTYPE"
        error = no_such_function(elf, named, "engine creator", macro)
        raise named_at(error, cfg.origin("engine_create_func_name"))
    if named and (kind := checked_kind(elf, named)) not in (None, "engine creator"):
        from headrace.custom.load_errors import named_at, of_another_kind

        error = of_another_kind(elf, named, "engine creator", kind)
        raise named_at(error, cfg.origin("engine_create_func_name"))
    function = function_of(cfg, exported)
    use = served(elf, function)
    ours = uses_host(elf) or (function is not None and made_for_tensorrt(elf) is not None)
    if not ours and function is not None:
        ours = _makes_here(cfg, elf, function, use, notices)
    if not ours:
        if use is not None:
            _engines(cfg, path, elf, notices)
        return None
    engines = _engines(cfg, path, elf, notices)
    if function is None:
        return None
    later: list[Finding] = []  # of `make`
    return FunctionSource.of(cfg, path, function, lambda: engines.make(function, later), later)


def function_of(cfg: ModelConfig, names: Collection[str]) -> str | None:
    """Choose the function that makes the network: the named one, else one of fixed name."""
    fixed = (n for n in (CUDA_ENGINE_GET, MODEL_PARSER) if n in names)
    return cfg.engine_create_func_name or next(fixed, None)


def _engines(
    cfg: ModelConfig, path: Path, elf: ElfFile, notices: list[Finding]
) -> CppEngines | GuardedEngines:
    """Open the library in this process or in a worker, as `custom-lib-guard` asks."""
    from headrace.custom.library import is_guarded, unguarded

    guarded, reasons = is_guarded(path, False, cfg.custom_lib_guard)
    notices += reasons
    factories = [n for n in elf.exported() if re.fullmatch(_FACTORY, n)]
    if guarded and factories:
        text = (
            f"its networks and plugins are not guarded, but run in this process: {factories[0]} "
            "gives objects of the time before plugin creators"
        )
        notices.append(unguarded(text, path, cfg.custom_lib_guard))
    engines: CppEngines | GuardedEngines
    if guarded and not factories:
        from headrace.custom.guard import GuardOptions
        from headrace.infer.model.guarded_engines import GuardedEngines

        engines = GuardedEngines(cfg, path, GuardOptions.of(cfg))
    else:
        from headrace.infer.model.engine_functions import CppEngines

        engines = CppEngines(cfg, path, elf)
    notices += engines.decisions
    return engines


def _makes_here(
    cfg: ModelConfig, elf: ElfFile, function: str, use: TensorrtUse | None, notices: list[Finding]
) -> bool:
    """Whether a function that was compiled against TensorRT's own headers makes the network.

    It does not where its release is not told, and where its layers need a GPU that this machine
    lacks while the config names a model file: the file is read then, with a notice.

    Raises:
        CustomLibraryError: as `_note_not_callable`.
    """
    if use is None or use.line is None:
        _note_not_callable(cfg, function, notices)
        return False
    from headrace._core.gpu.cuda import why_no_gpu
    from headrace.binary.elf import is_foreign
    from headrace.binary.fat_binary import gpu_code_of

    kind, code = model_kind(cfg), gpu_code_of(elf.data)
    reason = "an emulator runs it, without a GPU" if is_foreign(elf) else why_no_gpu()
    if kind is None or code is None or reason is None:
        return True
    text = (
        f"{function} of {elf.path.name} makes layers that compute on a GPU ({code}), and {reason}: "
        f"headrace reads the {kind} model"
    )
    notices.append(Finding("builder-unused", "info", text, cfg.where("engine_create_func_name")))
    return False


def _note_not_callable(cfg: ModelConfig, function: str, notices: list[Finding]) -> None:
    """Append the notice that a model file replaces a function compiled for TensorRT.

    Raises:
        CustomLibraryError: the config names no model file, nor an engine.
    """
    path = cfg.custom_lib_path
    assert path is not None
    kind = model_kind(cfg)
    if kind is None:
        if cfg.model_engine_file is not None:
            return
        raise CustomLibraryError(
            f"{function} is compiled against TensorRT's own headers, and nothing tells of which "
            "release: it cannot be called",
            where=str(path),
            expected="a library that is linked against libnvinfer.so.5 to .11",
            fix=f"compile the library's sources for headrace: headrace compile … -o {path.name}",
        )
    text = f"{function} of {path.name} builds engines for TensorRT; headrace reads the {kind} model"
    notices.append(Finding("builder-unused", "info", text, cfg.where("engine_create_func_name")))


_SIGNATURES = {
    CUDA_ENGINE_GET: "def NvDsInferCudaEngineGet(builder, initParams, dataType) -> engine",
    MODEL_PARSER: "def NvDsInferCreateModelParser(initParams) -> IModelParser",
}


def _python_source(cfg: ModelConfig, library: PythonLibrary) -> FunctionSource | None:
    """Find the function of `library` that makes the network of `cfg`; None if it has none."""
    named = cfg.engine_create_func_name
    names = [named] if named else [CUDA_ENGINE_GET, MODEL_PARSER]
    function_name = next((n for n in names if library.entry_point(n) is not None), None)
    if function_name is None:
        if named:
            from headrace.custom.load_errors import named_at  # brings the readers of ELF files

            error = CustomLibraryError(
                f"there is no function {named!r}",
                where=str(library.path),
                expected=engine_signature(named),
                fix=missing_name_hints(named, library.functions(), kind="functions").hints,
            )
            raise named_at(error, cfg.origin("engine_create_func_name"))
        return None
    _check(library.entry_point(function_name), function_name, library.path)
    notices: list[Finding] = []

    def make() -> Network:
        from headrace.infer.model.engine_functions import PythonEngine  # brings headrace.trt

        return PythonEngine(cfg, library, function_name, notices).make()

    return FunctionSource.of(cfg, library.path, function_name, make, notices)


def engine_signature(name: str) -> str:
    """Write the signature of a function that makes a network, as Python has it."""
    return _SIGNATURES.get(name, f"def {name}(builder, config, initParams, dataType) -> engine")


def _check(function: object, name: str, path: Path) -> None:
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
            f"it cannot be called with {counted(count, 'argument')}: {error}",
            where=where, expected=engine_signature(name),
        ) from error  # fmt: skip
    except ValueError:
        return  # compiled code without a signature: the call will show
