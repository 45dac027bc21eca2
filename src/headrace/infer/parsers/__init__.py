"""Built-in parsers under well-known function names, and the coverage grid.

Names resolve on first use: a parser of the user's own needs none of them.

Start at `head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.infer.parsers.catalogue import (
        WELL_KNOWN,
        WELL_KNOWN_CLASSIFIERS,
        WELL_KNOWN_INSTANCES,
        WELL_KNOWN_SEGMENTATIONS,
        BuiltinParser,
        better_than,
        builtin_parser,
        parse_coverage_bbox,
        renaming,
        suggest,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".catalogue": (
                "WELL_KNOWN WELL_KNOWN_CLASSIFIERS WELL_KNOWN_INSTANCES WELL_KNOWN_SEGMENTATIONS "
                "BuiltinParser better_than builtin_parser parse_coverage_bbox renaming suggest"
            )
        },
    )

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
