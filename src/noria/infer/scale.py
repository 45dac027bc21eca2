"""From the pictures of a run to its network input."""

from __future__ import annotations

import numpy as np

from noria._core.errors import EngineError, GeometryError
from noria.infer.geometry import ScaleTransform
from noria.infer.items import Items
from noria.infer.model import Model
from noria.infer.preprocess import Preprocessor
from noria.infer.record import Record
from noria.meta.detections import FloatArray


def scale(items: Items, model: Model, record: Record) -> FloatArray:
    """The network input of N frames or crops; fills in where each lies in it.

    Returns:
        (N, ...) float32; zeros for an item without area.

    Raises:
        EngineError: there is no memory for it.
    """
    pre = model.preprocessor
    assert pre is not None
    try:
        tensor = np.empty((len(items), *pre.shape), np.float32)
    except MemoryError as error:
        net = model.network
        raise EngineError(
            f"there is no memory for {len(items)} input(s) of {net.width}x{net.height} pixels",
            where=str(model.config.path),
            fix="a smaller infer-dims or batch-size needs less",
        ) from error
    if items.rects is not None:
        _scale_objects(pre, items, items.rects, tensor)
        return tensor
    transforms: list[ScaleTransform | None] = []
    for frame, row in zip(items.frames, tensor, strict=True):
        try:
            transforms.append(pre(frame, row))
        except GeometryError as error:
            row.fill(0)
            transforms.append(None)
            record.warn(f"{error.found}: nothing is inferred on such frames")
    items.transforms = transforms
    return tensor


def _scale_objects(pre: Preprocessor, items: Items, rects: FloatArray, tensor: FloatArray) -> None:
    """Crops of one frame after the other."""
    for start, end in items.by_frame():
        crops = pre.crops(items.frames[start], rects[start:end], tensor[start:end])
        items.crops.append(crops)
