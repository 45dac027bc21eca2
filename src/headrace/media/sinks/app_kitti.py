"""KITTI text as deepstream-app dumps it: a file per frame and stream, written while it runs.

Source: the dumps of the reference application, 5.0 to 9.1 (4.x wrote whole numbers and no
confidence).
"""

from __future__ import annotations

from pathlib import Path

from headrace._core.files import write_where_named
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, make_folder
from headrace.media.sinks.rows import finite_rows, label_of
from headrace.meta import FrameMeta

_APP = 0  # one application in a process
_BOX = "0.0 0 0.0 %f %f %f %f 0.0 0.0 0.0 0.0 0.0 0.0 0.0 %f\n"


class PrimaryKittiSink(Sink):
    """A folder with `00_PPP_FFFFFF.txt` for each frame: P is the index of the source, F the frame.

    A line is label, box and confidence in the 16 columns of KITTI, with six decimals; blanks in a
    label stay. A frame without objects has an empty file.
    """

    kind = "kitti-primary"
    fills_folder = True
    before_tracker = True

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name, path)
        make_folder(path, name)

    def _lines(self, meta: FrameMeta) -> list[str]:
        rows = finite_rows(meta)
        self._lost += rows.lost
        return [
            f"{label_of(meta.objects.labels, key)} "
            + _BOX % (left, top, left + width, top + height, score)
            for key, (score, left, top, width, height) in zip(
                rows.keys, rows.values.tolist(), strict=True
            )
        ]

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        name = f"{_APP:02d}_{meta.source_id:03d}_{meta.frame:06d}.txt"
        text = "".join(self._lines(meta))
        data = text.encode("utf-8", "backslashreplace")
        write_where_named(self.path / name, data, durable=False)


class ObjectKittiSink(PrimaryKittiSink):
    """The same files with all objects: the track id behind the label, the tracker's confidence.

    An object that no tracker follows has the id 18446744073709551615, as in the original.
    """

    kind = "kitti-objects"
    before_tracker = False

    def _lines(self, meta: FrameMeta) -> list[str]:
        rows, objects = finite_rows(meta), meta.objects
        self._lost += rows.lost
        scores = objects.tracker_confidences
        return [
            f"{label_of(objects.labels, key)} {int(objects.object_ids[index])} "
            + _BOX
            % (
                left, top, left + width, top + height,
                score if scores is None else float(scores[index]),
            )
            for key, index, (score, left, top, width, height) in zip(
                rows.keys, rows.indices, rows.values.tolist(), strict=True
            )
        ]  # fmt: skip
