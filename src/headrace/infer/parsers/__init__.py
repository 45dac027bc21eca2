"""Built-in parsers under well-known function names, and the coverage grid.

Names resolve on first use: a parser of the user's own needs none of them.

Start at `head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.infer.parsers.builtin import (
        BuiltinParser,
        better_than,
        parse_coverage_bbox,
        renaming,
    )
    from headrace.infer.parsers.catalogue import suggest
    from headrace.infer.parsers.well_known import (
        WELL_KNOWN,
        WELL_KNOWN_CLASSIFIERS,
        WELL_KNOWN_INSTANCES,
        WELL_KNOWN_SEGMENTATIONS,
        builtin_parser,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".builtin": "BuiltinParser better_than parse_coverage_bbox renaming",
            ".catalogue": "suggest",
            ".well_known": (
                "WELL_KNOWN WELL_KNOWN_CLASSIFIERS WELL_KNOWN_INSTANCES WELL_KNOWN_SEGMENTATIONS "
                "builtin_parser"
            ),
        },
        modules=(
            ".affinity", ".centres", ".classifiers", ".corners", ".coverage", ".end_to_end",
            ".keypoints", ".levels", ".nms_outputs", ".object_lists", ".points", ".priors",
            ".rcnn", ".rows", ".segmentation", ".ssd_detr", ".text", ".yolo",
        ),
    )  # fmt: skip

__all__ = [
    "WELL_KNOWN",
    "WELL_KNOWN_CLASSIFIERS",
    "WELL_KNOWN_INSTANCES",
    "WELL_KNOWN_SEGMENTATIONS",
    "BuiltinParser",
    "better_than",
    "builtin_parser",
    "parse_coverage_bbox",
    "renaming",
    "suggest",
]
