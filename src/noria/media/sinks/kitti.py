"""KITTI object labels: one text file per frame. The columns are documented in docs/formats.md."""

from __future__ import annotations

import re
from pathlib import Path

from noria.media.frame import Frame
from noria.media.sinks.base import Sink, make_folder
from noria.media.sinks.files import FrameNames, write_file
from noria.media.sinks.objects import finite_rows, label_of
from noria.meta import FrameMeta

__all__ = ["KittiSink", "kitti_text"]

# What a picture cannot tell is zero: truncation, occlusion, angle, 3-D size, place and rotation.
_LINE = "%s 0.00 0 0.00 %.2f %.2f %.2f %.2f 0.00 0.00 0.00 0.00 0.00 0.00 0.00 %.6f\n"


def kitti_text(meta: FrameMeta) -> tuple[str, int]:
    """The 16 columns of every object, and how many objects had to be left out.

    Blanks in a label become underscores, an unnamed class is `class_N`: columns are separated by
    blanks. Corners are left, top, right, bottom in frame pixels.
    """
    keys, values, lost = finite_rows(meta)
    lines = []
    for key, (score, left, top, width, height) in zip(keys, values.tolist(), strict=True):
        name = re.sub(r"\s+", "_", label_of(meta, key).strip()) or f"class_{key[1]}"
        lines.append(_LINE % (name, left, top, left + width, top + height, score))
    return "".join(lines), lost


class KittiSink(Sink):
    """A folder with `000012.txt` for frame 12 of a video, `NAME.txt` for image NAME.

    Every frame has a file, an empty one if nothing was found.
    """

    kind = "kitti"

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name, path)
        make_folder(path, name)
        self._names = FrameNames("%06d")
        self._lost = 0

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        text, lost = kitti_text(meta)
        target = self.path / f"{self._names.stem(frame)}.txt"
        write_file(target, text.encode("utf-8", "backslashreplace"))
        self._lost += lost

    def _finish(self) -> None:
        if self._lost:
            self._notice("warning", f"{self._lost} objects without finite numbers were left out")
