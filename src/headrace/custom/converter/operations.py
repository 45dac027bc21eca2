"""Operations of a worker process on a library of message payloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.types import Message
from headrace.custom.converter.host import ConverterHost
from headrace.custom.guard.ipc import Arrays, notices_json
from headrace.custom.preparation.host import FRAME, OBJECT, rows_of

if TYPE_CHECKING:
    from headrace.custom.guard.serve import LibraryWorker

_KEY = 0  # of the host among the objects that a worker keeps


def open_library(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Load the library and make its context."""
    host = ConverterHost(
        Path(payload["path"]), payload["config"], payload["type"], payload["of_metadata"]
    )
    worker.kept[_KEY] = host
    return {"notices": notices_json(host.notices)}, []


def convert(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Make the payloads of a frame, see `ConverterHost.call`."""
    host = worker.kept[_KEY]
    assert isinstance(host, ConverterHost)
    frame, objects = arrays
    return {}, host.call(
        rows_of(frame, FRAME), rows_of(objects, OBJECT), payload["whole"], payload["time"],
        payload["sensor"],
    )  # fmt: skip
