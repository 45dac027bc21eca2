"""Operations of a worker process on a low-level tracker library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import CustomLibraryError
from headrace._core.types import Message
from headrace.custom.guard.ipc import Arrays, notices_json
from headrace.custom.nvmot.host import NvmotHost, SurfaceImage
from headrace.custom.nvmot.records import MISC_KINDS
from headrace.custom.nvmot.surfaces import formats, gray_image

if TYPE_CHECKING:
    from headrace.custom.guard.serve import LibraryWorker

_KEY = 0  # of the context among the objects that a worker keeps
_FRAMES = 12  # of a trial: more than most probations
_BOXES = np.array([[100, 100, 60, 90], [400, 200, 80, 60]], np.float32)


def _opened(payload: Message) -> NvmotHost:
    return NvmotHost(
        Path(payload["path"]), payload["generation"], payload["config"], payload["width"],
        payload["height"], payload["streams"],
    )  # fmt: skip


def describe(host: NvmotHost) -> dict[str, Any]:
    """Make the fields of `TrackerAnswer`."""
    query = host.query
    colors = query.get("colorFormats") or [0]
    return {
        "transforms": int(query.get("numTransforms", 0)),
        "color": int(colors[0]),
        "memory": int(query.get("memType", 0)),
        "records": [kind for kind, key in MISC_KINDS.items() if query.get(key)],
        "lacking": host.lacking,
    }


def open_context(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Load the library and make its context."""
    host = _opened(payload)
    worker.kept[_KEY] = host
    return {**describe(host), "notices": notices_json(host.notices)}, []


def track(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Track the objects of a frame; see `NvmotHost.process`."""
    image = None
    if len(arrays) > 3:
        color, width, height, planes = payload["image"]
        image = SurfaceImage(color, width, height, [tuple(p) for p in planes], arrays[3])
    host = worker.kept[_KEY]
    assert isinstance(host, NvmotHost)
    boxes, classes, confidences = arrays[:3]
    return {}, host.process(
        payload["stream"], payload["frame"], tuple(payload["size"]),
        (boxes, classes, confidences), payload["inferred"], payload["pts_ns"], image,
    )  # fmt: skip


def change(worker: LibraryWorker, payload: Message, arrays: Arrays) -> tuple[Message, Arrays]:
    """Change settings; see `NvmotHost.change`."""
    host = worker.kept[_KEY]
    assert isinstance(host, NvmotHost)
    host.change(payload["text"])
    return {}, []


def close_context(
    worker: LibraryWorker, payload: Message, arrays: Arrays
) -> tuple[Message, Arrays]:
    """Remove the source, end the context."""
    host = worker.kept.pop(_KEY, None)
    if isinstance(host, NvmotHost):
        host.remove(payload["stream"])
        host.close()
    return {}, []


def try_generation(
    worker: LibraryWorker, payload: Message, arrays: Arrays
) -> tuple[Message, Arrays]:
    """Whether the open context makes sense of its structures: two boxes that stand still."""
    host = worker.kept[_KEY]
    assert isinstance(host, NvmotHost)
    try:
        return {"sound": _tried(host, payload)}, []
    except CustomLibraryError:
        return {"sound": False}, []


def _tried(host: NvmotHost, payload: Message) -> bool | None:
    said = describe(host)
    if said["transforms"] > 1 or not 0 <= host.query.get("batchMode", 0) <= 3:
        return False
    if said["transforms"] and said["color"] not in formats():
        return False
    image = gray_image(said["color"], payload["width"], payload["height"])
    seen: bool | None = None
    for number in range(_FRAMES):
        ids, numbers, ints, *_ = host.process(
            0, number, (payload["width"], payload["height"]),
            (_BOXES, np.zeros(2, np.int32), np.full(2, 0.9, np.float32)), True, number * 40_000_000,
            image if said["transforms"] else None,
        )  # fmt: skip
        if not len(ids):
            continue
        off = np.abs(numbers[:, None, :4] - _BOXES[None]).max(axis=2).min(axis=1)
        if (
            len(ids) > 2
            or (off > 20).any()
            or ints[:, 0].any()
            or len(set(ids.tolist())) < len(ids)
        ):
            return False
        seen = True if len(ids) == 2 else seen
    return seen
