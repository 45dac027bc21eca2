"""The fixture that compiles plugins."""

from __future__ import annotations

from tests.trt.host.conftest import compile_host

__all__ = ["compile_host"]
