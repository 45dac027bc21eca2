"""Live sources that requests added, in a file: the next life of the service opens them again."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace._core.files import (
    os_errors,
    os_reason,
    sha256_of,
    state_folder,
    write_atomically,
)
from headrace._core.findings import Finding
from headrace._core.text import counted, error_text, quoted
from headrace.config.paths import is_stream, safe_uri, uri_trouble
from headrace.config.pipeline_spec import SourceSpec
from headrace.pipeline.decoder_memory import DecoderMemory
from headrace.pipeline.source_opening import gpu_of, open_listed

if TYPE_CHECKING:
    from headrace.live.allowed import AllowedSources
    from headrace.pipeline import Pipeline

_VERSION = 1
_MOST_ID = 1 << 31
_DAMAGED = ".unreadable"


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
        self._file = file
        self._lock = threading.Lock()
        self._sources: dict[int, KeptSource] = {}
        self._idle: list[KeptSource] = []  # that this life does not open

    @classmethod
    def of_service(cls, configs: Sequence[str | Path], port: int) -> KeptSources:
        """The list of a service in the state folder: each set of configs and port has its own."""
        names = [os.path.abspath(name) for name in configs]
        key = sha256_of("\0".join([*names, str(port)]).encode())[:16]
        return cls(state_folder() / "services" / f"{key}.json")

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
        entries = self._read(pipeline)
        memory = DecoderMemory(len(entries))
        for entry in entries:
            try:
                restored = _reopened(entry, pipeline, allowed, memory)
            except HeadraceError as error:
                text = f"a source of an earlier request is not opened again: {error:brief}"
                where = safe_uri(entry.name or entry.uri)
                fix = f"allow or mend it, or remove its entry from {self._file}"
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

    def _read(self, pipeline: Pipeline) -> list[KeptSource]:
        """The list on disk, by ids; one that cannot be read is put aside, with a warning."""
        if self._file is None or not self._file.exists():
            return []
        try:
            with os_errors(HeadraceError, "it cannot be read", self._file):
                return _parsed(self._file.read_bytes())
        except HeadraceError as error:
            aside = self._file.with_name(self._file.name + _DAMAGED)
            with suppress(OSError):
                self._file.replace(aside)
            text = f"the sources of earlier requests are not opened again: {error:brief}"
            fix = (f"the list is kept as {aside}",)
            pipeline.note(
                Finding("source-not-restored", "warning", text, str(self._file), {}, None, fix)
            )
            return []

    def _write(self, pipeline: Pipeline) -> None:
        """Write the list; the lock is held."""
        if self._file is None:
            return
        entries = [*self._sources.values(), *self._idle]
        text = json.dumps({"version": _VERSION, "sources": [asdict(e) for e in entries]}, indent=1)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._file, [text.encode()], mode=0o600)
        except OSError as error:
            why = "the list of sources that requests added cannot be written"
            text = f"{why}, and a restart will not know them: {os_reason(error)}"
            notice = Finding("sources-not-kept", "warning", text, str(self._file))
            if notice not in pipeline.notices:
                pipeline.note(notice)


def _reopened(
    entry: KeptSource, pipeline: Pipeline, allowed: AllowedSources, memory: DecoderMemory
) -> KeptSource:
    """Add a source as one of a pipeline file is added; under another id where its own is taken.

    Raises:
        HeadraceError: requests may not name it today, or it cannot be opened.
    """
    spec = SourceSpec.given(allowed.checked(entry.uri))
    source = open_listed(spec, entry.id, True, memory, gpu_of(pipeline.stages), retried=True)
    return replace(entry, id=pipeline.add_source(source, name=entry.name))


def _parsed(data: bytes) -> list[KeptSource]:
    """The sources of a list.

    Raises:
        HeadraceError: it is none.
    """
    try:
        content = json.loads(data)
        version = content["version"]
        entries = [KeptSource(**row) for row in content["sources"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise HeadraceError(f"it is damaged: {error_text(error)}") from error
    if version != _VERSION:
        raise HeadraceError(f"it has version {quoted(str(version))}", expected=str(_VERSION))
    for entry in entries:
        texts = (entry.uri, entry.name or "", entry.camera_id or "")
        whole = isinstance(entry.id, int) and not isinstance(entry.id, bool)
        if not (whole and 0 <= entry.id < _MOST_ID and all(isinstance(t, str) for t in texts)):
            raise HeadraceError(f"it is damaged: {quoted(str(entry.id))} is no source")
        if uri_trouble(entry.uri) or not is_stream(entry.uri):
            raise HeadraceError(f"it is damaged: source {entry.id} is no stream or camera")
    return sorted(entries, key=lambda entry: entry.id)
