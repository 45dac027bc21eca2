"""Runtimes: each is one file here behind the protocols; nothing else imports a runtime.

Start at `protocol.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

from headrace._core.errors import EngineError
from headrace._core.lazy import install_command
from headrace._core.text import error_text
from headrace.engine.backends.onnxruntime_package import CPU_FIX, gpu_fix
from headrace.engine.backends.protocol import (
    Backend,
    CallingBackend,
    CompilingBackend,
    ExternalWeightsBackend,
    Optimization,
    PlacingRunner,
    PluginBackend,
    PluginKey,
    Runner,
    RunnerOptions,
    TypedRunner,
)

__all__ = [
    "BACKENDS",
    "DEFAULT_BACKEND",
    "GPU_RUNTIMES",
    "PACKAGES",
    "Backend",
    "CallingBackend",
    "CompilingBackend",
    "ExternalWeightsBackend",
    "Optimization",
    "PlacingRunner",
    "PluginBackend",
    "PluginKey",
    "Runner",
    "RunnerOptions",
    "TypedRunner",
    "get_backend",
    "gpu_runtime",
    "how_to_install",
    "installed_backends",
    "why_no_gpu_runtime",
]

DEFAULT_BACKEND = "onnxruntime"
BACKENDS = {
    "onnxruntime": "headrace.engine.backends.onnxruntime",
    "onnxruntime-cuda": "headrace.engine.backends.onnxruntime_cuda",
    "openvino": "headrace.engine.backends.openvino",
    "tensorrt": "headrace.engine.backends.tensorrt",
}
"""Backend name -> module with an object `backend`; imported on first use."""

GPU_RUNTIMES = ("onnxruntime-cuda", "tensorrt")
"""Backends that compute on an NVIDIA GPU; engines are built for the first that can run."""

PACKAGES = {
    "openvino": ("openvino",),
    "tensorrt": ("tensorrt", "tensorrt_rtx"),
}
"""Backends that are an extra of the same name -> packages of which each imports one."""


_TENSORRT = "or pip install tensorrt, for GPUs that RTX leaves out: H100, H200, B200"


def get_backend(name: str) -> Backend:
    """The backend called `name`.

    Raises:
        EngineError: there is none, or its runtime is not installed.
    """
    if name not in BACKENDS:
        raise EngineError(
            f"no runtime is called {name!r}", expected=f"one of {', '.join(sorted(BACKENDS))}"
        )
    try:
        return cast(Backend, importlib.import_module(BACKENDS[name]).backend)
    except EngineError:
        raise
    except (Exception, SystemExit) as error:  # half a package fails in any way
        missing = isinstance(error, ModuleNotFoundError) and error.name in PACKAGES.get(name, ())
        why = "is not installed" if missing else f"cannot be loaded: {error_text(error)}"
        raise EngineError(f"the runtime {name} {why}", fix=how_to_install(name)) from error


def how_to_install(name: str) -> tuple[str, ...]:
    """Commands of which one installs the package of the backend `name`."""
    if name not in PACKAGES:
        return (gpu_fix() if name in GPU_RUNTIMES else CPU_FIX,)
    command = install_command(name)
    return (command, _TENSORRT) if name == "tensorrt" else (command,)


def gpu_runtime() -> str:
    """The first of `GPU_RUNTIMES` that can run here; the first of all if none can."""
    return next((name for name, reason in _gpu_reasons() if reason is None), GPU_RUNTIMES[0])


def why_no_gpu_runtime() -> str | None:
    """Why no runtime computes on the GPU that is there, or None: one does.

    Raises:
        EngineError: ONNX Runtime is broken, and no other runtime is there.
    """
    reasons = [reason for _, reason in _gpu_reasons()]
    if not reasons:
        return get_backend(GPU_RUNTIMES[0]).why_not()
    return None if None in reasons else "; ".join(filter(None, reasons))


def _gpu_reasons() -> Iterator[tuple[str, str | None]]:
    """Each of `GPU_RUNTIMES` that can be loaded, and why it cannot run here or None."""
    for name in GPU_RUNTIMES:
        with suppress(EngineError):  # not installed, or broken: asking for it by name raises
            yield name, get_backend(name).why_not()


def installed_backends() -> list[str]:
    """Names of the backends that can run on this machine; the default one first."""
    usable = []
    for name in sorted(BACKENDS, key=lambda n: n != DEFAULT_BACKEND):
        packages = PACKAGES.get(name, ())
        if packages and not any(importlib.util.find_spec(p) for p in packages):
            continue
        try:
            if get_backend(name).why_not() is None:
                usable.append(name)
        except EngineError:  # installed, but broken: asking for it by name raises
            continue
    return usable
