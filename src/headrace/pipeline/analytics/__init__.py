"""Counting objects in regions and across lines. Names resolve on first use.

Start at `analyzer.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.pipeline.analytics.analyzer import Analytics
    from headrace.pipeline.analytics.rules import (
        AnalyticsRules,
        CrossingMode,
        Crowd,
        Heading,
        Line,
        Region,
        SourceRules,
    )
    from headrace.pipeline.analytics.rules_file import load_rules
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".analyzer": "Analytics",
            ".rules": "AnalyticsRules CrossingMode Crowd Heading Line Region SourceRules",
            ".rules_file": "load_rules",
        },
    )

__all__ = [
    "Analytics",
    "AnalyticsRules",
    "CrossingMode",
    "Crowd",
    "Heading",
    "Line",
    "Region",
    "SourceRules",
    "load_rules",
]
