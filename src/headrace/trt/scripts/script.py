"""Running a script that was written for TensorRT, unchanged, in a process of its own.

`import tensorrt` (and its lean, dispatch and RTX flavours) gives `headrace.trt`; `pycuda`, `cuda`
and `cupy` give small shims with device memory on the host. Nothing outside the process changes.
Source: tensorrt-api spec 2, 4.5.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace.plugins.calls import announce
from headrace.trt.scripts.script_libraries import load_libraries

if TYPE_CHECKING:
    from typing import Any


_TRT = "headrace.trt"
_SHIMS = "headrace.trt.scripts.shims"
ALIASES = {
    "tensorrt": _TRT,
    "tensorrt_lean": _TRT,
    "tensorrt_dispatch": _TRT,
    "tensorrt_rtx": _TRT,
    "tensorrt.tensorrt": _TRT,
    "tensorrt.plugin": f"{_TRT}.plugin",
    "tensorrt_rtx.plugin": f"{_TRT}.plugin",
    "pycuda": f"{_SHIMS}.pycuda_driver:_PACKAGE",
    "pycuda.autoinit": f"{_SHIMS}.pycuda_driver:_AUTOINIT",
    "pycuda.autoprimaryctx": f"{_SHIMS}.pycuda_driver:_AUTOINIT",
    "pycuda.driver": f"{_SHIMS}.pycuda_driver",
    "pycuda.gpuarray": f"{_SHIMS}.gpuarray",
    "cuda": "",
    "cuda.cuda": f"{_SHIMS}.cuda:DRIVER",
    "cuda.cudart": f"{_SHIMS}.cuda:RUNTIME",
    "cuda.nvrtc": f"{_SHIMS}.cuda:NVRTC",
    "cuda.bindings": "",
    "cuda.bindings.driver": f"{_SHIMS}.cuda:DRIVER",
    "cuda.bindings.runtime": f"{_SHIMS}.cuda:RUNTIME",
    "cuda.bindings.nvrtc": f"{_SHIMS}.cuda:NVRTC",
    "cupy": f"{_SHIMS}.cupy",
    "cupy.cuda": f"{_SHIMS}.cupy_cuda",
}
"""Name that a script imports -> module that it gets, or `module:table` of the names in it."""


_KERNELS = "it compiles kernels for a GPU, which there is none of here"
_ABSENT = {
    "pycuda.compiler": _KERNELS,
    "pycuda.elementwise": _KERNELS,
    "pycuda.reduction": _KERNELS,
}
"""Module that scripts may ask for -> why there is no stand-in."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives scripts our modules under the names they ask for."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname in _ABSENT:
            raise ModuleNotFoundError(
                f"no module named {fullname!r} under headrace exec: {_ABSENT[fullname]}",
                name=fullname,
            )
        return stand_in(fullname) if fullname in ALIASES else None

    def create_module(self, spec: Any) -> ModuleType:
        return _module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported."""


def stand_in(name: str) -> importlib.machinery.ModuleSpec:
    """Return the module of `ALIASES` that stands for `name`, to be imported."""
    return importlib.machinery.ModuleSpec(name, _Finder(), is_package=True)


@cache
def _module(name: str) -> ModuleType:
    """The module that a script gets under a name."""
    target, _, table = ALIASES[name].partition(":")
    if target and not table:
        return importlib.import_module(target)
    module = ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    names = vars(importlib.import_module(target))[table] if table else {}
    vars(module).update(names, __path__=[])
    return module


def install() -> None:
    """From now on the aliased names mean our modules in this process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name in ALIASES:
        sys.modules[name] = module = _module(name)
        parent, _, child = name.rpartition(".")
        if parent:
            vars(sys.modules[parent]).setdefault(child, module)


def run_script(
    script: Path, arguments: Sequence[str], plugins: Sequence[str] = (), *, module: bool = False
) -> None:
    """Run a script as `python script arguments…` would, with the aliases.

    Args:
        script: the file, or the name of a module.
        arguments: its command line.
        plugins: see `headrace.trt.scripts.script_libraries.load_libraries`.
        module: True runs a module as `python -m` does.

    Raises:
        HeadraceError: there is no such file or module.
        SystemExit: the script's own; 1 after an exception, which is printed as Python prints it.
    """
    if not module and not script.is_file():
        raise HeadraceError("there is no such script", where=str(script))
    install()
    load_libraries(plugins)
    announce()
    sys.argv = [str(script), *arguments]
    sys.path[0:0] = [str(Path.cwd() if module else script.resolve().parent)]
    file = _file_of_module(str(script)) if module else str(script.absolute())
    try:
        if module:
            runpy.run_module(str(script), run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(file, run_name="__main__")
    except Exception as error:
        _tell(error, file)
        raise SystemExit(1) from None


def _file_of_module(name: str) -> str:
    """The file that `python -m name` runs."""
    problem = "there is no such module"
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            problem = "it is a package without __main__.py"
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise HeadraceError(problem, where=name)
    return spec.origin


def _tell(error: Exception, script: str) -> None:
    """Print an exception that the script does not catch, as Python prints it.

    The trace begins at the script's own first line.
    """
    trail = error.__traceback__
    while trail is not None and trail.tb_frame.f_code.co_filename != script:
        trail = trail.tb_next
    sys.excepthook(type(error), error.with_traceback(trail), trail)
