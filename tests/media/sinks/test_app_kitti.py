"""KITTI text as deepstream-app dumps it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace.media import open_sink
from headrace.media.frame import Frame
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, FrameMeta
from headrace.meta.detections import Space


def meta(source_id: int, frame: int, boxes: list[list[float]]) -> FrameMeta:
    values = FrameMeta("a", source_id, frame, 0, 640, 480)
    count = len(boxes)
    if count:
        rects = np.array(boxes, np.float32)
        found = Detections(
            rects, np.full(count, 0.5, np.float32), np.zeros(count, np.int32), space=Space.FRAME
        )
        values.objects.append(found, component_id=1, labels=("big truck",))
    return values


def image(source_id: int, frame: int) -> Frame:
    array = np.zeros((480, 640, 3), np.uint8)
    return Frame.from_array(array, frame=frame, source_id=source_id)


def written(kind: str, folder: Path, metas: list[FrameMeta]) -> dict[str, str]:
    with open_sink(f"{kind}:{folder}") as sink:
        for values in metas:
            sink.write(image(values.source_id, values.frame), values)
            assert len(list(folder.iterdir())) > 0  # while it runs
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_boxes_of_the_primary(tmp_path: Path) -> None:
    files = written(
        "kitti-primary", tmp_path / "d", [meta(0, 0, [[10, 20, 30, 40]]), meta(2, 1, [])]
    )
    zeros = " ".join(["0.0"] * 7)
    assert files == {
        "00_000_000000.txt": "big truck 0.0 0 0.0 10.000000 20.000000 40.000000 60.000000 "
        f"{zeros} 0.500000\n",
        "00_002_000001.txt": "",
    }


def test_tracks_have_their_number_and_the_confidence_of_the_tracker(tmp_path: Path) -> None:
    values = meta(1, 3, [[10, 20, 30, 40], [0, 0, 5, 5]])
    values.objects.object_ids[:] = [7, UNTRACKED_OBJECT_ID]
    values.objects.tracker_confidences = np.array([0.25, 0.0], np.float32)
    (text,) = written("kitti-objects", tmp_path / "d", [values]).values()
    first, second = text.splitlines()
    assert first.startswith("big truck 7 0.0 0 0.0 10.000000 20.000000 40.000000 60.000000 0.0")
    assert first.endswith(" 0.250000")
    assert second.startswith("big truck 18446744073709551615 0.0 0 0.0 ")
