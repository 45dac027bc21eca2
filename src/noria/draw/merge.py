"""The metadata of several frames as that of the picture they are tiled on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta import FrameMeta, Objects, SegmentationMeta
from noria.meta.objects import NO_MASK

_MAP_STEP = 2  # pixels of the tiled picture for each value of the merged class map


@dataclass(frozen=True, slots=True)
class Tile:
    """Where a frame lies on the tiled picture, in its pixels; its cell may go on below it."""

    meta: FrameMeta
    left: int
    top: int
    width: int
    height: int
    cell_bottom: int

    def move(self, rects: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(N, 4) rectangles of the frame in the tiled picture."""
        ratio = np.array((self.width / self.meta.width, self.height / self.meta.height), np.float32)
        moved: npt.NDArray[np.float32] = rects * np.tile(ratio, 2)
        moved[:, :2] += np.array((self.left, self.top), np.float32)
        return moved


def merge_metas(tiles: list[Tile], width: int, height: int) -> FrameMeta:
    """One `FrameMeta` of a picture of `width` x `height` with everything in its pixels.

    Objects keep their order within a frame. The class maps of each model become one for the whole
    picture, at half its size, -1 between the tiles; its probabilities are left out, as are raw
    tensors of whole frames.
    """
    meta = FrameMeta("tiles", 0, 0, 0, width, height)
    meta.inferred = any(tile.meta.inferred for tile in tiles)
    meta.objects = _merge_objects([t for t in tiles if len(t.meta.objects)])
    for tile in tiles:
        meta.user += tile.meta.user
        for found in tile.meta.segmentations:
            _add_class_map(meta, tile, found)
    return meta


def _merge_objects(tiles: list[Tile]) -> Objects:
    merged = Objects()
    parts = [tile.meta.objects for tile in tiles]
    if not parts:
        return merged
    counts = [len(part) for part in parts]
    starts = np.cumsum([0, *counts[:-1]]).tolist()

    def joined(name: str, blank: Any = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        return np.concatenate(
            [blank(n) if c is None else c for c, n in zip(columns, counts, strict=True)]
        )

    for name in ("class_ids", "confidences", "component_ids", "object_ids"):
        setattr(merged, name, joined(name))
    for name in ("angles", "tracker_confidences"):
        setattr(merged, name, joined(name, lambda n: np.zeros(n, np.float32)))
    merged.border_colors = joined("border_colors", lambda n: np.full((n, 4), np.nan, np.float32))
    merged.rects = np.concatenate([t.move(t.meta.objects.rects) for t in tiles])
    if any(part.detector_rects is not None for part in parts):
        boxes = [p.rects if p.detector_rects is None else p.detector_rects for p in parts]
        merged.detector_rects = np.concatenate(
            [t.move(b) for t, b in zip(tiles, boxes, strict=True)]
        )
    merged.parents = np.concatenate(
        [
            np.where(part.parents >= 0, part.parents + start, -1).astype(np.int32)
            for part, start in zip(parts, starts, strict=True)
        ]
    )
    if any(part.masks is not None for part in parts):
        merged.masks = []
        for part, n in zip(parts, counts, strict=True):
            merged.masks += [NO_MASK] * n if part.masks is None else part.masks
    for part, start in zip(parts, starts, strict=True):
        merged.mask_thresholds |= part.mask_thresholds
        merged.labels |= part.labels
        merged.styles |= part.styles
        for name in ("classifiers", "texts", "segmentations", "tensors", "user"):
            getattr(merged, name).update(
                {start + index: value for index, value in getattr(part, name).items()}
            )
    return merged


def _add_class_map(meta: FrameMeta, tile: Tile, found: SegmentationMeta) -> None:
    if not found.class_map.size:
        return
    place = next(
        (
            i
            for i, other in enumerate(meta.segmentations)
            if other.component_id == found.component_id
        ),
        None,
    )
    if place is None:
        blank = np.full((meta.height // _MAP_STEP, meta.width // _MAP_STEP), -1, np.int32)
        merged = SegmentationMeta(found.component_id, found.num_classes, blank, labels=found.labels)
        meta.segmentations.append(merged)
    else:
        merged = meta.segmentations[place]
        if found.num_classes > merged.num_classes:
            merged = meta.segmentations[place] = replace(merged, num_classes=found.num_classes)
    left, top, width, height = found.region or (0, 0, found.width, found.height)
    x, y = tile.left // _MAP_STEP, tile.top // _MAP_STEP
    w, h = tile.width // _MAP_STEP, tile.height // _MAP_STEP
    columns = ((np.arange(w) + 0.5) * (width / w) + left).astype(np.intp)
    rows = ((np.arange(h) + 0.5) * (height / h) + top).astype(np.intp)
    columns = np.clip(columns, 0, found.width - 1)
    rows = np.clip(rows, 0, found.height - 1)
    merged.class_map[y : y + h, x : x + w] = found.class_map[rows][:, columns]
