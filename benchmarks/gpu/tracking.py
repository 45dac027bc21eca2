"""Trackers that look at images in the GPU's memory, against the same images on the host."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.gpu.clips import clip, images, show
from headrace.media.frame import Frame
from headrace.meta import Detections, FrameMeta, Space
from headrace.pipeline.track import open_tracker

_TRACKERS = ("nvdcf-max-perf", "nvdcf-perf", "nvdcf-accuracy")
_OBJECTS, _FRAMES, _EVERY = 20, 60, 2


def trackers() -> None:
    """20 objects of a 1920x1080 video: results, and milliseconds of a frame."""
    rows: list[tuple[Any, ...]] = []
    path = clip("libx264")
    for name in _TRACKERS:
        here, there = open_tracker(name), open_tracker(name)
        same = copied = 0
        times: tuple[list[float], list[float]] = ([], [])
        for number, frame in enumerate(images(path, _FRAMES)):
            shown = _meta(number, frame)
            start = perf_counter()
            there.update(frame, shown)
            times[0].append(1e3 * (perf_counter() - start))
            copied += frame.on_device is None or frame.on_device.downloaded
            known = _meta(number, frame)
            start = perf_counter()
            host = Frame(tuple(frame.planes), frame.format, frame.width, frame.height, frame.color)
            here.update(host, known)
            times[1].append(1e3 * (perf_counter() - start))
            ours, theirs = shown.objects, known.objects
            same += (
                np.array_equal(ours.object_ids, theirs.object_ids)
                and ours.rects.tobytes() == theirs.rects.tobytes()
            )
        rows.append((name, same, copied, median(times[0]), median(times[1])))
    headings = ("tracker", f"equal, of {_FRAMES}", "copied", "ms there", "ms with the copy")
    show("trackers", headings, rows)


def _meta(number: int, frame: Frame) -> FrameMeta:
    """Objects at places of the image that drift; a detector sees every second frame."""
    inferred = number % _EVERY == 0
    meta = FrameMeta("", 0, number, 0, frame.width, frame.height, inferred=inferred)
    if inferred:
        rng = np.random.default_rng(0)
        boxes = rng.uniform((0, 0, 40, 60), (1800, 950, 120, 130), (_OBJECTS, 4))
        boxes[:, :2] += rng.normal(0, 0.3, (_OBJECTS, 2)) * number
        kinds = np.zeros(_OBJECTS, np.int64)
        meta.objects.append(Detections(boxes, np.ones(_OBJECTS), kinds, space=Space.FRAME), 1)
    return meta
