"""True boxes from a COCO JSON, and the boxes that a model finds, for measures of quality."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noria._core.errors import MediaError
from noria.diagnose.average_precision import Scored, Truth
from noria.infer.calibration import Selected
from noria.infer.inferencer import Inferencer
from noria.infer.labels import load_labels
from noria.infer.model import LoadOptions, Model
from noria.infer.record import Record
from noria.media.frame import Frame

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.engine.session import Session

_MAX_BYTES = 2**30


def read_truth(
    path: Path, sources: Sequence[str], cfg: ModelConfig, limit: int
) -> tuple[list[Selected], list[Truth]]:
    """Pictures that a COCO JSON describes, with their boxes, a truth for each picture in order.

    Pictures are looked for in the folders by their names. If none is there and one video is given,
    the JSON's images are its frames, from the first on. A category is the class whose label has
    its name; if a name is no label, categories are the classes in the order of their ids.

    Args:
        path: the JSON.
        sources: folders where pictures may be, besides the JSON's own; or a video.
        cfg: its labels are the classes.
        limit: the most pictures, spread evenly.

    Raises:
        MediaError: the file is not such a JSON, or none of its pictures is there.
    """
    where = str(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise MediaError("is too large for a truth", where=where, expected="at most 1 GiB")
        data = json.loads(path.read_bytes())
        images = {int(i["id"]): str(i["file_name"]) for i in data["images"]}
        classes = _classes(data["categories"], cfg)
        boxes: dict[int, list[tuple[list[float], int, bool]]] = {i: [] for i in images}
        for a in data["annotations"]:
            box = [float(v) for v in a["bbox"]]
            if len(box) != 4 or not np.isfinite(box).all():
                raise MediaError(f"annotation {a.get('id')} has the box {box}", where=where)
            if int(a["image_id"]) in boxes:
                entry = (box, classes[int(a["category_id"])], bool(a.get("iscrowd", 0)))
                boxes[int(a["image_id"])].append(entry)
    except OSError as error:
        raise MediaError(f"the truth cannot be read: {error.strerror}", where=where) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = str(error)[:100] or type(error).__name__
        raise MediaError(
            f"the truth is not COCO's JSON: {type(error).__name__} {said}",
            where=where,
            expected="images, categories and annotations with bbox, image_id and category_id",
        ) from error
    places = [Path(source) for source in sources] + [path.parent]
    there = []
    for number, name in images.items():
        file = next((p / name for p in places if (p / name).is_file()), None)
        if file is not None:
            there.append((file, boxes[number]))
    if not there and len(sources) == 1 and Path(sources[0]).is_file() and images:
        share = min(limit, len(images))
        clip = Selected(sources[0], share, len(images) / share)
        ordered = list(boxes.values())
        return [clip], [_truth(ordered[int(i * clip.step)]) for i in range(share)]
    if not there:
        raise MediaError(
            f"none of the {len(images)} pictures of the truth is there",
            where=where,
            fix="--images names their folder",
        )
    step = max(1.0, len(there) / limit)
    there = [there[int(i * step)] for i in range(min(limit, len(there)))]
    chosen = [Selected(str(file), 1, 1.0) for file, _ in there]
    return chosen, [_truth(entries) for _, entries in there]


def _classes(categories: list[dict[str, Any]], cfg: ModelConfig) -> dict[int, int]:
    labels = load_labels(cfg.labelfile_path).detector if cfg.labelfile_path else []
    ids = sorted(int(c["id"]) for c in categories)
    names = {int(c["id"]): str(c.get("name", "")) for c in categories}
    if all(name in labels for name in names.values()):
        return {number: labels.index(names[number]) for number in ids}
    return {number: place for place, number in enumerate(ids)}


def _truth(entries: list[tuple[list[float], int, bool]]) -> Truth:
    return Truth(
        np.array([box for box, _, _ in entries], np.float64).reshape(-1, 4),
        np.array([class_id for _, class_id, _ in entries], np.int64),
        np.array([crowd for _, _, crowd in entries], bool),
    )


def scored(
    cfg: ModelConfig, session: Session, frames: Iterable[Frame], *, threads: int | None = None
) -> list[Scored]:
    """The objects of each frame, which is inferred alone. Closes the session."""
    record, options = Record(), LoadOptions(threads=threads)
    model = Model.around(cfg, session, options, record)
    with Inferencer(model, record, options=options) as inferencer:
        return [_scored_frame(inferencer, frame) for frame in frames]


def _scored_frame(inferencer: Inferencer, frame: Frame) -> Scored:
    objects = inferencer.process([frame])[0].objects
    return Scored(
        np.asarray(objects.rects, np.float64).reshape(-1, 4),
        np.asarray(objects.class_ids, np.int64),
        np.asarray(objects.confidences, np.float64),
    )
