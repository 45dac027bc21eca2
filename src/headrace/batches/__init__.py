"""Many videos and images at once: on the cores of a machine, or on a Ray cluster.

Names resolve on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.batches import ray
    from headrace.batches.batch_run import BatchReport
    from headrace.batches.inputs import expand_inputs
    from headrace.batches.running import batch
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {".inputs": "expand_inputs", ".batch_run": "BatchReport", ".running": "batch"},
        modules=(".ray",),
    )

__all__ = ["BatchReport", "batch", "expand_inputs", "ray"]
