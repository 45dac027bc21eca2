"""The package `pycuda`."""

from __future__ import annotations

from noria.trt.compat.shims import pycuda_autoinit as autoinit
from noria.trt.compat.shims import pycuda_driver as driver

__all__ = ["VERSION_TEXT", "autoinit", "driver"]
VERSION_TEXT = "2024.1"
__path__: list[str] = []
