"""Engines: `BuildOptions` -> `Plan` -> `Session`. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._lazy import lazy

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions, build
    from noria.engine.image_input import network_dims
    from noria.engine.locate import load_or_build
    from noria.engine.plan import Plan, PlanSummary
    from noria.engine.plan_header import PlanHeader
    from noria.engine.session import Session, TensorSpec
    from noria.engine.shelf import engine_path
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".builder": "BuildOptions build",
            ".image_input": "network_dims",
            ".locate": "load_or_build",
            ".plan": "Plan PlanSummary",
            ".plan_header": "PlanHeader",
            ".session": "Session TensorSpec",
            ".shelf": "engine_path",
        },
    )

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
