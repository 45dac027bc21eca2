"""The iou tracker against the library's, on the same frames."""

from __future__ import annotations

import numpy as np

from benchmarks.common import Row, compare
from headrace.media import Frame, PixelFormat
from headrace.meta import Detections, FrameMeta, Space
from headrace.pipeline.track import Tracker, open_tracker

WIDTH, HEIGHT, LENGTH = 1920, 1080, 12
IMAGE = Frame.from_array(np.zeros((2, 2), np.uint8), PixelFormat.GRAY)


def crowd(count: int, *, classes: int = 1, seed: int = 0) -> list[Detections]:
    """A video of `count` moving objects in any order; one in twenty is not found."""
    rng = np.random.default_rng(seed)
    centre, size = rng.uniform(0, (WIDTH, HEIGHT), (count, 2)), rng.uniform(20, 120, (count, 2))
    speed, kind = rng.normal(0, 3, (count, 2)), rng.integers(0, classes, count)
    video = []
    for t in range(LENGTH):
        boxes = np.concatenate((centre + speed * t - size / 2, size), axis=1)
        boxes += rng.normal(0, 1, boxes.shape)
        found = rng.permutation(count)[: count - count // 20]
        scores = rng.uniform(0.8, 1, len(found))
        video.append(Detections(boxes[found], scores, kind[found], space=Space.FRAME))
    return video


class Player:
    """Shows a video to a tracker again and again; one call is one frame."""

    def __init__(self, tracker: Tracker, video: list[Detections], image: Frame = IMAGE) -> None:
        self.tracker, self.video, self.image, self.frame = tracker, video, image, 0

    def __call__(self) -> None:
        # there and back, so that no object ever jumps
        at = self.frame % (2 * LENGTH - 2)
        shown = self.video[at if at < LENGTH else 2 * LENGTH - 2 - at]
        meta = FrameMeta("", 0, self.frame, 0, WIDTH, HEIGHT, inferred=True)
        meta.objects.append(shown, 1)
        self.tracker.update(self.image, meta)
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
    rng, video = np.random.default_rng(0), crowd(20)
    noise = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    image = Frame.from_array(noise, PixelFormat.RGB)
    for name in ("nviou", "nvsort", "nvdcf-max-perf", "nvdcf-perf", "nvdcf-accuracy"):
        ours, theirs = (Player(open_tracker(spec), video, image) for spec in (name, "iou"))
        row = compare(f"20 objects: {name} : iou", ours, theirs, repeat=15, warm_up=8)
        costs = f"{row.ours_ms * 50:.0f} : {row.reference_ms * 50:.1f} us each"
        table.append(row._replace(name=f"{row.name}, {costs}"))
    return table
