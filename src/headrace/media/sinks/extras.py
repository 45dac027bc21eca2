"""JSON of an object beyond its box: only the fields that have a value.

The keys are documented in docs/formats.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.json_record import finite
from headrace.meta import (
    ClassifierMeta,
    FrameMeta,
    LabelInfo,
    Objects,
    SegmentationMeta,
)
from headrace.meta.detections import FloatArray
from headrace.meta.masks import object_mask, rle_encode


@dataclass(slots=True)
class Rows:
    """The objects of a frame that can be written, in attach order.

    Attributes:
        keys: (component id, class id) of each.
        values: (N, 5) float64 confidence, left, top, width, height in frame pixels.
        kept: their indices among the frame's objects; None is all of them.
        lost: how many were left out for not being finite numbers.
    """

    keys: list[tuple[int, int]]
    values: npt.NDArray[Any]
    kept: list[int] | None = None
    lost: int = 0

    @property
    def indices(self) -> Sequence[int]:
        """Places of the rows among the frame's objects."""
        return range(len(self.keys)) if self.kept is None else self.kept


def finite_rows(meta: FrameMeta) -> Rows:
    """Objects of a frame without those that have numbers that are not finite."""
    objects = meta.objects
    n = len(objects.rects)
    values = np.empty((n, 5), np.float64)
    if not n:
        return Rows([], values)
    values[:, 0] = objects.confidences
    values[:, 1:] = objects.rects
    keys: Any = list(zip(objects.component_ids.tolist(), objects.class_ids.tolist(), strict=True))
    finite = np.isfinite(values)
    if finite.all():
        return Rows(keys, values)
    good: Any = finite.all(axis=1)
    kept = np.flatnonzero(good).tolist()
    return Rows([keys[i] for i in kept], values[good], kept, n - len(kept))


class Components:
    """Whether the objects so far come of more than one model."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self.several = False

    def see(self, meta: FrameMeta) -> bool:
        """Look at a frame; whether there have been several."""
        if not self.several:
            self._seen.update(meta.objects.labels)
            self.several = len(self._seen) > 1
        return self.several


def label_of(labels: Mapping[int, Sequence[str]], key: tuple[int, int]) -> str:
    """The full label of (component id, class id); empty if the class has no name."""
    component, class_id = key
    names = labels.get(component, ())
    return names[class_id] if 0 <= class_id < len(names) else ""


_ALL_ONES = b"\xff"  # of -1 and of UNTRACKED_OBJECT_ID, whatever the width


# Made once: `json.dumps` with such arguments makes an encoder for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(value: object) -> str:
    """Compact JSON with text as it is."""
    return _ENCODER.encode(value)


@lru_cache(4096)
def quoted_text(value: str) -> str:
    """JSON of a text; most labels come again."""
    return _ENCODER.encode(value)


def has_tracks(objects: Objects) -> bool:
    """True if any object has a tracking id; asked every frame."""
    return bool(objects.object_ids.tobytes().strip(_ALL_ONES))


def has_extras(objects: Objects) -> bool:
    """True if any object has more than class, confidence, box and track; asked every frame."""
    return bool(
        objects.classifiers
        or objects.texts
        or objects.segmentations
        or objects.analytics
        or objects.masks is not None
        or objects.keypoints is not None
        or objects.angles is not None
        or objects.parents.tobytes().strip(_ALL_ONES)
    )


def places_of(count: int, kept: Sequence[int] | None) -> Sequence[int]:
    """Where each of `count` objects is among those `kept` (None: all), -1 if it is left out."""
    if kept is None:
        return range(count)
    places = [-1] * count
    for place, index in enumerate(kept):
        places[index] = place
    return places


def object_extras(meta: FrameMeta, kept: Sequence[int] | None, *, components: bool) -> list[str]:
    """For each object kept, the JSON members behind box and track, each with its comma.

    Args:
        meta: the frame.
        kept: indices of the objects that are written, rising; None is all.
        components: name the component of each.
    """
    objects = meta.objects
    indices: Sequence[int] = range(len(objects)) if kept is None else kept
    parts = [""] * len(indices)

    def add(values: Iterable[str]) -> None:
        parts[:] = map(str.__add__, parts, values)

    if components:
        numbers = objects.component_ids.tolist()
        add(f',"component_id":{numbers[i]}' for i in indices)
    if objects.parents.tobytes().strip(_ALL_ONES):
        places, parents = places_of(len(objects), kept), objects.parents.tolist()
        found = [places[parents[i]] if parents[i] >= 0 else -1 for i in indices]
        add(f',"parent":{p}' if p >= 0 else "" for p in found)
    if objects.angles is not None:
        angles = objects.angles.tolist()
        add(
            f',"angle":{angles[i]:.3f}' if angles[i] and math.isfinite(angles[i]) else ""
            for i in indices
        )
    if objects.texts:
        texts = [text_beyond_label(objects, i) for i in indices]
        add(f',"text":{quoted_text(t)}' if t else "" for t in texts)
    if objects.classifiers:
        said = objects.classifiers
        add(f',"classifiers":{_classifiers(said[i])}' if said.get(i) else "" for i in indices)
    if objects.masks is not None:
        add(_member("mask", _mask(meta, i)) for i in indices)
    if objects.keypoints is not None:
        points = objects.keypoints
        add(_member("keypoints", _keypoints(points[i])) for i in indices)
    if objects.analytics:
        rules = objects.analytics
        add(_member("analytics", rules[i].to_dict()) if i in rules else "" for i in indices)
    if objects.segmentations:
        maps = objects.segmentations
        add(
            _member("segmentations", [segmentation_dict(s) for s in maps.get(i, ())])
            for i in indices
        )
    return parts


def _member(key: str, value: Any) -> str:
    return f',"{key}":{to_json(value)}' if value else ""


def text_beyond_label(objects: Objects, index: int) -> str:
    """Display text of an object, blanks tidied; empty if it is the label."""
    text = objects.texts.get(index)
    if text is None:
        return ""
    text = " ".join(text.split())
    return "" if text == " ".join(objects.label(index).split()) else text


def classifier_dicts(metas: Sequence[ClassifierMeta]) -> list[dict[str, Any]]:
    """Results of classifiers as plain data: parsers may have left NumPy numbers in them."""
    return [
        {
            "component_id": int(meta.component_id),
            **({"type": meta.classifier_type} if meta.classifier_type else {}),
            "labels": [_label_dict(info) for info in meta.labels],
        }
        for meta in metas
    ]


def _classifiers(metas: Sequence[ClassifierMeta]) -> str:
    """The JSON of `classifier_dicts`, many times as fast."""
    items = []
    for meta in metas:
        labels = ",".join(
            [
                f'{{"attribute":{int(info.attribute)},"value":{int(info.value)},'
                f'"label":{quoted_text(info.label)},'
                f'"confidence":{round(float(info.confidence), 6)}}}'
                if math.isfinite(info.confidence)
                else to_json(_label_dict(info))
                for info in meta.labels
            ]
        )
        kind = f',"type":{quoted_text(meta.classifier_type)}' if meta.classifier_type else ""
        items.append(f'{{"component_id":{int(meta.component_id)}{kind},"labels":[{labels}]}}')
    return f"[{','.join(items)}]"


def _label_dict(info: LabelInfo) -> dict[str, Any]:
    return {
        "attribute": int(info.attribute),
        "value": int(info.value),
        "label": info.label,
        "confidence": finite(float(info.confidence), 6),
    }


def _keypoints(points: FloatArray) -> list[list[float]]:
    """List points: places in frame pixels to 3 decimals, scores to 6, as of boxes."""
    return [[round(x, 3), round(y, 3), round(s, 6)] for x, y, s in points.tolist()]


def _mask(meta: FrameMeta, index: int) -> dict[str, Any] | None:
    placed = object_mask(meta.objects, index, meta.width, meta.height)
    if placed is None:
        return None
    return {
        "left": placed.left,
        "top": placed.top,
        "size": list(placed.pixels.shape),
        "counts": rle_encode(placed.pixels),
    }


def segmentation_dict(meta: SegmentationMeta) -> dict[str, Any]:
    """A class map as counts of the pixels that the picture fills."""
    left, top, width, height = meta.region or (0, 0, meta.width, meta.height)
    part = meta.class_map[top : top + height, left : left + width]
    highest = max(int(part.max(initial=-1)), meta.num_classes - 1)
    counts = np.bincount(np.maximum(part, -1).ravel() + 1, minlength=highest + 2)[1:].tolist()
    labels = meta.labels
    return {
        "component_id": meta.component_id,
        "width": int(part.shape[1]),
        "height": int(part.shape[0]),
        "classes": [
            {"class_id": i, "label": labels[i] if i < len(labels) else "", "pixels": n}
            for i, n in enumerate(counts)
            if n
        ],
    }
