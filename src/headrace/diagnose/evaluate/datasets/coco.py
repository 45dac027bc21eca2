"""COCO's JSON: boxes, masks and crowds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace._core.errors import MediaError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.diagnose.evaluate.datasets.dataset import (
    Dataset,
    ImageFolders,
    LabelledImage,
    box_truth,
    left_out,
    read_bytes,
)
from headrace.meta.masks import rle_decode

_FARTHEST = 100_000  # pixels of a polygon's corner
_MOST_PIXELS = 2**28  # of an image with run lengths
_EXPECTED = "images, categories and annotations with bbox, image_id and category_id"


class _Image(msgspec.Struct):
    id: int
    file_name: str
    width: int | None = None
    height: int | None = None


class _Category(msgspec.Struct):
    id: int
    name: str = ""


class _Annotation(msgspec.Struct):
    image_id: int
    category_id: int
    bbox: list[float]
    id: int | str | None = None
    iscrowd: int | bool | None = 0
    ignore: int | bool | None = 0
    area: float | None = None
    segmentation: Any = None


class _File(msgspec.Struct):
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_Annotation]


def load_coco(path: Path, images: Sequence[Path] = ()) -> Dataset:
    """Read a COCO JSON.

    Classes and images are in the order of their ids. Images are looked for in the folders and
    beside the JSON. If `images` is one video, the JSON's images are its frames, from the first
    on. As pycocotools has it, `ignore` counts only with `iscrowd`.

    Raises:
        MediaError: the file is not such a JSON, contradicts itself, or none of its images is
            there.
    """
    where = str(path)
    file = _decoded(read_bytes(path, "the truth"), where)
    _refuse_twice([i.id for i in file.images], "images have the id", where)
    _refuse_twice([i.file_name for i in file.images], "images have the file_name", where)
    _refuse_twice([c.id for c in file.categories], "categories have the id", where)
    ids = [a.id for a in file.annotations if a.id is not None]
    _refuse_twice(ids, "annotations have the id", where)
    categories = sorted(file.categories, key=lambda c: c.id)
    indices = {c.id: index for index, c in enumerate(categories)}
    by_image: dict[int, list[_Annotation]] = {i.id: [] for i in file.images}
    sizes = {i.id: (i.width, i.height) for i in file.images}
    strays, ignored = [], 0
    for number, annotation in enumerate(file.annotations):
        name = f"annotation {number if annotation.id is None else quoted(str(annotation.id))}"
        if annotation.image_id not in by_image:
            strays.append(f"{name} (image {annotation.image_id})")
            continue
        _check(annotation, name, indices, sizes[annotation.image_id], where)
        ignored += bool(annotation.ignore and not annotation.iscrowd)
        by_image[annotation.image_id].append(annotation)
    notices = []
    if strays:
        notices.append(left_out(strays, "annotations of images that are not listed", where))
    if ignored:
        text = f"{ignored} annotations have ignore without iscrowd: they count, as in pycocotools"
        notices.append(Finding("annotations-counted", "info", text, where))
    video = str(images[0]) if len(images) == 1 and images[0].is_file() else None
    if video is None:
        folders = ImageFolders([*images, path.parent], where)
        files = {i.id: folders.find(i.file_name) for i in file.images}
        notices += folders.notices(len(file.images))
    if not file.images:
        raise MediaError("the truth lists no image", where=where, expected=_EXPECTED)
    # by their ids, as pycocotools: of equal scores those of the first image count first
    listed = file.images if video else sorted(file.images, key=lambda i: i.id)
    return Dataset(
        where,
        "boxes",
        tuple(c.name or str(c.id) for c in categories),
        tuple(
            _image(i, None if video else files[i.id], by_image[i.id], indices)
            for i in listed
            if video or files[i.id] is not None
        ),
        video,
        notices=tuple(notices),
    )


def _decoded(data: bytes, where: str) -> _File:
    try:
        return msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        failed: Exception = error
    try:  # again, to name the row that is wrong
        raw = msgspec.json.decode(data, type=dict[str, Any])
        for key, kind in (
            ("images", _Image),
            ("categories", _Category),
            ("annotations", _Annotation),
        ):
            _convert(raw.get(key), kind, key, where)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        failed = error
    text = str(failed)[:200] or "it is nested too deeply"
    raise MediaError(f"the truth is not COCO's JSON: {text}", where=where, expected=_EXPECTED)


def _convert(rows: object, kind: type[msgspec.Struct], key: str, where: str) -> None:
    if not isinstance(rows, list):
        problem = "are missing" if rows is None else f"are {type(rows).__name__}"
        raise MediaError(
            f"the truth is not COCO's JSON: its {key} {problem}", where=where, expected=_EXPECTED
        )
    for number, row in enumerate(rows):
        try:
            msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            name = row.get("id", number) if isinstance(row, dict) else number
            raise MediaError(
                f"the truth is not COCO's JSON: {key}[{number}] (id {quoted(str(name))}): {error}",
                where=where,
                expected=_EXPECTED,
            ) from error


def _refuse_twice(values: Sequence[object], text: str, where: str) -> None:
    if len(set(values)) < len(values):
        value, count = Counter(values).most_common(1)[0]
        raise MediaError(
            f"{count} {text} {quoted(str(value))}", where=where, expected="each of them once"
        )


def _check(
    annotation: _Annotation,
    name: str,
    indices: dict[int, int],
    size: tuple[int | None, int | None],
    where: str,
) -> None:
    box = annotation.bbox
    if len(box) != 4 or not all(map(math.isfinite, box)) or min(box[2:]) < 0:
        raise MediaError(
            f"{name} has the box {box[:8]}",
            where=where,
            expected="left, top, width and height in pixels",
        )
    if annotation.category_id not in indices:
        raise MediaError(
            f"{name} has category_id {annotation.category_id}, which the truth does not list",
            where=where,
            expected=f"one of {', '.join(map(str, list(indices)[:20]))}",
        )
    if annotation.segmentation and not _is_mask(annotation.segmentation, size):
        raise MediaError(
            f"{name} has a segmentation that is no mask",
            where=where,
            expected="polygons [[x1, y1, x2, y2, x3, y3, …]], or run lengths {size, counts} of the "
            "size of the image",
        )


def _is_mask(value: Any, size: tuple[int | None, int | None]) -> bool:
    """Whether a segmentation is polygons, or run lengths of an image of that width and height."""
    if isinstance(value, list):
        return all(
            isinstance(points, list)
            and len(points) >= 6
            and len(points) % 2 == 0
            and all(isinstance(v, int | float) and abs(v) <= _FARTHEST for v in points)
            for points in value
        )
    width, height = int(size[0] or 0), int(size[1] or 0)
    if not isinstance(value, dict) or value.get("size") != [height, width]:
        return False
    counts = value.get("counts")
    if not 0 < width * height <= _MOST_PIXELS:
        return False
    if isinstance(counts, list):
        known = all(isinstance(n, int) and n >= 0 for n in counts)
        return known and sum(counts) == width * height
    try:
        return isinstance(counts, str) and rle_decode(counts, width, height) is not None
    except ValueError:
        return False


def _image(
    image: _Image, path: Path | None, objects: list[_Annotation], indices: dict[int, int]
) -> LabelledImage:
    size = None
    if image.width and image.height and min(image.width, image.height) > 0:
        size = (image.width, image.height)
    masks = None
    if size and objects and all(a.segmentation for a in objects):
        masks = [a.segmentation for a in objects]
    truth = box_truth(
        [a.bbox for a in objects],
        [indices[a.category_id] for a in objects],
        crowd=[bool(a.iscrowd) for a in objects],
        areas=[a.bbox[2] * a.bbox[3] if a.area is None else a.area for a in objects],
        masks=masks,
    )
    return LabelledImage(image.file_name, truth, path, size)
