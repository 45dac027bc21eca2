"""The iou tracker against the library's, on the same frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.common import Row, compare
from benchmarks.track_scenes import scenes
from headrace.media import Frame, PixelFormat
from headrace.meta import Detections, FrameMeta, Space
from headrace.pipeline.track import Tracker, open_tracker

WIDTH, HEIGHT, LENGTH = 1920, 1080, 12
Rng = np.random.Generator
IMAGE = Frame.from_array(np.zeros((HEIGHT, WIDTH), np.uint8), PixelFormat.GRAY)


def crowd(count: int, *, classes: int = 1, seed: int = 0) -> list[Detections]:
    """A video of `count` moving objects in any order; one in twenty is not found."""
    rng = np.random.default_rng(seed)
    centre, size = rng.uniform(0, (WIDTH, HEIGHT), (count, 2)), rng.uniform(20, 120, (count, 2))
    speed, kind = rng.normal(0, 3, (count, 2)), rng.integers(0, classes, count)
    boxes = [np.concatenate((centre + speed * t - size / 2, size), axis=1) for t in range(LENGTH)]
    return [_found(at, kind, rng) for at in boxes]


def _found(boxes: npt.NDArray[np.float64], kind: npt.NDArray[np.int64], rng: Rng) -> Detections:
    """What a detector finds of the objects at `boxes`."""
    count = len(boxes)
    found = rng.permutation(count)[: count - count // 20]
    boxes = boxes + rng.normal(0, 1, boxes.shape)
    return Detections(
        boxes[found], rng.uniform(0.8, 1, count)[found], kind[found], space=Space.FRAME
    )


def textured() -> tuple[list[Detections], list[Frame]]:
    """A video of 20 objects that look different and cross, and its images."""
    scene, rng = scenes()["crossings"], np.random.default_rng(0)
    kind = np.zeros(scene.ways.shape[1], np.int64)
    times = range(LENGTH)
    return [_found(scene.ways[t], kind, rng) for t in times], [scene.draw(t) for t in times]


class Player:
    """Shows a video to a tracker again and again; one call is one frame."""

    def __init__(
        self, tracker: Tracker, video: list[Detections], images: Sequence[Frame] = [IMAGE] * LENGTH
    ) -> None:
        self.tracker, self.video, self.images, self.frame = tracker, video, images, 0

    def __call__(self) -> None:
        # there and back, so that no object ever jumps
        at = self.frame % (2 * LENGTH - 2)
        at = at if at < LENGTH else 2 * LENGTH - 2 - at
        image = self.images[at]
        meta = FrameMeta("", 0, self.frame, 0, image.width, image.height, inferred=True)
        meta.objects.append(self.video[at], 1)
        self.tracker.update(image, meta)
        self.frame += 1


def rows() -> list[Row]:
    """(name, ours in ms, reference in ms, ratio), medians of one frame."""
    table = []
    for count, classes in ((10, 1), (100, 1), (1000, 1), (1000, 10)):
        video = crowd(count, classes=classes)
        for name in ("sort", "bytetrack", "ocsort", "cbiou"):
            what = f"{count} objects" + f", {classes} classes" * (classes > 1)
            ours, theirs = (Player(open_tracker(spec), video) for spec in ("iou", name))
            row = compare(f"{what}: {name}", ours, theirs, repeat=15, warm_up=4)
            each = 1e3 / count  # microseconds for an object
            costs = f"{row.ours_ms * each:.1f} : {row.reference_ms * each:.0f} us each"
            table.append(row._replace(name=f"{row.name}, {costs}"))
    video, images = textured()
    for name in ("nviou", "nvsort", "nvdcf-max-perf", "nvdcf-perf", "nvdcf-accuracy"):
        ours, theirs = (Player(open_tracker(spec), video, images) for spec in (name, "iou"))
        row = compare(f"20 objects: {name} : iou", ours, theirs, repeat=15, warm_up=8)
        costs = f"{row.ours_ms * 50:.0f} : {row.reference_ms * 50:.1f} us each"
        table.append(row._replace(name=f"{row.name}, {costs}"))
    return table
