"""All built-in heads, and those that fit outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from headrace.infer.parsers import (
    affinity,
    centres,
    corners,
    coverage,
    end_to_end,
    keypoints,
    levels,
    nms_outputs,
    object_lists,
    points,
    priors,
    rcnn,
    rows,
    segmentation,
    ssd_detr,
    text,
    yolo,
)
from headrace.infer.parsers.head import (
    AnyHead,
    Head,
    InstanceHead,
    Item,
    LayerLike,
    SegmentationHead,
    per_item,
)
from headrace.meta.layers import Layer, NetworkInfo
from headrace.network.tensor_spec import TensorSpec

HEADS: tuple[Head, ...] = (
    *yolo.HEADS,
    *nms_outputs.HEADS,
    *ssd_detr.HEADS,
    *ssd_detr.SSD_HEADS,
    *yolo.ANCHOR_HEADS,
    *rcnn.HEADS,
    *centres.HEADS,
    *text.HEADS,
    *keypoints.HEADS,
    *end_to_end.HEADS,
    *corners.HEADS,
    *affinity.HEADS,
    *rows.HEADS,
    *priors.HEADS,
    *levels.HEADS,
    *points.HEADS,
    *object_lists.HEADS,
    *coverage.HEADS,
)
"""All built-in heads; those named earlier are suggested first."""

INSTANCE_HEADS: tuple[InstanceHead, ...] = (
    *segmentation.HEADS,
    *end_to_end.INSTANCE_HEADS,
    *object_lists.INSTANCE_HEADS,
)
SEGMENTATION_HEADS: tuple[SegmentationHead, ...] = segmentation.MAP_HEADS


HEADS_OF: Mapping[str, Sequence[AnyHead]] = {
    heads[0].key: heads for heads in (HEADS, INSTANCE_HEADS, SEGMENTATION_HEADS)
}
"""Key of a config that names a parser -> the heads for it."""


def suggest(
    outputs: Mapping[str, Layer] | Iterable[LayerLike | TensorSpec],
    network: NetworkInfo | None = None,
    num_classes: int | None = None,
    *,
    key: str = Head.key,
) -> list[str]:
    """Names of the built-in heads that need outputs with these names, kinds and shapes.

    Args:
        outputs: layers of one batch item, or tensor specs of a session (their axis 0 is the batch).
        network: size of the network input, where known: tells a YOLOX grid from other rows.
        num_classes: `num-detected-classes`, where known: heads with as many classes come first.
        key: the key that the names shall be for, which says what kind of network it is.

    Returns:
        The names of the probable heads that read so many classes; if there is none, of the probable
        ones that read another number, and then the possible ones that read so many; else empty.
        Where no number is known, the probable heads, or else the possible ones of 80 classes.
    """
    layers = map(per_item, outputs.values() if isinstance(outputs, Mapping) else outputs)
    items = tuple(Item(layer.name, layer.dtype, layer.shape) for layer in layers)
    return list(_suggested(items, network, num_classes, key))


@lru_cache(maxsize=64)  # a run that finds nothing tries many heads, and each asks for the others
def _suggested(
    items: tuple[Item, ...], network: NetworkInfo | None, num_classes: int | None, key: str
) -> tuple[str, ...]:
    ranked = [
        (rank, head.name)
        for head in HEADS_OF[key]
        if head.suggested and (rank := head.rank(items, network, num_classes)) is not None
    ]
    first, second = ([(0, 0)], [(0, 1), (1, 0)]) if num_classes else ([(0, 0), (0, 1)], [(1, 0)])
    for ranks in (first, second):
        if names := [name for level in ranks for rank, name in ranked if rank == level]:
            return tuple(names)
    return ()
