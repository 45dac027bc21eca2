"""The package `cuda.bindings`, of newer CUDA-Python."""

from __future__ import annotations

from noria.trt.compat.shims import cuda_driver as driver
from noria.trt.compat.shims import cuda_nvrtc as nvrtc
from noria.trt.compat.shims import cuda_runtime as runtime

__all__ = ["driver", "nvrtc", "runtime"]
__path__: list[str] = []
