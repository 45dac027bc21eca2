"""Data sets in YOLO's layout: `data.yaml`, a folder of images, and one of text files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.config.yaml_nodes import MalformedError, MapNode, only_document, plain_value
from headrace.diagnose.evaluate.datasets.dataset import (
    Dataset,
    LabelledImage,
    box_truth,
    left_out,
    read_bytes,
)
from headrace.media.names import IMAGE_SUFFIXES, natural_key
from headrace.media.sources.images import image_size

_NAMES = "names: [car, person], or names: {0: car, 1: person}"
_LINE = "class cx cy width height, or class x1 y1 x2 y2 x3 y3 …, in 0 to 1 of the image"
_SLACK = 1e-3  # numbers were rounded
_MOST_YAML = 1 << 20


def load_yolo(path: Path, split: str | None = None) -> Dataset:
    """Read a `data.yaml` and the labels of one of its splits.

    The text file of an image lies where its path has `labels` for the last `images`; an image
    without one shows nothing. A line with more than four numbers is a polygon: the mask of the
    object, whose box is around it.

    Args:
        path: of the YAML: `path`, `train`, `val`, `test`, `names`.
        split: the key that names the images; None is `val`.

    Raises:
        MediaError: a file is not as it must be; the message has its line.
    """
    where, key = str(path), split or "val"
    data = _yaml(path)
    names = _names(data, where)
    root = _root(data, path)
    value = data.get(key)
    entries: list[Any] = value if isinstance(value, list) else [value]
    if not value or not all(isinstance(e, str) for e in entries):
        there = [k for k in ("train", "val", "test") if data.get(k)]
        raise MediaError(
            f"there is no {quoted(key)} in it",
            where=where,
            expected=f"{key}: a folder of images, or a text file that lists them",
            fix=f"--split {there[0]}" if there else (),
        )
    files = [file for entry in entries for file in _images(root, entry, where)]
    images, bare, broken = [], [], []
    for file in dict.fromkeys(files):
        size = image_size(file)
        if size is None:
            broken.append(file.name)
            continue
        labels = _labels_of(file)
        if not labels.is_file():
            bare.append(file.name)
        images.append(LabelledImage(str(file), _truth(labels, size, names), file, size))
    if not images:
        raise MediaError(f"{key} has no image that can be read", where=where)
    notices = [left_out(broken, "images cannot be read and are left out", where)] if broken else []
    if len(bare) == len(images):
        expected = f"text files such as {_labels_of(images[0].path or path)}"
        raise MediaError(f"no image of {key} has labels", where=where, expected=expected)
    if bare:
        text = f"{len(bare)} of {len(images)} images have no labels: nothing is in them"
        notices.append(Finding("images-without-labels", "info", text, where))
    return Dataset(where, "boxes", names, tuple(images), notices=tuple(notices))


def _yaml(path: Path) -> dict[str, Any]:
    text = read_bytes(path, "the data set")
    try:
        root = only_document(text) if len(text) <= _MOST_YAML else None
        mapping = plain_value(root) if isinstance(root, MapNode) else None
    except MalformedError as error:
        raise MediaError(str(error), where=f"{path}:{error.line}") from error
    if mapping is None:
        raise MediaError(
            "is no description of a data set",
            where=str(path),
            expected=f"path, val and {_NAMES}, without aliases",
        )
    return dict(mapping)


def _names(data: dict[str, object], where: str) -> tuple[str, ...]:
    names = data.get("names")
    if isinstance(names, dict) and sorted(names, key=str) == sorted(range(len(names)), key=str):
        names = [names[i] for i in range(len(names))]
    if not isinstance(names, list) or not names:
        raise MediaError(
            "names is missing or has gaps"
            if isinstance(names, dict | None)
            else "names is no list",
            where=where,
            expected=_NAMES,
        )
    return tuple(str(name) for name in names)


def _root(data: dict[str, object], path: Path) -> Path:
    """The folder that the splits are relative to: `path`, itself relative to the YAML's folder."""
    base = data.get("path")
    folder = path.parent / base if isinstance(base, str) else path.parent
    return folder if folder.is_dir() else path.parent


def _images(root: Path, entry: str, where: str) -> Iterator[Path]:
    path = root / entry
    if path.is_dir():
        files = [p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES]
        yield from sorted(files, key=lambda p: (str(p.parent), natural_key(p)))
    elif path.suffix == ".txt" and path.is_file():
        lines = read_bytes(path, "the list of images").decode(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            file = next((p for p in (path.parent / line.strip(), root / line.strip())
                         if p.is_file()), None)  # fmt: skip
            if file is None:
                raise MediaError(f"there is no image {quoted(line)}", where=f"{path}:{number}")
            yield file
    else:
        raise MediaError(
            f"there is no {quoted(str(path))}",
            where=where,
            expected="a folder of images, or a text file that lists them",
            fix="path and the splits are relative to the folder of the YAML",
        )


def _labels_of(image: Path) -> Path:
    parts = list(image.parts)
    indices = [i for i, part in enumerate(parts[:-1]) if part == "images"]
    if indices:
        parts[indices[-1]] = "labels"
    return Path(*parts).with_suffix(".txt")


def _truth(labels: Path, size: tuple[int, int], names: tuple[str, ...]) -> Any:
    width, height = size
    boxes, ids, masks = [], [], []
    text = read_bytes(labels, "the labels").decode(errors="replace") if labels.is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        where = f"{labels}:{number}"
        try:
            class_id, values = int(words[0]), np.array(words[1:], np.float64)
        except ValueError:
            raise MediaError(f"{quoted(line)} is no label", where=where, expected=_LINE) from None
        polygon = len(values) >= 6 and len(values) % 2 == 0
        if not (len(values) == 4 or polygon) or not (abs(values - 0.5) <= 0.5 + _SLACK).all():
            raise MediaError(f"{quoted(line)} is no label", where=where, expected=_LINE)
        if not 0 <= class_id < len(names):
            raise MediaError(
                f"class {class_id}", where=where, expected=f"0 to {len(names) - 1}, as names lists"
            )
        if polygon:
            points = values.reshape(-1, 2) * size
            low = points.min(axis=0)
            boxes.append([*low, *(points.max(axis=0) - low)])
            masks.append([points.ravel().tolist()])
        else:
            cx, cy, w, h = values.tolist()
            boxes.append([(cx - w / 2) * width, (cy - h / 2) * height, w * width, h * height])
        ids.append(class_id)
    return box_truth(boxes, ids, masks=masks if masks and len(masks) == len(boxes) else None)
