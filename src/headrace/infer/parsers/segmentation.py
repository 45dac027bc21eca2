"""Heads of segmentation: boxes with a mask over each, and class maps; network pixels."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.infer.parsers.boxes import (
    best_class,
    class_numbers,
    clipped_corners,
    column_thresholds,
    first_threshold,
    sigmoid,
    suppressed,
)
from headrace.infer.parsers.class_maps import class_map
from headrace.infer.parsers.head import (
    Arrays,
    Dims,
    InstanceHead,
    Layout,
    Out,
    SegmentationHead,
    UnfitError,
)
from headrace.meta.detections import Detections, FloatArray, IntArray
from headrace.meta.layers import DetectionParams, NetworkInfo, Segmentation, SegmentationParams

_RAW_IOU = 0.45
_RAW_LIMIT = 300


def _with_masks(detections: Detections, masks: list[FloatArray]) -> Detections:
    detections.masks = masks
    return detections


def _yolo_seg(
    boxes: FloatArray,
    scores: FloatArray,
    classes: FloatArray,
    masks: FloatArray,
    network: NetworkInfo,
    params: DetectionParams,
) -> Detections:
    class_ids = class_numbers(classes)
    keep = np.nonzero(scores >= column_thresholds(params, class_ids))[0]
    x1, y1, x2, y2 = boxes[keep].T
    # The places ride along as scores: what is dropped for its size takes its mask along.
    detections = clipped_corners(
        x1, y1, x2, y2, network.width, network.height, keep.astype(np.float32), class_ids[keep]
    )
    rows = detections.scores.astype(np.intp)
    detections.scores = scores[rows]
    return _with_masks(detections, list(masks[rows]))


def _yolo_seg_four(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Corners clipped to [0, W]; under 1 pixel goes; score >= T[class]; masks as they are."""
    boxes, scores, classes, masks = arrays
    return _yolo_seg(boxes, scores, classes, masks, network, params)


def _yolo_seg_rows(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """The same in one output: corners, score, class, then the mask of a quarter of the input."""
    rows = arrays[0]
    height, width = _mask_shape(rows.shape[1] - 6, network)
    masks = rows[:, 6:].reshape(len(rows), height, width)
    return _yolo_seg(rows[:, :4], rows[:, 4], rows[:, 5], masks, network, params)


def _mask_shape(cells: int, network: NetworkInfo) -> tuple[int, int]:
    quarter = (network.height // 4, network.width // 4)
    if quarter[0] * quarter[1] == cells:
        return quarter
    side = round(cells**0.5)
    if side * side == cells:
        return side, side
    raise UnfitError(
        f"masks of {cells} values are neither {quarter[1]}x{quarter[0]} nor square",
        expected="masks of a quarter of the network input in each direction",
    )


def _mask_rcnn(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Rows y1, x1, y2, x2, class, score; score >= T[0]; the size counts from the unclipped corner.

    The mask is that of the class, as logits.
    """
    rows, masks = arrays
    class_ids = class_numbers(rows[:, 4])
    y1, x1, y2, x2 = rows[:, :4].T
    right, bottom = np.float32(network.width - 1), np.float32(network.height - 1)
    width, height = np.clip(x2, 0, right) - x1, np.clip(y2, 0, bottom) - y1
    keep = (rows[:, 5] >= first_threshold(params)) & np.isfinite(rows[:, :4]).all(axis=1)
    keep &= (width > 0) & (height > 0) & (class_ids >= 0) & (class_ids < masks.shape[1])
    left, top = np.clip(x1, 0, right), np.clip(y1, 0, bottom)
    boxes = np.stack([left, top, width, height], axis=1)[keep]
    chosen = masks[np.nonzero(keep)[0], class_ids[keep]]
    return Detections(boxes, rows[keep, 5], class_ids[keep], masks=list(chosen))


def _mask2former(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Boxes around the cells that are 1, in cells, one less than their number wide and high."""
    classes, masks, scores = arrays
    keep = np.nonzero(scores >= first_threshold(params))[0]
    masks, class_ids = masks[keep], class_numbers(classes[keep])
    inside = masks == 1
    left, right = _extent(inside.any(axis=1))
    top, bottom = _extent(inside.any(axis=2))
    size = (right > left) & (bottom > top) & (class_ids >= 0)
    edges = np.stack([left, top, right, bottom], axis=1)[size]
    return Detections(
        np.concatenate([edges[:, :2], edges[:, 2:] - edges[:, :2]], axis=1),
        scores[keep][size],
        class_ids[size],
        masks=[
            mask[t:b, x:r] for mask, (x, t, r, b) in zip(masks[size], edges.tolist(), strict=True)
        ],
    )


def _extent(occupied: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """First and last True of each row of (N, L); last < first where there is none."""
    last = occupied.shape[1] - 1 - occupied[:, ::-1].argmax(axis=1)
    first = occupied.argmax(axis=1)
    return first, np.where(occupied.any(axis=1), last, -1)


def _raw_yolo(
    arrays: Arrays, network: NetworkInfo, params: DetectionParams, *, rows: bool
) -> Detections:
    """Centre boxes, class scores and mask coefficients; prototypes; own NMS at 0.45, best 300.

    rows: (N, 5+C+M) with an objectness, as YOLOv5 and 7; else (4+C+M, N), as YOLOv8 and 11.
    """
    table, prototypes = arrays
    table = table if rows else table.T
    coefficients = len(prototypes)
    first = 5 if rows else 4
    classes = table.shape[1] - first - coefficients
    if classes != params.num_classes:
        raise UnfitError(
            f"num-detected-classes={params.num_classes}, but the outputs hold {classes} classes",
            expected=f"num-detected-classes={classes}",
        )
    index, class_ids, scores = best_class(
        table[:, first : first + classes],
        params.per_class_threshold[:classes],
        objectness=table[:, 4] if rows else None,
    )
    whole = np.isfinite(table[index, :4]).all(axis=1)
    index, class_ids, scores = index[whole], class_ids[whole], scores[whole]
    cx, cy, w, h = table[index, :4].T
    half = np.float32(0.5)
    # Overlaps count before boxes are cut at the image's edge, as in the exporters' own programs.
    boxes = np.stack([cx - w * half, cy - h * half, w, h], axis=1)
    best = suppressed(Detections(boxes, scores, class_ids), _RAW_IOU)[:_RAW_LIMIT]
    x1, y1, w, h = boxes[best].T
    ranks = np.arange(len(best), dtype=np.float32)
    detections = clipped_corners(
        x1, y1, x1 + w, y1 + h, network.width, network.height, ranks, class_ids[best]
    )
    kept = best[detections.scores.astype(np.intp)]
    detections.scores = scores[kept]
    weights = table[index[kept], first + classes :]
    return _with_masks(detections, prototype_masks(prototypes, weights, detections.boxes, network))


def prototype_masks(
    prototypes: FloatArray, weights: FloatArray, boxes: FloatArray, network: NetworkInfo
) -> list[FloatArray]:
    """Make the mask over each box, values 0..1: the sigmoid of the weighted prototypes.

    Args:
        prototypes: (M, H, W) float32, over the whole network input.
        weights: (N, M) float32.
        boxes: (N, 4) left, top, width, height in network pixels, inside of the input.
    """
    sizes = [network.width, network.height] * 2
    scale = np.array(prototypes.shape[:0:-1] * 2, np.float32) / np.array(sizes, np.float32)
    return [
        _box_mask(prototypes, weight, box)
        for weight, box in zip(weights, boxes * scale, strict=True)
    ]


def _box_mask(prototypes: FloatArray, weights: FloatArray, box: FloatArray) -> FloatArray:
    """The mask over one box, 0..1: prototypes weighted, sampled in as many cells as it covers.

    Args:
        prototypes: (M, H, W) float32.
        weights: (M,) float32.
        box: left, top, width, height in cells of the prototypes, inside of them.
    """
    _, height, width = prototypes.shape
    x, from_x, to_x = samples(float(box[0]), float(box[2]), width)
    y, from_y, to_y = samples(float(box[1]), float(box[3]), height)
    logits = np.tensordot(weights, prototypes[:, from_y:to_y, from_x:to_x], axes=1)
    return sigmoid(y @ logits @ x.T)


def samples(start: float, size: float, length: int) -> tuple[FloatArray, int, int]:
    """Bilinear sampling along one axis: (samples, cells) weights, and the cells they are for."""
    count = max(1, min(round(size), length))
    at = np.clip(start + (np.arange(count) + 0.5) * (size / count) - 0.5, 0, length - 1)
    low = np.minimum(at.astype(np.intp), max(length - 2, 0))
    high = np.minimum(low + 1, length - 1)
    first, last = int(low[0]), int(high[-1]) + 1
    weights = np.zeros((count, last - first), np.float32)
    part = (at - low).astype(np.float32)
    rows = np.arange(count)
    weights[rows, low - first] = 1 - part
    weights[rows, high - first] += part
    return weights, first, last


def _are_rows(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["P"] > 5 + dims["M"] and dims["N"] >= dims["P"]


def _are_columns(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["P"] > 4 + dims["M"] and dims["N"] >= dims["P"]


_SEG = "corner boxes in pixels, score >= T[class], masks as they are"
_RAW = "own NMS at 0.45, best 300, masks from prototypes"

HEADS = (
    InstanceHead(
        "NvDsInferParseYoloSeg",
        f"DeepStream-Yolo-Seg: {_SEG}",
        (
            Layout((Out("N 4"), Out("N"), Out("N"), Out("N H W")), _yolo_seg_four),
            Layout((Out("N L"),), _yolo_seg_rows, lambda dims, _: dims["L"] > 6),
        ),
    ),
    *(
        InstanceHead(
            name,
            "TAO Mask R-CNN: boxes y1, x1, y2, x2 in pixels, score >= T[0], mask logits of "
            "the class",
            (Layout((Out("N 6", ("generate_detections",)), Out("N C H W", (masks,))), _mask_rcnn),),
            strict_classes=True,
            mask_threshold=0.0,
        )
        for name, masks in (
            ("NvDsInferParseCustomMrcnnTLT", "mask_head/mask_fcn_logits/BiasAdd"),
            ("NvDsInferParseCustomMrcnnTLTV2", "mask_fcn_logits/BiasAdd"),
        )
    ),
    InstanceHead(
        "NvDsInferParseCustomMask2Former",
        "TAO Mask2Former: boxes around mask cells equal to 1, score >= T[0]",
        (
            Layout(
                (
                    Out("N", ("pred_classes",), integers=True),
                    Out("N H W", ("pred_masks",)),
                    Out("N", ("pred_scores",)),
                ),
                _mask2former,
            ),
        ),
    ),
    InstanceHead(
        "HeadraceParseYoloV8Seg",
        "YOLOv8/11-seg raw, P = 4+C+M: centre boxes in pixels, best of C scores >= T[class]; "
        + _RAW,
        (
            Layout(
                (Out("P N"), Out("M H W")),
                partial(_raw_yolo, rows=False),
                _are_columns,
                _are_columns,
            ),
        ),
    ),
    InstanceHead(
        "HeadraceParseYoloV5Seg",
        "YOLOv5/7-seg raw, P = 5+C+M: centre boxes in pixels, objectness * best score >= "
        f"T[class]; {_RAW}",
        (Layout((Out("N P"), Out("M H W")), partial(_raw_yolo, rows=True), _are_rows, _are_rows),),
    ),
)


def _classes(values: npt.NDArray[np.generic], params: SegmentationParams) -> IntArray:
    """Class numbers as int32, -1 where there is no such class."""
    if values.dtype.kind not in "iu":
        raise UnfitError(f"the output is {values.dtype}", expected="class numbers as integers")
    number = values.astype(np.int64)
    known = (number >= 0) & (number < (params.num_classes or np.iinfo(np.int32).max))
    return np.where(known, number, -1).astype(np.int32)


def _map(arrays: Arrays, network: NetworkInfo, params: SegmentationParams) -> Segmentation:
    """(H, W) class numbers, as they are."""
    return Segmentation(_classes(arrays[0], params))


def _first_values(arrays: Arrays, network: NetworkInfo, params: SegmentationParams) -> Segmentation:
    """The first W*H values, row by row; the axes do not count."""
    values = arrays[0].reshape(-1)
    pixels = network.width * network.height
    if len(values) < pixels:
        raise UnfitError(
            f"{len(values)} class numbers for {network.width}x{network.height} pixels",
            expected="one for each pixel of the network input",
        )
    return Segmentation(_classes(values[:pixels].reshape(network.height, network.width), params))


def _largest_resized(
    arrays: Arrays, network: NetworkInfo, params: SegmentationParams
) -> Segmentation:
    """The class of the largest value at the nearest cell; no threshold."""
    scores = arrays[0]
    _, height, width = scores.shape
    if not scores.size:
        raise UnfitError("the output has no values")
    filled = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    best = filled.argmax(axis=0).astype(np.int32)
    y = np.arange(network.height) * height // network.height
    x = np.arange(network.width) * width // network.width
    return Segmentation(_classes(best[y[:, None], x], params))


def _mask_queries(arrays: Arrays, network: NetworkInfo, params: SegmentationParams) -> Segmentation:
    """Masks of queries, each weighted by its classes, of which the last means none.

    As transformers makes the map of MaskFormer and Mask2Former: the chance of a class at a cell is
    the sum over all queries. The best class counts, whatever its chance.
    """
    logits, masks = arrays
    if not logits.size or not masks.size:
        raise UnfitError("the outputs have no values")
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = (powers / powers.sum(axis=1, keepdims=True))[:, :-1]
    scores = np.tensordot(chances.T, sigmoid(masks), axes=1)
    return Segmentation(_classes(scores.argmax(axis=0), params), scores)


def _largest_above(
    arrays: Arrays, network: NetworkInfo, params: SegmentationParams
) -> Segmentation:
    """The largest of the classes, if it is above the threshold."""
    return Segmentation(_classes(class_map(arrays[0], params.threshold, "NCHW"), params), arrays[0])


MAP_HEADS = (
    SegmentationHead(
        "HeadraceParseClassMap",
        "arg-max in the model: class numbers as they are, of the output's size",
        (Layout((Out("H W", integers=True, exact=True),), _map, likely=lambda *_: True),),
    ),
    SegmentationHead(
        "HeadraceParseMaskQueries",
        "MaskFormer, Mask2Former of transformers: logits of C classes and none for each query, and "
        "its mask; the best class",
        (
            Layout(
                (Out("Q 1+C", ("class_queries_logits",)), Out("Q H W", ("masks_queries_logits",))),
                _mask_queries,
            ),
        ),
    ),
    SegmentationHead(
        "NvDsInferParseCustomPeopleSemSegNet",
        "PeopleSemSegNet: class numbers as they are",
        (Layout((Out("H W", ("argmax_1",), integers=True),), _map),),
    ),
    SegmentationHead(
        "NvDsInferParseCustomSegformerTAO",
        "SegFormer with arg-max in the model: class numbers as they are",
        (
            Layout((Out("H W", ("output",), integers=True),), _first_values),
            Layout((Out("C H W", ("output",), integers=True),), _first_values),
        ),
    ),
    SegmentationHead(
        "NvDsInferParseCustomSegformerTAO2",
        "SegFormer: the best of C classes, no threshold, nearest cell where sizes differ",
        (Layout((Out("C H W", ("output",)),), _largest_resized),),
    ),
    SegmentationHead(
        "NvDsInferParseCustomChangeNet",
        "Visual ChangeNet: the best of C classes above segmentation-threshold",
        (Layout((Out("C H W", ("output_final",)),), _largest_above),),
    ),
)
