"""Fixtures of the rooms that plans of configs stand on."""

from __future__ import annotations

from tests.engine.conftest import config, model_path
from tests.trt.host.conftest import (
    _registry_as_before,
    compile_for_tensorrt,
    compile_host,
    opened,
)

__all__ = [
    "_registry_as_before", "compile_for_tensorrt", "compile_host", "config", "model_path", "opened",
]  # fmt: skip
