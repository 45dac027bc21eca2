"""Fused pre-processing beside OpenCV's cvtColor + resize + blobFromImage, in one run.

1080p to a 640x640 letterbox, scaled to 0..1, RGB planar float32. Both sides work on the same
image and the same number of threads; measurements alternate and the medians are compared. OpenCV
takes I420 only as one tight block of memory, which it gets for free here. "kept" lines let it keep
the memory of its intermediate images from call to call instead of asking for it anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Row, compare
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat

WIDTH, HEIGHT, NETWORK = 1920, 1080, 640
REPEATS = 60
ROW_PAD = 64  # decoders pad their rows
FILTERS = {"nearest": (0, cv2.INTER_NEAREST), "bilinear": (1, cv2.INTER_LINEAR)}


def rows() -> Iterable[Row]:
    """Every combination of threads (1 and 2), filter, source and kept memory."""
    block, i420, bgr = _images()
    sources = {"I420": (i420, block), "BGR": (Frame.from_array(bgr), bgr)}
    before = cv2.getNumThreads()
    for threads, (name, (ours, theirs)), source, keep in product(
        (1, 2), FILTERS.items(), sources, (False, True)
    ):
        frame, image = sources[source]
        pre = Preprocessor(
            NETWORK,
            NETWORK,
            scale=1 / 255,
            maintain_aspect_ratio=True,
            scaling_filter=ours,
            threads=threads,
        )
        out = pre.empty(1)[0]
        label = f"{source}, {name}, {threads} thread{'s' * (threads > 1)}{', kept' * keep}"
        cv2.setNumThreads(threads)
        try:
            yield compare(
                label,
                partial(pre, frame, out),
                _OpenCv(image, theirs, keep=keep),
                repeat=REPEATS,
                warm_up=5,
            )
        finally:
            cv2.setNumThreads(before)


class _OpenCv:
    """The usual calls: cvtColor for I420, resize, a black border below, blobFromImage."""

    def __init__(self, image: Any, filter: int, *, keep: bool) -> None:
        self.image, self.filter, self.keep = image, filter, keep
        self.bgr = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        self.padded = np.zeros((NETWORK, NETWORK, 3), np.uint8)
        self.height = NETWORK * HEIGHT // WIDTH

    def __call__(self) -> Any:
        size = (NETWORK, self.height)
        bgr = self.image
        if bgr.ndim == 2:
            kept = self.bgr if self.keep else None
            bgr = cv2.cvtColor(bgr, cv2.COLOR_YUV2BGR_I420, dst=kept)
        if self.keep:
            padded = self.padded
            cv2.resize(bgr, size, dst=padded[: self.height], interpolation=self.filter)
        else:
            small = cv2.resize(bgr, size, interpolation=self.filter)
            below = NETWORK - self.height
            padded = cv2.copyMakeBorder(small, 0, below, 0, 0, cv2.BORDER_CONSTANT)
        return cv2.dnn.blobFromImage(padded, 1 / 255, swapRB=True)


def _images() -> tuple[Any, Frame, Any]:
    """A smooth, noisy image: as one I420 block, as decoder planes with padded rows, as BGR."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (34, 60, 3), dtype=np.uint8)
    bgr = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    bgr = cv2.add(bgr, rng.integers(0, 12, bgr.shape, dtype=np.uint8))
    block = cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420)
    luma = block[:HEIGHT]
    chroma = block[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)
    planes = []
    for plane in (luma, *chroma):
        padded = np.zeros((plane.shape[0], plane.shape[1] + ROW_PAD), np.uint8)
        padded[:, : plane.shape[1]] = plane
        planes.append(padded[:, : plane.shape[1]])
    frame = Frame(tuple(planes), PixelFormat.I420, WIDTH, HEIGHT, ColorSpace.BT601)
    return block, frame, bgr


if __name__ == "__main__":
    for name, ours, theirs, ratio in rows():
        print(f"{name:46} {ours:7.3f} ms   cv2 {theirs:7.3f} ms   {ratio:5.2f}x")
