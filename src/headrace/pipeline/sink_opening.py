"""Sinks of a run, opened as a pipeline's list describes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import MediaError
from headrace.media import expand_sink_path, open_sink
from headrace.media.sinks.coding import Coding
from headrace.media.sinks.naming import has_placeholder
from headrace.pipeline.outlet import Route

if TYPE_CHECKING:
    from headrace.config.pipeline_spec import PipelineSpec, SinkSpec
    from headrace.media import Sink, Source
    from headrace.media.sinks.naming import HasName


def lasts(spec: PipelineSpec) -> bool:
    """True if outputs go on behind those of earlier runs."""
    return spec.append or (spec.keep_open and not spec.end_when_over)


def open_routes(
    spec: PipelineSpec,
    sources: Sequence[Source],
    named: Sequence[HasName],
    taken: Sequence[str | Path],
    undo: ExitStack,
) -> list[Route]:
    """Open the sinks; each is finished early if a later one cannot be opened.

    Args:
        spec: the pipeline.
        sources: whose frames are written.
        named: all sources of the run, which names of files tell apart.
        taken: what is read or written already.
        undo: gets what finishes the sinks.
    """
    routes: list[Route] = []
    by_id = {source.source_id: source for source in sources}
    inputs = list(taken)
    fps = next((s.fps for s in sources if s.fps), None)
    composed = spec.tiler is not None or spec.keep_open or len(sources) > 1

    def add(text: str, only: int | None, rate: float | None, sink_spec: SinkSpec) -> Sink:
        files = [file for source in sources for file in source.files]
        images = [file for file in files if text.endswith(file.name)]
        sink = open_sink(
            text,
            inputs=[*inputs, *images],
            fps=rate,
            sources=named if only is None else (),
            append=lasts(spec),
            coding=coding_of(sink_spec),
            container=sink_spec.container,
        )
        undo.callback(_abort, sink)
        inputs.append(sink.path)
        tiled = composed and only is None and sink.needs_pixels
        if spec.tiler is None and sink.kind != "video":
            tiled = False  # folders of images hold those of every source
        routes.append(Route(sink, only, tiled, sink.before_tracker))
        return sink

    for sink_spec in spec.sinks:
        text = sink_spec.text
        if text is None:
            continue
        only = None
        if sink_spec.source is not None:
            only = spec.source_index(sink_spec)
        if has_placeholder(text):
            if spec.keep_open:
                raise MediaError(
                    "this is one output for each source, and sources come and go",
                    where=str(sink_spec.origin("path").where or text),
                    fix="one output for all: a name without {source} and {id}",
                )
            for source in sources:
                if only in (None, source.source_id):
                    path = expand_sink_path(text, source, named)
                    add(path, source.source_id, source.fps, sink_spec)
        elif only is None:
            add(text, only, fps, sink_spec)
        elif only in by_id:  # else another process has its source
            add(text, only, by_id[only].fps, sink_spec)
    return routes


def coding_of(spec: SinkSpec) -> Coding | None:
    """How the video of an output is encoded; None as it always is."""
    fields = ("codec", "bitrate", "profile", "preset")
    values = {name: getattr(spec, name) for name in fields}
    values["gop"] = spec.key_frame_interval
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return None
    return Coding(**given)


def _abort(sink: Sink) -> None:
    with suppress(Exception):
        sink.abort("the run could not start")
