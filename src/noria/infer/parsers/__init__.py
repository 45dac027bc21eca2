"""Built-in parsers under well-known function names, and the coverage grid."""

from noria.infer.parsers.catalogue import (
    WELL_KNOWN,
    WELL_KNOWN_CLASSIFIERS,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
    better_than,
    builtin_parser,
    renaming,
    suggest,
)
from noria.infer.parsers.coverage import parse_coverage_bbox

__all__ = [
    "WELL_KNOWN",
    "WELL_KNOWN_CLASSIFIERS",
    "WELL_KNOWN_INSTANCES",
    "WELL_KNOWN_SEGMENTATIONS",
    "better_than",
    "builtin_parser",
    "parse_coverage_bbox",
    "renaming",
    "suggest",
]
