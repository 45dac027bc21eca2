"""Heads of maps with one peak for each object. Network pixels."""

from __future__ import annotations

import numpy as np

from headrace.infer.parsers.boxes import clipped_corners, first_threshold
from headrace.infer.parsers.head import Arrays, Head, Layout, Out
from headrace.meta.detections import Detections
from headrace.meta.layers import DetectionParams, NetworkInfo


def _center_face(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    """Each cell above T[0] is a box: centre = (cell + 0.5 + offset) * stride, size = exp * stride.

    Sizes and offsets are height and y first.
    """
    heat, sizes, offsets, _ = arrays
    rows, columns = heat.shape[1:]
    if not heat.size:
        return Detections.empty()
    y, x = np.nonzero(heat[0] >= first_threshold(params))
    stride = np.array([[network.height / rows], [network.width / columns]], np.float32)
    centre = (np.stack([y, x]).astype(np.float32) + np.float32(0.5) + offsets[:, y, x]) * stride
    half = np.exp(sizes[:, y, x]) * stride * np.float32(0.5)
    (y1, x1), (y2, x2) = centre - half, centre + half
    return clipped_corners(
        x1, y1, x2, y2, network.width, network.height, heat[0, y, x], np.zeros(len(y), np.int32)
    )


HEADS = (
    Head(
        "HeadraceParseCenterFace",
        "CenterFace: maps of heat, size, offset and landmarks (not used); heat >= T[0]",
        (
            Layout(
                (Out("1 H W"), Out("2 H W"), Out("2 H W"), Out("10 H W")),
                _center_face,
                likely=lambda *_: True,
            ),
        ),
    ),
)
