"""KITTI labels: objects of a frame, tracks of a sequence. The columns are in docs/formats.md."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from headrace._core.files import write_where_named
from headrace.media.frame import Frame
from headrace.media.sinks.base import (
    Sink,
    create,
    make_folder,
    require_there,
    write_all,
)
from headrace.media.sinks.naming import FrameNames
from headrace.media.sinks.rows import finite_rows, label_of
from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.meta.fields import text_beyond_label

# What an image cannot tell is zero: truncation, occlusion, angle, 3-D size, place and rotation.
_BOX = "%.2f %.2f %.2f %.2f 0.00 0.00 0.00 0.00 0.00 0.00 0.00 %.6f\n"
_LINE = f"%s 0.00 0 0.00 {_BOX}"
_TRACK_LINE = f"%d %d %s 0 0 0.00 {_BOX}"


def kitti_text(meta: FrameMeta, *, tracks: bool = False) -> tuple[str, int]:
    """The 16 columns of every object, and how many objects had to be left out.

    Blanks in a label become underscores, an unnamed class is `class_N`. Corners are left, top,
    right, bottom in frame pixels.

    Args:
        meta: the frame.
        tracks: 18 columns: frame number and track id come first, -1 for an object without.
    """
    rows = finite_rows(meta)
    ids = meta.objects.object_ids.tolist() if tracks else []
    lines = []
    for key, index, (score, left, top, width, height) in zip(
        rows.keys, rows.indices, rows.values.tolist(), strict=True
    ):
        name = one_word(meta, key, index)
        box = (left, top, left + width, top + height, score)
        if tracks:
            track = -1 if ids[index] == UNTRACKED_OBJECT_ID else ids[index]
            lines.append(_TRACK_LINE % (meta.frame, track, name, *box))
        else:
            lines.append(_LINE % (name, *box))
    return "".join(lines), rows.lost


def one_word(meta: FrameMeta, key: tuple[int, int], index: int) -> str:
    """Return the label of an object without blanks, which separate columns.

    Args:
        meta: its frame.
        key: its component and class; a class that has no name is `class_N`.
        index: its index in the frame; the full-frame object of a classifier has its text.
    """
    name = (
        text_beyond_label(meta.objects, index) if key[1] < 0 else label_of(meta.objects.labels, key)
    )
    return re.sub(r"\s+", "_", name.strip()) or f"class_{key[1]}"


class KittiSink(Sink):
    """A folder with `000012.txt` for frame 12 of a video, `NAME.txt` for image NAME.

    Every frame has a file, an empty one if nothing was found.

    Args:
        labels: label of each source by id, if there are several and they are known.
    """

    kind = "kitti"
    fills_folder = True

    def __init__(self, name: str, path: Path, *, labels: Mapping[int, str] | None = None) -> None:
        super().__init__(name, path)
        make_folder(path, name)
        self._names = FrameNames("%06d", labels)

    def _text(self, meta: FrameMeta) -> tuple[str, int]:
        return kitti_text(meta)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        text, lost = self._text(meta)
        target = self.path / f"{self._names.stem(frame)}.txt"
        write_where_named(target, text.encode("utf-8", "backslashreplace"), durable=False)
        self._lost += lost


class KittiTrackSink(Sink):
    """A folder with one file for each source: `0000.txt` for the source of id 0.

    Args:
        labels: label of each source by id: with several, they are the names of the files.
    """

    kind = "kitti-track"
    fills_folder = True

    def __init__(self, name: str, path: Path, *, labels: Mapping[int, str] | None = None) -> None:
        super().__init__(name, path)
        make_folder(path, name)
        self._labels = labels if labels and len(labels) > 1 else {}
        self._files: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        source = meta.source_id
        if source not in self._files:
            stem = self._labels.get(source, f"{source:04d}")
            self._files[source] = create(self.path / f"{stem}.txt", self.name)
            self._sizes[source] = 0
        text, lost = kitti_text(meta, tracks=True)
        data = text.encode("utf-8", "backslashreplace")
        require_there(self._files[source])
        write_all(self._files[source], data, size=self._sizes[source])
        self._sizes[source] += len(data)
        self._lost += lost

    def _finish(self) -> None:
        failure: OSError | None = None
        for fd in self._files.values():
            try:
                os.close(fd)
            except OSError as error:  # network file systems report a full disk here
                failure = error
        if failure is not None:
            raise failure
