"""The package `cuda`, of CUDA-Python: `from cuda import cuda, cudart`."""

from __future__ import annotations

from noria.trt.compat.shims import cuda_bindings as bindings
from noria.trt.compat.shims import cuda_driver as cuda
from noria.trt.compat.shims import cuda_nvrtc as nvrtc
from noria.trt.compat.shims import cuda_runtime as cudart

__all__ = ["bindings", "cuda", "cudart", "nvrtc"]
__path__: list[str] = []
