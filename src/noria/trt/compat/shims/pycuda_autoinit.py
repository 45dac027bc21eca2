"""`pycuda.autoinit`: there is nothing to initialise."""

from __future__ import annotations

from noria.trt.compat.shims.pycuda_driver import Context, Device

__all__ = ["context", "device"]
device = Device(0)
context = Context()
