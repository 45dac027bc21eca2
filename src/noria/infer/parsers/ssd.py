"""One box and one score per class for each prior, in two outputs. Network pixels out."""

from __future__ import annotations

from functools import partial

import numpy as np

from noria.infer.parsers.boxes import clipped_corners
from noria.infer.parsers.head import Arrays, Dims, Head, Layout, Out, UnfitError
from noria.infer.parsers.scan import best_class
from noria.meta.detections import Detections
from noria.meta.layers import DetectionParams, NetworkInfo


def _boxes_scores(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    unit: bool,
    centres: bool = False,
) -> Detections:
    """Best class >= T[class]; one channel more than classes means: channel 0 is background."""
    boxes, scores = arrays
    surplus = scores.shape[1] - params.num_classes
    if surplus not in (0, 1):
        channels = scores.shape[1]
        raise UnfitError(
            f"num-detected-classes={params.num_classes}, but there are {channels} scores per box",
            expected=f"num-detected-classes={channels - 1} when the first score is background, "
            f"else {channels}",
            fix=f"set num-detected-classes={channels - 1} (or {channels}: no background)",
        )
    index, class_ids, best = best_class(scores[:, surplus:], params.per_class_threshold)
    boxes = boxes[index]
    if unit:
        boxes = boxes * np.array([network.width, network.height] * 2, np.float32)
    x1, y1, x2, y2 = boxes.T
    if centres:
        half = np.float32(0.5)
        x1, y1, x2, y2 = x1 - x2 * half, y1 - y2 * half, x1 + x2 * half, y1 + y2 * half
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, best, class_ids)


def _many(dims: Dims, network: NetworkInfo | None) -> bool:
    return dims["N"] > 1000


_PAIRS = (
    (Out("N 4", ("boxes", "bboxes", "loc")), Out("N C", ("scores", "confs", "conf", "classes"))),
    (Out("N 4"), Out("N C")),
)


def _swapped(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    unit: bool,
    centres: bool = False,
) -> Detections:
    return _boxes_scores(arrays[::-1], network, params, unit=unit, centres=centres)


def _layouts(*, unit: bool, centres: bool = False) -> tuple[Layout, ...]:
    decode = partial(_boxes_scores, unit=unit, centres=centres)
    swapped = partial(_swapped, unit=unit, centres=centres)
    return (
        *(Layout(pair, decode, likely=_many) for pair in _PAIRS),
        Layout(_PAIRS[1][::-1], swapped, likely=_many),
    )


_RULE = "best class >= T[class]; first score is background if there is one more than classes"

HEADS = (
    Head(
        "NoriaParseSSDCorners",
        f"SSD, RFB: corner boxes in 0..1 and scores; {_RULE}",
        _layouts(unit=True),
    ),
    Head(
        "NoriaParseSSDCenters",
        f"centre boxes in 0..1 and scores; {_RULE}",
        _layouts(unit=True, centres=True),
    ),
    Head(
        "NoriaParseBoxesScores",
        f"YOLO-NAS, PP-YOLOE: corner boxes in pixels and scores; {_RULE}",
        _layouts(unit=False),
    ),
)
