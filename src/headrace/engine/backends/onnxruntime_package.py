"""The installed package of ONNX Runtime: `onnxruntime`, or `onnxruntime-gpu` in its place.

Both write to one folder: where both are installed, the later one's files are there, and to remove
either takes files of the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import driver_cuda, why_no_gpu

if TYPE_CHECKING:
    from types import ModuleType


CPU_PACKAGE, GPU_PACKAGE = "onnxruntime", "onnxruntime-gpu"
_REMOVE = f"pip uninstall -y {CPU_PACKAGE} {GPU_PACKAGE} && pip install "
CPU_FIX = f"{_REMOVE}{CPU_PACKAGE}"
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
_NEEDED = ("InferenceSession", "GraphOptimizationLevel", "get_available_providers")
_CUDA_13, _CUDA_12 = 13000, 12000
_LAST_FOR_12 = "<1.27"  # later wheels are built for CUDA 13


def packages() -> dict[str, str]:
    """Those of the two packages that pip installed in the folder of `import onnxruntime`.

    Returns:
        Name -> version.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # late: 40 modules

    here = {os.path.realpath(location.parent) for location in _places()}
    versions = {}
    for name in (CPU_PACKAGE, GPU_PACKAGE):
        try:
            package = distribution(name)
            number = package.version
        except (PackageNotFoundError, KeyError):  # its folder without its METADATA
            continue
        if number and (not here or os.path.realpath(str(package.locate_file(""))) in here):
            versions[name] = number
    return versions


def _places() -> list[Path]:
    """The folders, or the file, that `import onnxruntime` finds."""
    spec = find_spec(CPU_PACKAGE)
    if spec is None:
        return []
    return [Path(p) for p in spec.submodule_search_locations or filter(None, [spec.origin])]


def gpu_fix() -> str:
    """How to get an ONNX Runtime that can use the GPU here, for the driver that is there."""
    if why_no_gpu() is not None:
        return "nvidia-smi shows the driver and its GPUs"
    cuda = driver_cuda()
    if 0 < cuda < _CUDA_12:
        return (
            f"update the NVIDIA driver, which is for CUDA {cuda // 1000}.{cuda % 1000 // 10}: "
            "onnxruntime-gpu needs 525.60 (CUDA 12) or newer"
        )
    most = "" if cuda >= _CUDA_13 or not cuda else _LAST_FOR_12
    return f"{_REMOVE}'{GPU_PACKAGE}[cuda,cudnn]{most}'"


def cuda_major(package: Any) -> int:
    """The CUDA that an imported onnxruntime was built for, as 13; 0: for none."""
    number = str(getattr(package, "cuda_version", None) or "0").partition(".")[0]
    return int(number) if number.isdigit() else 0


def import_onnxruntime() -> ModuleType:
    """Import ONNX Runtime, whichever package it comes from.

    Raises:
        EngineError: it is not installed, cannot be imported, or lacks files.
    """
    module: ModuleType | None
    try:
        with _without_telemetry():
            module = import_module("onnxruntime")
        lacks = next((name for name in _NEEDED if not hasattr(module, name)), None)
        why = None if lacks is None else f"it has no {lacks}"
    except (Exception, SystemExit) as error:  # half a package fails in any way
        missing = isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime"
        module, why = None, "" if missing else f"{type(error).__name__}: {error}"
    if module is not None and why is None:
        return module
    installed, locations = packages(), _places()
    if why or installed:
        names = " and ".join(f"{name} {number}" for name, number in installed.items())
        at = f"at {locations[0]}, of no package of pip" if locations else "of no package"
        text = f"the installed onnxruntime ({names or at}) is broken"
        text += f": {why}" if why else ": its files are not there"
    else:
        text = "onnxruntime is not installed"
    fixes = [f"for the CPU: {CPU_FIX}"]
    if why_no_gpu() is None:
        fixes.insert(0, f"for the GPU: {gpu_fix()}")
    if locations and not installed:
        fixes.insert(0, f"if {locations[0]} is your own: rename it")
    raise EngineError(text, expected="one whole package of ONNX Runtime", fix=fixes)


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Switch usage events off for an import in the block; the environment stays as it was.

    ONNX Runtime 1.32 keeps a database of them in the user's cache, and sends it, unless a variable
    is set while it is imported.
    """
    if _NO_TELEMETRY in os.environ:
        yield
        return
    os.environ[_NO_TELEMETRY] = "1"
    try:
        yield
    finally:
        os.environ.pop(_NO_TELEMETRY, None)


def why_no_cuda(module: ModuleType) -> str | None:
    """Why an imported ONNX Runtime cannot compute on a GPU, or None."""
    try:
        providers = module.get_available_providers()
    except Exception as error:  # half a package fails in any way
        return f"this onnxruntime does not say what it can use: {type(error).__name__}: {error}"
    if "CUDAExecutionProvider" in providers:
        return None
    if len(packages()) > 1:
        return (
            f"this onnxruntime is built without CUDA: {CPU_PACKAGE} and {GPU_PACKAGE} are both "
            f"installed, write to one folder, and the files there are those of {CPU_PACKAGE}"
        )
    return "this onnxruntime is built without CUDA"
