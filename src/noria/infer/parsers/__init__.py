"""Built-in detector parsers: the coverage grid, and heads under well-known function names."""

from noria.infer.parsers.catalogue import WELL_KNOWN, builtin_parser, suggest
from noria.infer.parsers.coverage import parse_coverage_bbox

__all__ = ["WELL_KNOWN", "builtin_parser", "parse_coverage_bbox", "suggest"]
