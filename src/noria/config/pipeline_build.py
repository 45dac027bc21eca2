"""From the parts that a reader found to a `PipelineSpec`."""

from __future__ import annotations

from typing import Any

from noria.config.document import Document, report
from noria.config.origin import Origin
from noria.config.pipeline_spec import (
    ModelSpec,
    OsdSpec,
    PipelineSpec,
    SinkSpec,
    SourceSpec,
    TilerSpec,
    TrackerSpec,
)
from noria.config.pipeline_yaml import Parts

_TYPES: dict[str, Any] = {
    "sources": SourceSpec,
    "models": ModelSpec,
    "tracker": TrackerSpec,
    "tiler": TilerSpec,
    "osd": OsdSpec,
    "sinks": SinkSpec,
}
_MANY = ("sources", "models", "sinks")


def build_spec(parts: Parts, document: Document) -> PipelineSpec:
    """The spec of a file without problems.

    Raises:
        ConfigError: the parts do not fit together.
    """
    values: dict[str, Any] = dict(parts.top)
    origins: dict[str, Origin] = dict(parts.origins)
    for name, items in parts.items.items():
        specs = [_TYPES[name].read(v, o) for v, o in items]
        if name in _MANY:
            values[name] = tuple(specs)
        elif specs:
            values[name] = specs[-1]
    spec = PipelineSpec.read(values, origins)
    spec._path = document.path
    for sink in spec.sinks:
        spec.source_index(sink)
    repeated = [s for s in spec.sources if s.camera_id is not None]
    _unique(repeated, document)
    report(document.path, document.problems)
    spec._notices = tuple(n for _, n in sorted(document.notices, key=lambda pair: pair[0]))
    return spec


def _unique(sources: list[SourceSpec], document: Document) -> None:
    seen: dict[int, Origin] = {}
    for source in sources:
        number = source.camera_id
        assert number is not None
        origin = source.origin("camera_id")
        if number in seen:
            document.refuse(
                origin.line or 1,
                f"camera-id {number} is given twice, first in line {seen[number].line}.",
                "a number for each source",
            )
        seen.setdefault(number, origin)
