"""Engines: `BuildOptions` -> `Plan` -> `Session`. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.engine.builder import BuildOptions, build
    from headrace.engine.plan import Plan, PlanSummary
    from headrace.engine.plan_header import PlanHeader
    from headrace.engine.session import Session
    from headrace.network.tensor_spec import TensorSpec
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
