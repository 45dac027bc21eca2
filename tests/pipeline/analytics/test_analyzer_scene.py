"""Counts on the demo scene against its exact truth, by another way of counting."""

import shutil
from fractions import Fraction

import numpy as np
import pytest

from headrace import open_pipeline
from headrace.pipeline.analytics import Analytics, AnalyticsRules, Line, Region, SourceRules
from tests.pipeline.track.scenes import HEIGHT, TRUTH, meta, video

X = 320.0
LINE = Line(name="passed", start=(X, 0.0), end=(X, HEIGHT))
SCAN = Region(name="scan", points=((200, 60), (440, 60), (440, 330), (200, 330)))


def rules() -> AnalyticsRules:
    return AnalyticsRules(sources={0: SourceRules(regions=(SCAN,), lines=(LINE,))})


def feet(boxes):
    return [(Fraction(x) + Fraction(w) / 2, Fraction(y) + Fraction(h)) for x, y, w, h in boxes]


def test_every_count_is_that_of_the_truth():
    """All parcels move right on a belt: one has passed once its place is beyond the line."""
    analytics, before, passed = Analytics(rules()), {}, 0
    for number, truth in enumerate(video()):
        m = meta(number, truth.boxes, classes=truth.classes)
        m.objects.object_ids[:] = np.array(truth.parcels, np.uint64)
        analytics.apply(m)
        places = dict(zip(truth.parcels, feet(truth.boxes), strict=True))
        # a place on the line belongs to the side where it began
        passed += sum(before[i][0] <= X < x for i, (x, _) in places.items() if i in before)
        assert all(x >= before[i][0] for i, (x, _) in places.items() if i in before)
        before |= places
        scanned = sum(200 <= x < 440 and 60 <= y < 330 for x, y in places.values())
        assert m.analytics.inside == {"scan": scanned}
        assert m.analytics.crossed_total == {"passed": passed}
    assert passed >= 8


@pytest.mark.slow
def test_the_detector_and_a_tracker_count_the_same(tmp_path):
    for name in ("detector.onnx", "config_infer_primary.txt", "conveyor_parser.py", "labels.txt"):
        shutil.copy(TRUTH.parent / name, tmp_path)
    pipeline = open_pipeline(
        tmp_path / "config_infer_primary.txt",
        sources=TRUTH.parent / "conveyor.mp4",
        tracker="iou:match_classes=no,max_age=15",
        analytics=rules(),
    )
    last = None
    with pipeline:
        for _, m in pipeline:
            last = m.analytics
    ways = {}
    for truth in video():
        for i, (x, _) in zip(truth.parcels, feet(truth.boxes), strict=True):
            ways.setdefault(i, []).append(x)
    assert last.crossed_total == {"passed": sum(min(w) <= X < max(w) for w in ways.values())}
