import json

import numpy as np
import pytest

from headrace.media.sinks.jsonl import LineWriter
from headrace.meta import Caption, Detections, FrameMeta, ObjectAnalytics, Space, Stroke
from headrace.pipeline.analytics import (
    Analytics,
    AnalyticsRules,
    Crowd,
    Heading,
    Line,
    Region,
    SourceRules,
)
from headrace.pipeline.analytics.rules import ALL_SOURCES

SQUARE = ((0.0, 0.0), (100.0, 0.0), (100.0, 100.0), (0.0, 100.0))


def rules(*each, **more):
    kinds = {"regions": Region, "crowds": Crowd, "lines": Line, "headings": Heading}
    of = {k: tuple(r for r in each if isinstance(r, kind)) for k, kind in kinds.items()}
    return AnalyticsRules(sources={ALL_SOURCES: SourceRules(**of)}, **more)


def frame(number, feet, *, ids=None, classes=None, source_id=0, seconds=0.04, size=(640, 480)):
    """Objects of 20 x 40 pixels that stand at places."""
    meta = FrameMeta("s", source_id, number, round(number * seconds * 1e9), *size, inferred=True)
    boxes = np.array([(x - 10, y - 40, 20, 40) for x, y in feet], np.float32).reshape(-1, 4)
    n = len(boxes)
    meta.objects.append(
        Detections(boxes, np.ones(n), np.zeros(n) if classes is None else classes,
                   space=Space.FRAME),
        1, labels=["a", "b", "c"],
    )  # fmt: skip
    if ids is not None:
        meta.objects.object_ids[:] = ids
    return meta


def run(analytics, frames):
    for meta in frames:
        analytics.apply(meta)
    return frames[-1].analytics


def walk(way, **more):
    """One object, track 5, at a place of a way in each frame."""
    return [frame(i, [place], ids=[5], **more) for i, place in enumerate(way)]


def test_regions_count_feet():
    found = run(
        Analytics(rules(
            Region(name="all", points=SQUARE),
            Region(name="b only", points=SQUARE, classes=(1,)),
            Region(name="outside", points=SQUARE, inverse=True),
        )),
        [frame(0, [(50, 99), (50, 101), (0, 0), (100, 50)], classes=[0, 1, 1, 2])],
    )  # fmt: skip
    # the lower and the right edge belong to what follows
    assert found.inside == {"all": 2, "b only": 1, "outside": 2}
    assert found.classes == {0: 1, 1: 2, 2: 1}


def test_objects_know_their_rules():
    meta = frame(0, [(50, 50), (300, 300)], ids=[1, 2])
    run(Analytics(rules(Region(name="r", points=SQUARE), Crowd(name="c", points=SQUARE))), [meta])
    assert meta.objects.analytics == {0: ObjectAnalytics(("r",), ("c",))}
    assert meta.objects.analytics[0].status == " ROI:r"
    meta.objects.keep(np.array([1]))
    assert meta.objects.analytics == {}


@pytest.mark.parametrize(("threshold", "crowded"), [(0, True), (2, True), (3, False)])
def test_a_crowd_reaches_its_threshold(threshold, crowded):
    crowd = Crowd(name="c", points=SQUARE, threshold=threshold)
    analytics = Analytics(rules(crowd))
    found = run(analytics, [frame(0, [(5, 5), (6, 6), (300, 300)])])
    assert (found.inside, found.crowded) == ({"c": 2}, {"c": crowded})
    assert run(analytics, [frame(1, [])]).crowded == {"c": False}


LINE = {"start": (0.0, 100.0), "end": (200.0, 100.0)}
DOWN, UP = ((50.0, 0.0), (50.0, 50.0)), ((50.0, 50.0), (50.0, 0.0))


def test_exact_lines_count_every_crossing_in_their_direction():
    analytics = Analytics(rules(
        Line(name="down", **LINE, toward=DOWN),
        Line(name="up", **LINE, toward=UP),
        Line(name="both", **LINE),
    ))  # fmt: skip
    frames = walk([(50, 90), (50, 110), (50, 95), (50, 130), (250, 130), (250, 90), (90, 90)])
    found = run(analytics, frames)
    assert found.crossed_total == {"down": 2, "up": 1, "both": 3}
    assert [m.analytics.crossed["both"] for m in frames] == [0, 1, 1, 1, 0, 0, 0]
    assert frames[1].objects.analytics[0].crossed == ("down", "both")
    assert not frames[0].objects.analytics


def test_an_object_that_was_away_for_long_is_new():
    analytics = Analytics(rules(Line(name="l", **LINE)))
    before, after = (50, 90), (50, 110)
    late = [frame(0, [before], ids=[5]), frame(200, [after], ids=[5])]
    later = [frame(300, [before], ids=[5]), frame(520, [after], ids=[5])]
    assert run(analytics, late).crossed_total == {"l": 1}
    assert run(analytics, later).crossed_total["l"] == 2  # back over it, not down again


def test_sources_are_apart_and_end():
    analytics = Analytics(rules(Line(name="l", **LINE)))
    run(analytics, [frame(0, [(50, 90)], ids=[5]), frame(0, [(50, 110)], ids=[5], source_id=1)])
    assert run(analytics, [frame(1, [(50, 110)], ids=[5])]).crossed_total == {"l": 1}
    assert run(analytics, [frame(1, [(50, 110)], ids=[5], source_id=1)]).crossed_total == {"l": 0}
    analytics.end_of_stream(0)
    assert run(analytics, [frame(2, [(50, 90)], ids=[5])]).crossed_total == {"l": 0}


@pytest.mark.parametrize(
    ("mode", "way", "counted"),
    [
        # way, direction and frames that the original asks for
        ("balanced", [(50, 60 + 8 * i) for i in range(16)], 1),
        ("balanced", [(50, 60 + 8 * i) for i in range(10)], 0),  # not seen for 11 frames yet
        ("balanced", [(50, 90 + 2 * i) for i in range(30)], 0),  # too short a way
        ("loose", [(50, 60 + 8 * i) for i in range(10)], 1),
        ("strict", [(50, 60 + 8 * i) for i in range(16)], 0),
        ("strict", [(50, 10 + 10 * i) for i in range(30)], 0),  # over before the 21st frame
        ("strict", [(50, 95 - 400 + 20 * i) for i in range(30)], 1),
        ("balanced", [(50, 220 - 8 * i) for i in range(30)], 0),  # against the direction
        ("balanced", [(10 + 20 * i, 60 + 4 * i) for i in range(16)], 0),  # across it: 79 degrees
        ("loose", [(10 + 10 * i, 60 + 4 * i) for i in range(16)], 1),
        ("balanced", [(230, 60 + 8 * i) for i in range(16)], 0),  # beside the line
        ("balanced", [(205, 60 + 8 * i) for i in range(16)], 1),  # half a box beside it
        ("balanced", [(50, y) for _ in range(3) for y in range(20, 200, 8)], 1),  # once each
    ],
)
def test_the_original_s_modes(mode, way, counted):
    line = Line(name="l", **LINE, toward=DOWN, mode=mode)
    assert run(Analytics(rules(line)), walk(way)).crossed_total == {"l": counted}


def test_directions_and_objects_at_rest():
    analytics = Analytics(rules(Heading(name="south", start=(0, 0), end=(0, 9))))
    frames = walk([(100, 10 + 10 * i) for i in range(12)] + [(100, 120)] * 12)
    run(analytics, frames)
    found = [m.objects.analytics.get(0, ObjectAnalytics()) for m in frames]
    assert [bool(f.directions) for f in found[:12]] == [False] * 10 + [True] * 2
    assert found[-1].stopped
    assert not found[-1].directions
    assert " DIR:south " in found[11].status
    assert " STOPPED " in found[-1].status


def test_counts_of_classes_are_smoothed():
    numbers = [3, 3, 3, 1, 3, 0, 3, 3]
    frames = [frame(i, [(9, 9)] * n, seconds=0.1) for i, n in enumerate(numbers)]
    run(Analytics(rules(window_ms=500)), frames)
    assert [m.analytics.classes for m in frames] == [{0: 3}] * 8
    later = [frame(100 + i, [], seconds=0.1) for i in range(3)]
    run(Analytics(rules(window_ms=500)), [*frames, *later])
    assert later[0].analytics.classes == {}


def test_coordinates_are_for_an_image_of_another_size():
    square = tuple((2 * x, 4 * y) for x, y in SQUARE)
    analytics = Analytics(rules(Region(name="r", points=square), size=(1280, 1920)))
    assert run(analytics, [frame(0, [(99, 99), (100, 100)])]).inside == {"r": 1}
    other = frame(1, [(49, 24), (51, 26)], size=(320, 120))
    assert run(analytics, [other]).inside == {"r": 1}


def test_without_tracks_it_says_so_at_the_end():
    analytics = Analytics(rules(Line(name="l", **LINE)))
    run(analytics, [frame(0, [(50, 90)]), frame(1, [(50, 110)])])
    assert not analytics.notices  # a tracker tries an object for some frames before it has a track
    analytics.end_of_stream(0)
    assert "--tracker" in str(analytics.notices[0])
    run(analytics, [frame(2, [(50, 90)], ids=[4])])
    assert not analytics.notices


@pytest.mark.parametrize(
    ("drawn", "texts"), [("nothing", []), ("shapes", ["r", "l"]), ("counts", ["r=1", "l=0"])]
)
def test_figures(drawn, texts):
    meta = frame(0, [(50, 50)])
    line = Line(name="l", **LINE, toward=DOWN)
    run(Analytics(rules(Region(name="r", points=SQUARE), line, drawn=drawn)), [meta])
    assert [f.text for f in meta.figures if isinstance(f, Caption)] == texts
    strokes = [f for f in meta.figures if isinstance(f, Stroke)]
    assert [(s.closed, s.arrow) for s in strokes] == (
        [(True, False), (False, False), (False, True)] if texts else []
    )


def test_json_lines_have_it():
    meta = frame(0, [(50, 50), (300, 300)])
    run(Analytics(rules(Region(name="r", points=SQUARE), Line(name="l", **LINE))), [meta])
    found = json.loads(LineWriter().line(meta)[0])
    assert found["analytics"] == {
        "inside": {"r": 1}, "crossed": {"l": 0}, "crossed_total": {"l": 0}, "classes": {"0": 2},
    }  # fmt: skip
    assert [o.get("analytics") for o in found["objects"]] == [{"regions": ["r"]}, None]
