"""Check plugins against the contract that TensorRT's documentation describes.

Names resolve on first use.

Start at `checking.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.diagnose.plugin_check.breach import Breach, PluginReport
    from headrace.diagnose.plugin_check.checking import check_library, check_network
    from headrace.diagnose.plugin_check.clauses import CLAUSES
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".breach": "Breach PluginReport",
            ".checking": "check_library check_network",
            ".clauses": "CLAUSES",
        },
    )

__all__ = ["CLAUSES", "Breach", "PluginReport", "check_library", "check_network"]
