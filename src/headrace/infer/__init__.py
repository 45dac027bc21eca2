"""One model on batches of frames: select, scale, run, parse, cluster, attach.

Names resolve on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.infer.batch import Batch
    from headrace.infer.engine_runs import RawOutput
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.trace import FrameTrace, ItemTrace, item_trace, trace_frame
    from headrace.infer.update import ModelUpdater
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".batch": "Batch",
            ".inferencer": "Inferencer",
            ".engine_runs": "RawOutput",
            ".trace": "FrameTrace ItemTrace item_trace trace_frame",
            ".update": "ModelUpdater",
        },
    )

__all__ = [
    "Batch",
    "FrameTrace",
    "Inferencer",
    "ItemTrace",
    "ModelUpdater",
    "RawOutput",
    "item_trace",
    "trace_frame",
]
