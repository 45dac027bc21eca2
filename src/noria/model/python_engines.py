"""Calls of Python functions that make networks, as the original calls C++ ones.

They get `noria.trt` objects where C++ code gets TensorRT's. The engine builder builds the network
of their engine again, with the config's own batch, precision and runtime.
Source: custom-library spec 2.2, 2.3, 3.1, 3.2.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.binary.symbol_names import missing_name_hints
from noria.custom.python_library import PythonLibrary
from noria.model.source import CUDA_ENGINE_GET, MODEL_PARSER, FunctionSource

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
            from noria.custom.load_errors import named_at  # brings the readers of ELF files

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

    def make() -> Network:
        from noria.model.network_maker import NetworkMaker  # brings noria.trt

        return NetworkMaker(cfg, library, found, function, notices).make()

    return FunctionSource.of(cfg, library.path, found, make, notices)


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
