"""JSON of results beyond boxes. The forms are documented in docs/formats.md and stable."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headrace._core.json_record import finite
from headrace._core.text import printable_json
from headrace.meta.detections import FloatArray
from headrace.meta.masks import PlacedMask, rle_encode
from headrace.meta.results import ClassifierMeta, LabelInfo, SegmentationMeta
from headrace.meta.skeletons import VISIBLE

# Made once: `json.dumps` with such arguments makes an encoder for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(value: object) -> str:
    """Compact JSON with text as it is."""
    return printable_json(_ENCODER.encode(value))


@lru_cache(4096)
def quoted_text(value: str) -> str:
    """JSON of a text; most labels come again."""
    return printable_json(_ENCODER.encode(value))


def classifier_dicts(metas: Sequence[ClassifierMeta]) -> list[dict[str, object]]:
    """Results of classifiers as plain data: parsers may have left NumPy numbers in them."""
    return [
        {
            "component_id": int(meta.component_id),
            **({"type": meta.classifier_type} if meta.classifier_type else {}),
            "labels": [_label_dict(info) for info in meta.labels],
        }
        for meta in metas
    ]


def classifiers_json(metas: Sequence[ClassifierMeta]) -> str:
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


def _label_dict(info: LabelInfo) -> dict[str, object]:
    return {
        "attribute": int(info.attribute),
        "value": int(info.value),
        "label": info.label,
        "confidence": finite(float(info.confidence), 6),
    }


def points_json(points: FloatArray) -> str:
    """Keypoints in frame pixels to 3 decimals, their scores to 6, as of boxes."""
    return to_json([[round(x, 3), round(y, 3), round(s, 6)] for x, y, s in points.tolist()])


def mask_json(mask: PlacedMask) -> str:
    """A mask as the run lengths of its part of the frame."""
    size, counts = list(mask.pixels.shape), rle_encode(mask.pixels)
    return to_json({"left": mask.left, "top": mask.top, "size": size, "counts": counts})


def segmentations_json(maps: Sequence[SegmentationMeta]) -> str:
    """Class maps as the counts of their pixels."""
    return to_json([_segmentation_dict(meta) for meta in maps])


def _segmentation_dict(meta: SegmentationMeta) -> dict[str, object]:
    """A class map as counts of the pixels that the image fills."""
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


def coco_mask(mask: PlacedMask, width: int, height: int) -> dict[str, object]:
    """COCO's run lengths in the whole frame; `area` replaces that of the box."""
    counts = rle_encode(mask.pixels, left=mask.left, top=mask.top, size=(height, width))
    return {
        "segmentation": {"size": [height, width], "counts": counts},
        "area": float(mask.area),
    }


def coco_points(points: FloatArray) -> dict[str, object]:
    """COCO's x, y, visibility of each point, and the scores that it has no place for."""
    scores = points[:, 2]
    seen = np.where(scores >= VISIBLE, 2, scores > 0)
    values = [
        value
        for (x, y), v in zip(points[:, :2].tolist(), seen.tolist(), strict=True)
        for value in (round(x, 3), round(y, 3), v)
    ]
    return {
        "keypoints": values,
        "num_keypoints": int(np.count_nonzero(seen)),
        "keypoint_scores": [round(score, 6) for score in scores.tolist()],
    }


def coco_attributes(metas: Sequence[ClassifierMeta]) -> dict[str, str | int]:
    """Label, or number of the class, by the name of the classifier."""
    attributes: dict[str, str | int] = {}
    for meta in metas:
        name = meta.classifier_type or f"classifier_{meta.component_id}"
        several = len(meta.labels) > 1
        for info in meta.labels:
            key = f"{name}_{info.attribute}" if several else name
            if key in attributes:  # two classifiers of one type
                key = f"{key}_{meta.component_id}"
            attributes[key] = info.label or int(info.value)
    return attributes
