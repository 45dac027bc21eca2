"""Regions and drawing of a running pipeline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.live import LiveView
from headrace.live.control import Controls
from headrace.media.draw import Painter
from headrace.meta import UNTRACKED_OBJECT_ID
from headrace.pipeline import Pipeline
from headrace.pipeline.analytics import Analytics, AnalyticsRules, Region, SourceRules
from headrace.pipeline.track import open_tracker
from tests.pipeline.fakes import FakeModel, FakeSource

FIRST = Region(name="first", points=((0, 0), (9, 0), (9, 9)))


def roi(**changes: Any) -> dict[str, Any]:
    return {"roi_id": "door", "left": 0, "top": 0, "width": 6, "height": 4} | changes


def test_regions_from_the_next_frame_on() -> None:
    rules = AnalyticsRules(sources={0: SourceRules(regions=(FIRST,))})
    analytics = Analytics(rules)
    view = LiveView()
    pipeline = Pipeline(FakeSource(6), [FakeModel(), analytics], [view])
    controls, names = Controls(pipeline, view), []
    for frame, meta in pipeline:
        assert meta.analytics is not None
        names.append(tuple(meta.analytics.inside))
        if frame.frame == 0:
            controls.set_regions(0, [roi()])
    assert names[0] == ("first",)
    assert names[-1] == ("door",)
    assert analytics.rules.sources[0].regions[0].points == ((0, 0), (6, 0), (6, 4), (0, 4))
    assert rules.sources[0].regions == (FIRST,)


@pytest.mark.parametrize(
    "wanted",
    [None, [3], [{}], [roi(roi_id="")], [roi(left=-1)], [roi(width=0)], [roi(top="a")],
     [roi(), roi()], [roi()] * 65, [roi(height=float("nan"))]],
)  # fmt: skip
def test_what_is_no_region(wanted: Any) -> None:
    analytics = Analytics(AnalyticsRules(sources={0: SourceRules(regions=(FIRST,))}))
    view = LiveView()
    pipeline = Pipeline(FakeSource(1), [FakeModel(), analytics], [view])
    with pytest.raises(HeadraceError):
        Controls(pipeline, view).set_regions(0, wanted)
    assert analytics.rules.sources[0].regions == (FIRST,)
    pipeline.close()


def test_regions_of_a_source_that_is_not_there() -> None:
    analytics = Analytics(AnalyticsRules(sources={}))
    view = LiveView()
    pipeline = Pipeline(FakeSource(1), [FakeModel(), analytics], [view])
    with pytest.raises(HeadraceError, match="there is no source 1"):
        Controls(pipeline, view).set_regions(1, [roi()])
    assert not analytics.rules.sources
    pipeline.close()


def test_drawing() -> None:
    view = LiveView()
    pipeline = Pipeline(FakeSource(1), FakeModel(), [view], painter=Painter())
    Controls(pipeline, view).change({"osd": {"boxes": False}})
    assert not view.painter.boxes
    assert view.painter.labels
    pipeline.close()


def test_the_tracker_changes_by_a_file_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tracker"
    folder.mkdir()
    (folder / "tracker.yml").write_text("TargetManagement: {probationAge: 100}\n")
    change = "TargetManagement: {probationAge: 0, maxTargetsPerStream: 3}\n"
    for where in (folder, tmp_path):
        (where / "changes.yml").write_text(change)
    os.mkfifo(folder / "pipe.yml")
    tracker = open_tracker(folder / "tracker.yml")
    view, shown = LiveView(), []
    pipeline = Pipeline(FakeSource(6), [FakeModel(), tracker], [view])
    controls = Controls(pipeline, view)
    for frame, meta in pipeline:
        shown.append(bool((meta.objects.object_ids != UNTRACKED_OBJECT_ID).all()))
        if frame.frame == 0:
            for wrong in ("../changes.yml", "/etc/passwd", "nowhere.yml", "pipe.yml", "", None, 3):
                with pytest.raises(HeadraceError):
                    controls.change_tracker(wrong)
            controls.change_tracker("changes.yml")
    assert (shown[0], shown[-1]) == (False, True)
    assert [n.code for n in pipeline.notices if "maxTargets" in str(n)] == ["tracker-settings"]


def test_a_pipeline_without_tracker() -> None:
    view = LiveView()
    pipeline = Pipeline(FakeSource(1), FakeModel(), [view])
    with pytest.raises(HeadraceError, match="has no tracker"):
        Controls(pipeline, view).change_tracker("changes.yml")
    pipeline.close()
