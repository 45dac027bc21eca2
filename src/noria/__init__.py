"""Run an unmodified nvinfer config, model and custom parser anywhere."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.errors import NoriaError
    from noria.media.frame import ColorSpace, Frame, PixelFormat
    from noria.meta import (
        DetectionParams,
        Detections,
        FrameMeta,
        Layer,
        NetworkInfo,
        ObjectMeta,
        Space,
    )

__version__ = "0.1.0"

# Public name -> module; resolved on first use so that `import noria` stays light.
_LAZY = {
    "ColorSpace": "noria.media.frame",
    "DetectionParams": "noria.meta",
    "Detections": "noria.meta",
    "Frame": "noria.media.frame",
    "FrameMeta": "noria.meta",
    "Layer": "noria.meta",
    "NetworkInfo": "noria.meta",
    "NoriaError": "noria.errors",
    "ObjectMeta": "noria.meta",
    "PixelFormat": "noria.media.frame",
    "Space": "noria.meta",
}

__all__ = [
    "ColorSpace",
    "DetectionParams",
    "Detections",
    "Frame",
    "FrameMeta",
    "Layer",
    "NetworkInfo",
    "NoriaError",
    "ObjectMeta",
    "PixelFormat",
    "Space",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'noria' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
