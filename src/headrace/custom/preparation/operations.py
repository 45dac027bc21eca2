"""Operations of a worker process on a library of `nvdspreprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.types import Message
from headrace.custom.guard.ipc import Arrays, notices_json
from headrace.custom.preparation.host import FRAME, OBJECT, REGION, PreparationHost, rows_of

if TYPE_CHECKING:
    from headrace.custom.guard.serve import LibraryWorker

_KEY = 0  # of the host among the objects that a worker keeps


def open_library(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Load the library and call its initLib."""
    host = PreparationHost(Path(payload["path"]), payload["settings"])
    worker.kept[_KEY] = host
    return {"notices": notices_json(host.notices)}, []


def prepare(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Make a tensor, see `PreparationHost.call`; without arrays while it is not ready."""
    host = worker.kept[_KEY]
    assert isinstance(host, PreparationHost)
    frames, objects, regions, scaled, *images = arrays
    answer = host.call(
        rows_of(frames, FRAME), images, rows_of(objects, OBJECT), rows_of(regions, REGION), scaled
    )
    if answer is None:
        return {}, []
    tensor, rows = answer
    return {}, [tensor, np.frombuffer(rows.tobytes(), np.uint8)]


def close_library(
    worker: LibraryWorker, payload: Message, arrays: Arrays
) -> tuple[Message, Arrays]:
    """End its context."""
    host = worker.kept.pop(_KEY, None)
    if isinstance(host, PreparationHost):
        host.close()
    return {}, []
