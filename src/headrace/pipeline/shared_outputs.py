"""Outputs of a run in several processes: lines that one writes for all, and files of one source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import MediaError
from headrace._core.plain_record import PlainRecord
from headrace.config.pipeline_spec import SinkSpec
from headrace.media.sinks.naming import ENCODED_SUFFIXES, has_placeholder
from headrace.media.sinks.opening import check_sinks, split_spec

if TYPE_CHECKING:
    from headrace.config import PipelineSpec

_FOLDERS = ("images", "kitti", "kitti-track", "kitti-primary", "kitti-objects", "dota")
"""Kinds that write files of each source; names of the files tell the sources apart."""


class SharedOutputs(PlainRecord, frozen=True):
    """The outputs of a pipeline.

    Attributes:
        lines: JSON Lines of all sources, which the process that starts the others writes.
        apart: those that each process writes for its own sources.
    """

    lines: str | None
    apart: tuple[SinkSpec, ...]

    @classmethod
    def of(cls, spec: PipelineSpec) -> SharedOutputs:
        """Sort the outputs of a pipeline.

        Raises:
            MediaError: one needs all sources in one process, or the sources come and go.
        """
        if spec.keep_open:
            raise MediaError(
                "sources that come and go need one process", fix="leave --processes out"
            )
        sinks = {sink.text: sink for sink in spec.sinks if sink.text}
        check_sinks(list(sinks), [s.uri for s in spec.sources])
        apart = [text for text, sink in sinks.items() if _is_apart(sink, spec)]
        together = [text for text in sinks if text not in apart]
        lines = [text for text in together if split_spec(text)[0] == "jsonl"]
        if len(together) > 1 or lines != together:
            raise MediaError(
                f"several processes cannot write {', '.join(together)}",
                expected="one output of JSON Lines: -o out.jsonl; files of each source: "
                "-o '{source}.mp4', -o images:DIR",
                fix="write JSON Lines, and make other files of them afterwards; or leave "
                "--processes out",
            )
        return cls(lines[0] if lines else None, tuple(sinks[text] for text in apart))

    @property
    def of_a_process(self) -> tuple[SinkSpec, ...]:
        """The outputs of each process; lines go to its standard output."""
        lines = SinkSpec(kind="jsonl", path=Path("-"))
        return (*self.apart, *([] if self.lines is None else [lines]))


class NamedSource(PlainRecord, frozen=True):
    """A source that may be another process's."""

    name: str
    source_id: int


def _is_apart(sink: SinkSpec, spec: PipelineSpec) -> bool:
    """Whether each of its files is of one source."""
    assert sink.text is not None
    kind, path = split_spec(sink.text)
    if sink.source is not None or has_placeholder(sink.text):
        return True
    if kind == "images" and (spec.tiler is not None or _is_one_image(path)):
        return False
    return kind in _FOLDERS


def _is_one_image(path: Path) -> bool:
    return path.suffix.lower() in ENCODED_SUFFIXES and "%" not in path.name and not path.is_dir()
