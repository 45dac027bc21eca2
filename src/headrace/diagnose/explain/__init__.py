"""One frame explained: every candidate, the step that dropped it, and the key to change.

Start at `explained.py`.
"""

from headrace.diagnose.explain.explained import (
    Explanation,
    explain,
    explain_frame,
    place_of,
)
from headrace.diagnose.explain.records import FrameExplanation, ModelExplanation

__all__ = [
    "Explanation",
    "FrameExplanation",
    "ModelExplanation",
    "explain",
    "explain_frame",
    "place_of",
]
