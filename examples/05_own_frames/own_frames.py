"""Images that a program makes or gets from elsewhere: one, a list, a camera of one's own.

python own_frames.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import headrace

SCENE = Path(__file__).resolve().parents[1] / "conveyor"
CONFIG = SCENE / "config_infer_primary.txt"

sys.path.insert(0, str(SCENE))
from conveyor_scene import Scene  # noqa: E402  the renderer of the demo scene


def one_image() -> headrace.FrameMeta:
    """A model is called with an array; here in RGB order, as the renderer and Pillow have it."""
    image, _ = Scene(seed=3).frame(0)
    with headrace.Inferencer.from_config(CONFIG) as detector:
        return detector(image, format="rgb")


def a_list(count: int = 10) -> list[int]:
    """How many parcels are on each image of a list."""
    scene = Scene(seed=3)
    images = [scene.frame(i)[0] for i in range(count)]
    source = headrace.ArraySource(images, format="rgb", fps=25)
    return [len(meta.objects) for _, meta in headrace.open_pipeline(CONFIG, sources=source)]


def camera(seconds: float) -> Iterator[np.ndarray]:
    """Stands for a camera whose maker has a library for it: 25 frames a second, as they come.

    With OpenCV: `ok, image = cv2.VideoCapture(0).read()`, and no `format="rgb"` below.
    """
    scene = Scene(seed=4)
    start = time.monotonic()
    number = 0
    while time.monotonic() - start < seconds:
        yield scene.frame(number)[0]
        number += 1
        time.sleep(max(0.0, start + number / 25 - time.monotonic()))


def from_a_camera(seconds: float = 1.5) -> headrace.RunReport:
    """`live=True`: when the models are slower than the camera, images are dropped and counted."""
    source = headrace.ArraySource(camera(seconds), format="rgb", fps=25, live=True, name="belt")
    pipeline = headrace.open_pipeline(CONFIG, sources=source, tracker="iou")
    for frame, meta in pipeline:
        if frame.frame % 10 == 0:
            print(f"image {frame.frame}: {meta.objects}")
    return pipeline.report


if __name__ == "__main__":
    print(one_image())
    print(*a_list())
    print(from_a_camera())
