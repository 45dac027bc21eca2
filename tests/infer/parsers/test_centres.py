"""CenterFace: one box for each peak, where its maps say."""

from __future__ import annotations

import numpy as np

from headrace.infer.parsers import WELL_KNOWN
from headrace.meta import DetectionParams, Layer, NetworkInfo


def test_a_peak_is_a_box() -> None:
    heat, sizes, offsets = (np.zeros((c, 8, 16), np.float32) for c in (1, 2, 2))
    heat[0, 3, 5], heat[0, 1, 1] = 0.75, 0.25
    sizes[:, 3, 5] = np.log(2), np.log(3)  # height, width in cells
    offsets[:, 3, 5] = 0.25, -0.25  # y, x in cells
    layers = {n: Layer(n, a) for n, a in
              {"537": heat, "538": sizes, "539": offsets,
               "540": np.zeros((10, 8, 16), np.float32)}.items()}  # fmt: skip
    params = DetectionParams(1, np.float32([0.5]))
    found = WELL_KNOWN["HeadraceParseCenterFace"](layers, NetworkInfo(64, 32, 3), params)
    np.testing.assert_allclose(found.scores, [0.75])
    # the centre is 5.25, 3.75 cells of 4 pixels
    np.testing.assert_allclose(found.boxes, [[21 - 6, 15 - 4, 12, 8]], rtol=1e-6)
    assert found.class_ids.tolist() == [0]


def test_boxes_end_at_the_edge() -> None:
    heat = np.ones((1, 2, 2), np.float32)
    other = {n: Layer(n, np.full((c, 2, 2), 9, np.float32)) for n, c in
             {"s": 2, "o": 2, "l": 10}.items()}  # fmt: skip
    layers = {"h": Layer("h", heat), **other}
    params = DetectionParams(1, np.float32([0.5]))
    found = WELL_KNOWN["HeadraceParseCenterFace"](layers, NetworkInfo(8, 8, 3), params)
    np.testing.assert_allclose(found.boxes, [[0, 0, 8, 8]] * 4)
