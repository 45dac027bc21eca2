"""Counts of a run's report."""

from __future__ import annotations

from collections import Counter

from noria.meta import FrameMeta
from noria.pipeline.report import count_objects


def test_a_class_without_a_label_counts_by_its_number() -> None:
    meta = FrameMeta("a.mp4", 0, 0, 0, 64, 64)
    for class_id in (0, 1, 1, 7):
        meta.objects.add(1, 1, 5, 5, class_id=class_id)
    meta.objects.labels[0] = ("cat", "dog")
    counts: Counter[str] = Counter()
    count_objects(meta, counts)
    assert counts == {"cat": 1, "dog": 2, "class 7": 1}
