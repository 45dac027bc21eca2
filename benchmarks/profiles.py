"""Pre-processing by the profile `modern` beside that by `nvinfer`, and beside OpenCV's.

YOLOX-nano's input: a 768x432 image in the top left corner of 416x416, bytes as they are, BGR
planar float32, bilinear, one thread. The first rows have `nvinfer` as the reference; in the others,
OpenCV's cvtColor + resize + blobFromImage, which keeps its memory from call to call.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Row, compare
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat

WIDTH, HEIGHT, NETWORK = 768, 432, 416
REPEATS = 300
OPTIONS: dict[str, Any] = {"color_format": 1, "maintain_aspect_ratio": True, "scaling_filter": 1}


def rows() -> Iterable[Row]:
    """I420 as decoders give it and BGR as programs do."""
    rng = np.random.default_rng(0)
    block = rng.integers(16, 236, (HEIGHT * 3 // 2, WIDTH), dtype=np.uint8)
    u, v = block[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)
    bgr = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    frames = {
        "I420": (Frame((block[:HEIGHT], u, v), PixelFormat.I420, WIDTH, HEIGHT), block),
        "BGR": (Frame.from_array(bgr), bgr),
    }
    modern = Preprocessor(NETWORK, NETWORK, profile="modern", **OPTIONS)
    nvinfer = Preprocessor(NETWORK, NETWORK, **OPTIONS)
    out = modern.empty(1)[0]
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        for name, (frame, image) in frames.items():
            ours = partial(modern, frame, out)
            reference = partial(nvinfer, frame, out)
            yield compare(f"{name}, modern beside nvinfer", ours, reference, repeat=REPEATS)
            yield compare(f"{name}, modern beside OpenCV", ours, _OpenCv(image), repeat=REPEATS)
    finally:
        cv2.setNumThreads(before)


class _OpenCv:
    """The calls of a script that a model came with."""

    def __init__(self, image: Any) -> None:
        self.image = image
        self.bgr = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        self.canvas = np.full((NETWORK, NETWORK, 3), 114, np.uint8)
        ratio = min(NETWORK / WIDTH, NETWORK / HEIGHT)
        self.size = int(WIDTH * ratio), int(HEIGHT * ratio)

    def __call__(self) -> Any:
        bgr = self.image
        if bgr.ndim == 2:
            bgr = cv2.cvtColor(bgr, cv2.COLOR_YUV2BGR_I420, dst=self.bgr)
        cv2.resize(bgr, self.size, dst=self.canvas[: self.size[1], : self.size[0]])
        return cv2.dnn.blobFromImage(self.canvas)
