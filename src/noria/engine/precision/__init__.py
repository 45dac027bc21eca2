"""Precision made explicit in the graph: half-precision casts, INT8 Q/DQ, and their calibration.

Names resolve on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.engine.precision.cache import CalibrationTable
    from noria.engine.precision.explicit import Exported, export, export_onnx

_LAZY = {
    "CalibrationTable": "cache",
    "Exported": "explicit",
    "export": "explicit",
    "export_onnx": "explicit",
}

__all__ = ["CalibrationTable", "Exported", "export", "export_onnx"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'noria.engine.precision' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"noria.engine.precision.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
