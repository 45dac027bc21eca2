"""Precision made explicit in the graph: half-precision casts, INT8 Q/DQ, and their calibration.

Names resolve on first use.

Start at `rules.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.engine.precision.cache import CalibrationTable
    from headrace.engine.precision.explicit import Exported, export
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".cache": "CalibrationTable",
            ".explicit": "Exported export",
        },
    )

__all__ = ["CalibrationTable", "Exported", "export"]
