"""Engines: `BuildOptions` -> `Plan` -> `Session`. Names resolve on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions, build
    from noria.engine.image_input import network_dims
    from noria.engine.locate import load_or_build
    from noria.engine.plan import Plan, PlanSummary
    from noria.engine.plan_header import PlanHeader
    from noria.engine.session import Session, TensorSpec
    from noria.engine.shelf import engine_path

_LAZY = {
    "BuildOptions": "builder",
    "Plan": "plan",
    "PlanHeader": "plan_header",
    "PlanSummary": "plan",
    "Session": "session",
    "TensorSpec": "session",
    "build": "builder",
    "engine_path": "shelf",
    "load_or_build": "locate",
    "network_dims": "image_input",
}

__all__ = [
    "BuildOptions",
    "Plan",
    "PlanHeader",
    "PlanSummary",
    "Session",
    "TensorSpec",
    "build",
    "engine_path",
    "load_or_build",
    "network_dims",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'noria.engine' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"noria.engine.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
