"""Clustering and attaching several items in one call: as one call for each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.config.enums import ClusterMode
from headrace.infer.attach import Attacher, Destination
from headrace.infer.cluster import Clusterer, Reason
from headrace.infer.geometry import Rect, fit
from headrace.meta import Detections, FrameMeta
from tests.profiles import examples

CONFIG = """[property]
num-detected-classes=4
network-type=0
cluster-mode={mode}
filter-out-class-ids=3
[class-attrs-all]
pre-cluster-threshold=0.2
nms-iou-threshold=0.4
minBoxes=2
eps=0.6
detected-min-w=20
roi-top-offset=30
topk=6
"""


def crowd(rng: np.random.Generator, count: int) -> Detections:
    boxes = rng.uniform(0, 300, (count, 4)).astype(np.float32)
    boxes[:, 2:] /= 4
    ids = rng.integers(-1, 5, count).astype(np.int32)
    return Detections(boxes, rng.random(count, np.float32), ids)


@pytest.mark.parametrize("mode", list(ClusterMode))
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32), counts=st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_items_are_clustered_and_attached_alike(tmp_path_factory, mode, seed, counts):
    path = tmp_path_factory.mktemp("batched") / "config.txt"
    path.write_text(CONFIG.format(mode=int(mode)))
    cfg = ModelConfig.load(path)
    rng = np.random.default_rng(seed)
    items = [crowd(rng, count) for count in counts]
    clusterer, attacher = Clusterer(cfg), Attacher(cfg, ("a", "b"))
    transform = fit(Rect(0, 0, 640, 480), 320, 320, maintain_aspect_ratio=True)

    def frames() -> list[FrameMeta]:
        return [FrameMeta("video", 0, i, 0, 640, 480) for i in range(len(items))]

    joined = Detections(
        np.concatenate([d.boxes for d in items]),
        np.concatenate([d.scores for d in items]),
        np.concatenate([d.class_ids for d in items]),
    )
    starts = np.cumsum([0, *counts]).astype(np.int32)
    tallies = np.zeros((2, 5, len(Reason)), np.int64)
    drops = np.zeros((2, 5, 11), np.int64)
    together = clusterer(joined, starts, tally=tallies[0])
    metas, alone = frames(), frames()
    places = [Destination(transform, meta) for meta in metas]
    attached = attacher.attach(together.detections, together.starts, places, tally=drops[0])
    for i, (item, meta) in enumerate(zip(items, alone, strict=True)):
        single = clusterer(item, tally=tallies[1])
        first, end = together.starts[i : i + 2].tolist()
        part = together.detections.rows(first, end)
        assert part.boxes.tobytes() == single.detections.boxes.tobytes()
        assert part.scores.tobytes() == single.detections.scores.tobytes()
        assert part.class_ids.tolist() == single.detections.class_ids.tolist()
        assert (together.kept[first:end] - starts[i]).tolist() == single.kept.tolist()
        ones = np.array([0, len(single.detections)], np.int32)
        place = [Destination(transform, meta)]
        attacher.attach(single.detections, ones, place, tally=drops[1])
    assert (tallies[0] == tallies[1]).all()
    assert tallies[0].sum() == sum(counts)
    assert (drops[0] == drops[1]).all()
    assert drops[0].sum() == len(attached.dropped)
    assert len(attached.kept) + len(attached.dropped) == len(together.detections)
    assert attached.starts.tolist() == np.cumsum([0, *(len(m.objects) for m in metas)]).tolist()
    for meta, other in zip(metas, alone, strict=True):
        assert meta.inferred
        for name in ("rects", "confidences", "class_ids", "component_ids", "object_ids", "parents"):
            ours, theirs = getattr(meta.objects, name), getattr(other.objects, name)
            assert ours.tobytes() == theirs.tobytes()
            assert ours.dtype == theirs.dtype


def test_rows_of_other_items_stay_as_they_are(tmp_path):
    (tmp_path / "config.txt").write_text(CONFIG.format(mode=4))
    cfg = ModelConfig.load(tmp_path / "config.txt")
    found = Detections(
        np.array([[10, 40, 50, 60], [70, 80, 40, 40]], np.float32), np.ones(2), np.zeros(2, int)
    )
    transform = fit(Rect(0, 0, 320, 320), 320, 320)
    metas = [FrameMeta("video", 0, i, 0, 320, 320) for i in range(2)]
    places = [Destination(transform, meta) for meta in metas]
    Attacher(cfg).attach(found, np.array([0, 1, 2], np.int32), places)
    for meta, (a, b) in zip(metas, pairwise((0, 1, 2)), strict=True):
        np.testing.assert_array_equal(meta.objects.rects, found.boxes[a:b])
    metas[0].objects[0].rect = (1, 2, 3, 4)
    np.testing.assert_array_equal(metas[1].objects.rects, found.boxes[1:])
