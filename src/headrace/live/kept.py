"""Live sources that requests added, in a file: the next life of the service opens them again."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import counted, quoted
from headrace.config.paths import is_stream, safe_uri, uri_trouble
from headrace.live.kept_file import KeptFile
from headrace.pipeline.decoder_memory import DecoderMemory
from headrace.pipeline.source_opening import open_requested

if TYPE_CHECKING:
    from headrace.live.allowed import AllowedSources
    from headrace.pipeline import Pipeline

_MOST_ID = 1 << 31


@dataclass(frozen=True, slots=True)
class KeptSource:
    """A live source that a request added.

    Attributes:
        id: of the source, in every life.
        uri: as the request named it, with user and password.
        name: in outputs; None is its own.
        camera_id: the original's; None for a request of Headrace's own path.
    """

    id: int
    uri: str
    name: str | None = None
    camera_id: str | None = None


class KeptSources:
    """The list of a service, written whole at each change; safe for several threads.

    A list that cannot be written is a warning of the pipeline, and the service runs on.

    Args:
        file: of the list, which this user alone may read; None keeps nothing.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = KeptFile(file, "the sources of earlier requests")
        self._lock = threading.Lock()
        self._sources: dict[int, KeptSource] = {}
        self._idle: list[KeptSource] = []  # that this life does not open

    @property
    def cameras(self) -> dict[str, int]:
        """The id of each source by the original's `camera_id`."""
        with self._lock:
            return {s.camera_id: s.id for s in self._sources.values() if s.camera_id is not None}

    def restore(self, pipeline: Pipeline, allowed: AllowedSources) -> None:
        """Add the sources of earlier lives to a pipeline; those that are away are waited for.

        One that may not be opened today, or cannot be, stays in the list, and a warning says why.

        Args:
            pipeline: of the service, which has not begun.
            allowed: what requests may name.
        """
        entries = self._file.read(pipeline, _parsed) or []
        memory = DecoderMemory(len(entries))
        for entry in entries:
            try:
                restored = _reopened(entry, pipeline, allowed, memory)
            except HeadraceError as error:
                text = f"a source of an earlier request is not opened again: {error:brief}"
                where = safe_uri(entry.name or entry.uri)
                fix = f"allow or mend it, or remove its entry from {self._file.path}"
                pipeline.note(
                    Finding("source-not-restored", "warning", text, where, {}, None, (fix,))
                )
                self._idle.append(entry)
            else:
                self._sources[restored.id] = restored
        if self._sources:
            text = f"{counted(len(self._sources), 'source')} of earlier requests came back"
            pipeline.note(Finding("sources-restored", "info", text))

    def keep(self, pipeline: Pipeline, source: KeptSource) -> None:
        """Add a source of a pipeline, if it is live: a file is not read twice."""
        live = any(s.live for s in pipeline.sources if s.source_id == source.id)
        if live:
            with self._lock:
                self._sources[source.id] = source
                self._write(pipeline)

    def forget(self, pipeline: Pipeline, source_id: int) -> bool:
        """Remove a source; False if it was not in the list."""
        with self._lock:
            there = self._sources.pop(source_id, None) is not None
            if there:
                self._write(pipeline)
        return there

    def _write(self, pipeline: Pipeline) -> None:
        """Write the list; the lock is held."""
        entries = [*self._sources.values(), *self._idle]
        self._file.write(pipeline, {"sources": [asdict(entry) for entry in entries]})


def _reopened(
    entry: KeptSource, pipeline: Pipeline, allowed: AllowedSources, memory: DecoderMemory
) -> KeptSource:
    """Add a source as one of a pipeline file is added; under another id where its own is taken.

    Raises:
        HeadraceError: requests may not name it today, or it cannot be opened.
    """
    source = open_requested(allowed.checked(entry.uri), entry.id, memory, pipeline.stages)
    return replace(entry, id=pipeline.add_source(source, name=entry.name))


def _parsed(content: Any) -> list[KeptSource]:
    """The sources of a list.

    Raises:
        HeadraceError: it is none.
    """
    entries = [KeptSource(**row) for row in content["sources"]]
    for entry in entries:
        texts = (entry.uri, entry.name or "", entry.camera_id or "")
        whole = isinstance(entry.id, int) and not isinstance(entry.id, bool)
        if not (whole and 0 <= entry.id < _MOST_ID and all(isinstance(t, str) for t in texts)):
            raise HeadraceError(f"it is damaged: {quoted(str(entry.id))} is no source")
        if uri_trouble(entry.uri) or not is_stream(entry.uri):
            raise HeadraceError(f"it is damaged: source {entry.id} is no stream or camera")
    return sorted(entries, key=lambda entry: entry.id)
