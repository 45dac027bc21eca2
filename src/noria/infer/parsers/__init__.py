"""Built-in parsers under well-known function names, and the coverage grid."""

from collections.abc import Mapping

from noria.infer.parsers.catalogue import WELL_KNOWN, builtin_parser, suggest
from noria.infer.parsers.coverage import parse_coverage_bbox
from noria.meta import BoxParser, ClassifierParser, SegmentationParser

WELL_KNOWN_CLASSIFIERS: Mapping[str, ClassifierParser] = {}
WELL_KNOWN_SEGMENTATIONS: Mapping[str, SegmentationParser] = {}
WELL_KNOWN_INSTANCES: Mapping[str, BoxParser] = {}

__all__ = [
    "WELL_KNOWN",
    "WELL_KNOWN_CLASSIFIERS",
    "WELL_KNOWN_INSTANCES",
    "WELL_KNOWN_SEGMENTATIONS",
    "builtin_parser",
    "parse_coverage_bbox",
    "suggest",
]
