"""Engines: `BuildOptions` -> `Plan` -> `Session`. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions, build
    from noria.engine.plan import Plan, PlanSummary
    from noria.engine.plan_header import PlanHeader
    from noria.engine.session import Session
    from noria.network.tensor_spec import TensorSpec
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".builder": "BuildOptions build",
            ".plan": "Plan PlanSummary",
            ".plan_header": "PlanHeader",
            ".session": "Session TensorSpec",
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
]
