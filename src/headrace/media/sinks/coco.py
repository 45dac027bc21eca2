"""COCO JSON, written as it grows. The format is documented in docs/formats.md."""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.media.frame import Frame
from headrace.media.names import IMAGE_SUFFIXES
from headrace.media.sinks.base import Sink, create, part_of, write_all
from headrace.media.sinks.naming import FrameNames
from headrace.media.sinks.rows import Components, Rows, finite_rows
from headrace.meta import FrameMeta, Objects
from headrace.meta.fields import FIELDS, has_extras, has_tracks
from headrace.meta.json_forms import classifier_dicts, to_json
from headrace.meta.shapes import skeleton_of_object

_HEAD = b'{"info":{"description":"Detections by Headrace"},"licenses":[],\n"annotations":[\n'
_ANNOTATION = (
    '{"id":%d,"image_id":%d,"category_id":%d,"bbox":[%.3f,%.3f,%.3f,%.3f],'
    '"area":%.3f,"iscrowd":0,"score":%.6f'
)
_CHUNK = 1 << 20
_SHAPES = ("mask", "keypoints")  # come first in an annotation
_FIELDS = sorted(FIELDS, key=lambda row: row.names[0] not in _SHAPES)


class CocoSink(Sink):
    """One JSON document; memory stays flat however long the video is.

    Annotations go straight to `NAME.part` beside the destination, images to an unnamed file until
    the end, and the finished file is renamed. When the disk is full, as many whole frames are kept
    as fit.

    Args:
        labels: label of each source by id, if there are several and they are known.
    """

    kind = "coco"

    def __init__(self, name: str, path: Path, *, labels: Mapping[int, str] | None = None) -> None:
        super().__init__(name, path)
        self._labels = labels or {}
        self._frame_names = FrameNames("frame_%06d", labels)
        self._components = Components()
        self._part = part_of(path, name, "JSON")
        self._fd = create(self._part.path, name, follow=False)
        folder = self._part.target.parent
        self._images = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        write_all(self._fd, _HEAD)
        # Where each frame begins in both files, to cut back to whole frames.
        self._annotation_at = array("q", [len(_HEAD)])
        self._image_at = array("q", [0])
        self._annotations = 0
        self._categories: dict[tuple[int, int], int] = {}
        self._owner: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._named: set[int] = set()
        self._skeletons: dict[int, dict[str, Any]] = {}  # by category

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        number = self.frames + 1
        rows = finite_rows(meta)
        self._components.see(meta)
        for component in meta.objects.labels:
            self._name_categories(meta, component)
        image = {
            "id": number,
            "file_name": self._file_name(frame, meta),
            "width": meta.width,
            "height": meta.height,
            "source": meta.source,
            "source_id": meta.source_id,
            "frame": meta.frame,
            "pts_ns": meta.pts_ns,
        }
        if not meta.inferred:
            image["inferred"] = False
        lines = self._annotate(meta, rows, number, image)
        before, images = self._annotation_at[-1], self._image_at[-1]
        text = "".join(
            (",\n" if self._annotations + i else "") + line for i, line in enumerate(lines)
        )
        data = text.encode("utf-8", "backslashreplace")
        entry = ((",\n" if self.frames else "") + to_json(image)).encode(
            "utf-8", "backslashreplace"
        )
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
        self._lost += rows.lost

    def _annotate(
        self, meta: FrameMeta, rows: Rows, number: int, image: dict[str, Any]
    ) -> list[str]:
        """Annotations of a frame; those of the whole frame go to `image`."""
        objects = meta.objects
        plain = not (has_tracks(objects) or has_extras(objects))
        lines: list[str] = []
        ids = [0] * len(objects)  # of annotations, by object
        for key, index, (score, left, top, width, height) in zip(
            rows.keys, rows.indices, rows.values.tolist(), strict=True
        ):
            if key[1] < 0:  # the full-frame object of a classifier is no box
                entries = classifier_dicts(objects.classifiers.get(index, ()))
                image["classifiers"] = [*image.get("classifiers", ()), *entries]
                continue
            first = self._annotations + len(lines) + 1
            ids[index] = first
            area, extra = width * height, ""
            if not plain:
                more = _extras(meta, index, ids)
                if "keypoints" in more:
                    self._note_skeleton(self._category(key), objects, index)
                area = more.pop("area", area)
                extra = to_json(more)[1:-1]
            line = _ANNOTATION % (
                first,
                number,
                self._category(key),
                left,
                top,
                width,
                height,
                area,
                score,
            )
            lines.append(f"{line},{extra}}}" if extra else f"{line}}}")
        return lines

    def _note_skeleton(self, category: int, objects: Objects, index: int) -> None:
        """Keep the names and bones of a category's keypoints, as its first object has them."""
        if category not in self._skeletons:
            skeleton = skeleton_of_object(objects, index)
            self._skeletons[category] = {
                "keypoints": skeleton.names,
                "skeleton": [[a + 1, b + 1] for a, b in skeleton.bones],  # COCO counts from 1
            }

    def _file_name(self, frame: Frame, meta: FrameMeta) -> str:
        """The name of the image file; for video the one that an image folder gives the frame."""
        path = Path(frame.source)
        if path.suffix.lower() in IMAGE_SUFFIXES and len(self._labels) < 2:
            return path.name
        suffix = path.suffix if path.suffix.lower() in IMAGE_SUFFIXES else ".jpg"
        return self._frame_names.stem(frame) + suffix

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
        if component in self._named:
            return
        self._named.add(component)
        for class_id, label in enumerate(meta.objects.labels[component]):
            self._names[self._category((component, class_id))] = label

    def _finish(self) -> None:
        kept, failure = self.frames, None
        while True:
            try:
                self._write_end(kept)
                break
            except OSError as error:
                failure = failure or error
                if not kept:
                    self.kept = 0
                    self._give_up()
                    raise
                kept -= max(1, kept // 16)  # make room: fewer frames, but whole ones
        os.close(self._fd)
        self._images.close()
        self.kept = kept
        self._part.finish()
        if failure is not None:
            raise failure

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
        several = self._components.several
        categories = ",\n".join(
            to_json(
                {"id": i, "name": n}
                | ({"component_id": self._owner[i]} if several else {})
                | self._skeletons.get(i, {})
            )
            for i, n in sorted(self._names.items())
        )
        end = f'\n],\n"categories":[\n{categories}\n]}}\n'
        write_all(self._fd, end.encode("utf-8", "backslashreplace"))

    def _give_up(self) -> None:
        os.close(self._fd)
        self._images.close()
        self._part.discard()


def _extras(meta: FrameMeta, index: int, ids: list[int]) -> dict[str, Any]:
    """Fields of an annotation beyond class, box and score; `area` replaces that of the box.

    Args:
        meta: of the frame.
        index: of the object.
        ids: annotation id of the frame's objects so far, 0 for those that have none.
    """
    extra: dict[str, object] = {}
    for row in _FIELDS:
        if row.coco is not None:
            extra |= row.coco(meta, index)
        elif row.refers and row.value is not None:
            other = row.value(meta, index)
            if other is not None and ids[other]:
                extra[f"{row.names[0]}_id"] = ids[other]
    return extra
