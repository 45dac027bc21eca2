"""Many small crops of one 1080p frame, and what selecting objects costs.

1,000 crops to 64x64, RGB planar float32, scaled to 0..1, bilinear, one thread: `Preprocessor.crops`
beside a loop of single calls, and beside OpenCV's resize of each crop with one blobFromImages, for
I420 after cvtColor of the frame. "selection" lines are 1,000 tracked objects in a frame beside a
loop over objects that keeps one dictionary entry for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Row, compare
from benchmarks.preprocess import _images
from headrace.config import ModelConfig
from headrace.infer.geometry import Rect
from headrace.infer.preprocess import Preprocessor
from headrace.infer.selection import Selector
from headrace.media.frame import Frame
from headrace.meta import ClassifierMeta, FrameMeta, LabelInfo

OBJECTS, NETWORK = 1000, 64


def rows() -> Iterable[Row]:
    """Crops, then selection."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield from _crop_rows()
    finally:
        cv2.setNumThreads(before)
    yield from _selection_rows()


def _crop_rows() -> Iterable[Row]:
    rng = np.random.default_rng(1)
    rects = _rects(rng)
    block, i420, bgr = _images()
    pre = Preprocessor(NETWORK, NETWORK, scale=1 / 255, scaling_filter=1)
    out = pre.empty(OBJECTS)
    whole = Frame.from_array(bgr)
    ours = partial(pre.crops, i420, rects, out)
    yield compare("I420, beside single calls", ours, lambda: _one_by_one(pre, i420, rects, out))
    yield compare(
        "I420, beside cv2",
        ours,
        lambda: _opencv(cv2.cvtColor(block, cv2.COLOR_YUV2BGR_I420), rects),
    )
    yield compare(
        "BGR, beside cv2", partial(pre.crops, whole, rects, out), lambda: _opencv(bgr, rects)
    )
    tiny = Preprocessor(1, 1, scale=1 / 255)
    least = tiny.empty(OBJECTS)
    yield compare(
        "I420 to 1x1: what a crop costs at least, beside single calls",
        partial(tiny.crops, i420, rects, least),
        lambda: _one_by_one(tiny, i420, rects, least),
    )


def _selection_rows() -> Iterable[Row]:
    rng = np.random.default_rng(1)
    red = ClassifierMeta(5, (LabelInfo(0, 0, 0.9, "red"),), "red ")
    for name, interval in (("all cached", 2**31 - 1), ("all submitted", 0)):
        cfg = ModelConfig(
            process_mode=2,
            network_type=1,
            operate_on_gie_id=1,
            operate_on_class_ids=(0, 2),
            secondary_reinfer_interval=interval,
        )
        meta = _meta(rng)
        yield compare(
            f"selection, {OBJECTS} objects, {name}",
            _vectorised(cfg, meta, red),
            _one_object_at_a_time(cfg, meta, red),
        )


def _rects(rng: np.random.Generator) -> Any:
    size = rng.uniform(24, 120, (OBJECTS, 2))
    corner = rng.uniform(0, (1920, 1080) - size)
    return np.hstack((corner, size)).astype(np.float32)


def _one_by_one(pre: Preprocessor, frame: Frame, rects: Any, out: Any) -> None:
    for item, rect in zip(out, rects.tolist(), strict=True):
        pre(frame, item, Rect(*rect))


def _opencv(bgr: Any, rects: Any) -> Any:
    items = []
    for left, top, width, height in rects.astype(np.int32).tolist():
        piece = bgr[top : top + height, left : left + width]
        items.append(cv2.resize(piece, (NETWORK, NETWORK), interpolation=cv2.INTER_LINEAR))
    return cv2.dnn.blobFromImages(items, 1 / 255, swapRB=True)


def _meta(rng: np.random.Generator) -> FrameMeta:
    meta = FrameMeta("bench", 0, 0, 0, 1920, 1080)
    objects = meta.objects
    objects.rects = _rects(rng)
    objects.class_ids = rng.choice([0, 2], OBJECTS).astype(np.int32)
    objects.component_ids = np.ones(OBJECTS, np.int32)
    objects.object_ids = np.arange(1, OBJECTS + 1, dtype=np.uint64)
    return meta


def _vectorised(cfg: ModelConfig, meta: FrameMeta, result: ClassifierMeta) -> Callable[[], object]:
    selector = Selector(cfg)

    def frame() -> object:
        meta.frame += 1
        selector.next_buffer()
        selection = selector.select(meta)
        selector.store_many(selection, [result] * len(selection.infer))
        return selector.cached_many(selection)

    return frame


def _one_object_at_a_time(
    cfg: ModelConfig, meta: FrameMeta, result: ClassifierMeta
) -> Callable[[], object]:
    entries: dict[int, list[Any]] = {}

    def frame() -> object:
        meta.frame += 1
        infer, cached = [], []
        for o in meta.objects:
            entry = entries.get(o.object_id)
            if o.component_id == 1 and o.class_id in (0, 2) and o.width >= 1 and o.height >= 1:
                area = o.width * o.height
                age = meta.frame - entry[0] if entry else 0
                if not entry or age > cfg.secondary_reinfer_interval or entry[1] * 1.2 < area:
                    entries[o.object_id] = [meta.frame, area, result]
                    infer.append(o.index)
                    continue
            if entry:
                cached.append(entry[2])
        return infer, cached

    return frame


if __name__ == "__main__":
    for name, ours, theirs, ratio in rows():
        print(f"{name:62} {ours:8.3f} ms   {theirs:8.3f} ms   {ratio:5.2f}x")
