"""Boxes, objects and items that are left out: counted, and those of a detector in words.

Start at `counts.py`.
"""

from headrace.infer.tally.counts import (
    HALVINGS,
    MEASURED,
    BoxTally,
    ItemTally,
    ObjectTally,
    Tally,
)

__all__ = ["HALVINGS", "MEASURED", "BoxTally", "ItemTally", "ObjectTally", "Tally"]
