"""Heads of rows that begin with the number of the image, or with the class. Network pixels."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.infer.parsers.boxes import class_numbers, clipped_corners, column_thresholds
from headrace.infer.parsers.head import Arrays, Head, Layout, Out
from headrace.meta.detections import Detections
from headrace.meta.layers import DetectionParams, NetworkInfo


def _rows(
    arrays: Arrays,
    network: NetworkInfo,
    params: DetectionParams,
    *,
    columns: tuple[int, int, int],
    unit: bool = False,
    image: bool = True,
) -> Detections:
    """Rows with corner boxes; `columns` of the first corner, the score and the class.

    With `image` a row of image -1 ends the list: what follows was not written. Corners are in
    pixels, with `unit` in 0..1.
    """
    rows = arrays[0]
    corner, score, label = columns
    if image:
        ends = np.nonzero(rows[:, 0] < 0)[0]
        rows = rows[: ends[0]] if len(ends) else rows
    class_ids = class_numbers(rows[:, label])
    keep = rows[:, score] >= column_thresholds(params, class_ids)
    rows, class_ids = rows[keep], class_ids[keep]
    scale = np.array([network.width, network.height] * 2 if unit else [1] * 4, np.float32)
    x1, y1, x2, y2 = (rows[:, corner : corner + 4] * scale).T
    return clipped_corners(x1, y1, x2, y2, network.width, network.height, rows[:, score], class_ids)


def _likely(*_: object) -> bool:
    return True


_SEVEN, _SIX = Out("K 7"), Out("K 6")

HEADS = (
    Head(
        "HeadraceParseYoloV7Rows",
        "YOLOv7 with NMS inside (--end2end --max-wh): rows image, corners in pixels, class, score",
        (Layout((_SEVEN,), partial(_rows, columns=(1, 6, 5)), likely=_likely),),
    ),
    Head(
        "HeadraceParseYoloNasRows",
        "YOLO-NAS of super-gradients, flat: rows image, corners in pixels, score, class",
        (Layout((_SEVEN,), partial(_rows, columns=(1, 5, 6)), likely=_likely),),
    ),
    Head(
        "HeadraceParseSSDRows",
        "DetectionOutput of OpenVINO and Caffe: rows image, class, score, corners in 0..1; image "
        "-1 ends the list; class 0 is background",
        (Layout((_SEVEN,), partial(_rows, columns=(3, 2, 1), unit=True), likely=_likely),),
    ),
    Head(
        "HeadraceParsePaddleRows",
        "PaddleDetection with NMS inside: rows class, score, corners in pixels",
        (
            Layout(
                (_SIX, Out("1", integers=True, exact=True)),
                partial(_rows, columns=(2, 1, 0), image=False),
                likely=_likely,
            ),
        ),
    ),
)
