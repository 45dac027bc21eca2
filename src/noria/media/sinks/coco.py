"""COCO JSON, written as it grows. The format is documented in docs/formats.md."""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from pathlib import Path

from noria.media.frame import Frame
from noria.media.sinks.base import Sink, make_folder, renamed_to, write_error
from noria.media.sinks.files import create, write_all
from noria.media.sinks.objects import finite_rows
from noria.media.sources.images import IMAGE_SUFFIXES
from noria.meta import FrameMeta

__all__ = ["CocoSink"]

_HEAD = b'{"info":{"description":"Detections by Noria"},"licenses":[],\n"annotations":[\n'
_ANNOTATION = (
    '{"id":%d,"image_id":%d,"category_id":%d,"bbox":[%.3f,%.3f,%.3f,%.3f],'
    '"area":%.3f,"iscrowd":0,"score":%.6f}'
)
_CHUNK = 1 << 20


class CocoSink(Sink):
    """One JSON document; memory stays flat however long the video is.

    Annotations go straight to `NAME.part` beside the destination, images to an unnamed file until
    the end, and the finished file is renamed. When the disk is full, as many whole frames are kept
    as fit.
    """

    kind = "coco"

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name, path)
        make_folder(path.parent, name)
        self._target = renamed_to(path, name, "JSON")
        folder = self._target.parent
        make_folder(folder, name)
        self._part = self._target.with_name(self._target.name + ".part")
        self._fd = create(self._part, name)
        self._images = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        write_all(self._fd, _HEAD)
        # Where each frame begins in both files, to cut back to whole frames.
        self._annotation_at = array("q", [len(_HEAD)])
        self._image_at = array("q", [0])
        self._annotations = 0
        self._categories: dict[tuple[int, int], int] = {}
        self._owner: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._lost = 0

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        number = self.frames + 1
        keys, values, lost = finite_rows(meta)
        for component in meta.objects.labels:
            self._name_categories(meta, component)
        lines: list[str] = []
        for key, (score, left, top, width, height) in zip(keys, values.tolist(), strict=True):
            box = (left, top, width, height)
            category = self._category(key)
            first = self._annotations + len(lines) + 1
            lines.append(_ANNOTATION % (first, number, category, *box, width * height, score))
        before, images = self._annotation_at[-1], self._image_at[-1]
        text = "".join(
            (",\n" if self._annotations + i else "") + line for i, line in enumerate(lines)
        )
        data = text.encode()
        image = json.dumps(
            {
                "id": number,
                "file_name": _file_name(frame, meta),
                "width": meta.width,
                "height": meta.height,
                "source": meta.source,
                "frame": meta.frame,
                "pts_ns": meta.pts_ns,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        entry = ((",\n" if self.frames else "") + image).encode("utf-8", "backslashreplace")
        write_all(self._fd, data, size=before)
        try:
            write_all(self._images.fileno(), entry, size=images)
        except OSError:
            os.ftruncate(self._fd, before)
            os.lseek(self._fd, before, os.SEEK_SET)
            raise
        self._annotation_at.append(before + len(data))
        self._image_at.append(images + len(entry))
        self._annotations += len(lines)
        self._lost += lost

    def _category(self, key: tuple[int, int]) -> int:
        """The id of a class: its class id, unless a class of another component has that."""
        known = self._categories.get(key)
        if known is not None:
            return known
        component, class_id = key
        category = class_id
        if self._owner.setdefault(category, component) != component:
            category = max(self._owner) + 1
            self._owner[category] = component
        self._categories[key] = category
        self._names.setdefault(category, f"class_{class_id}")
        return category

    def _name_categories(self, meta: FrameMeta, component: int) -> None:
        """All classes of a component, also those never seen."""
        if (component, -1) in self._categories:
            return
        self._categories[component, -1] = -1  # done
        for class_id, label in enumerate(meta.objects.labels[component]):
            self._names[self._category((component, class_id))] = label

    def _finish(self) -> None:
        if self._lost:
            self._notice("warning", f"{self._lost} objects without finite numbers were left out")
        kept, failure = self.frames, None
        while True:
            try:
                self._write_end(kept)
                break
            except OSError as error:
                failure = failure or error
                if not kept:
                    self._give_up()
                    raise
                kept -= max(1, kept // 16)  # make room: fewer frames, but whole ones
        os.close(self._fd)
        self._images.close()
        os.replace(self._part, self._target)
        if failure is not None:
            self._notice("warning", f"only the first {kept} of {self.frames} frames had room")
            raise write_error(self.path, failure, None, kept) from failure

    def _write_end(self, frames: int) -> None:
        """Images and categories after the annotations of the first `frames` frames."""
        os.ftruncate(self._fd, self._annotation_at[frames])
        os.lseek(self._fd, 0, os.SEEK_END)
        write_all(self._fd, b'\n],\n"images":[\n')
        left = self._image_at[frames]
        os.lseek(self._images.fileno(), 0, os.SEEK_SET)
        while left:
            chunk = os.read(self._images.fileno(), min(left, _CHUNK))
            write_all(self._fd, chunk)
            left -= len(chunk)
        categories = ",\n".join(
            json.dumps({"id": i, "name": n}, ensure_ascii=False, separators=(",", ":"))
            for i, n in sorted(self._names.items())
        )
        end = f'\n],\n"categories":[\n{categories}\n]}}\n'
        write_all(self._fd, end.encode("utf-8", "backslashreplace"))

    def _give_up(self) -> None:
        os.close(self._fd)
        self._images.close()
        self._part.unlink(missing_ok=True)


def _file_name(frame: Frame, meta: FrameMeta) -> str:
    """The name of the image file; a number for frames of video."""
    path = Path(frame.source)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return path.name
    return f"frame_{meta.frame:06d}.jpg"
