"""Counts of a run's report."""

from __future__ import annotations

from collections import Counter

from noria.meta import FrameMeta
from noria.pipeline.report import RunReport, count_objects


def test_a_class_without_a_label_counts_by_its_number() -> None:
    meta = FrameMeta("a.mp4", 0, 0, 0, 64, 64)
    for class_id in (0, 1, 1, 7):
        meta.objects.add(1, 1, 5, 5, class_id=class_id)
    meta.objects.labels[0] = ("cat", "dog")
    counts: Counter[str] = Counter()
    count_objects(meta, counts)
    assert counts == {"cat": 1, "dog": 2, "class 7": 1}


def test_the_rate_counts_no_frame_that_was_dropped() -> None:
    report = RunReport("camera:0", frames=100, dropped_frames=75, seconds=2.0)
    assert report.fps == 12.5
    assert report.to_dict()["fps"] == 12.5
    assert "12.5 fps" in repr(report)
