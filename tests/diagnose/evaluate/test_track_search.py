"""The search of a tracker's settings: what it tries, chooses and writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace._core.errors import ConfigError
from headrace.diagnose.evaluate.track_search import (
    RANGES,
    TrackSearch,
    TrackTrial,
    search_tracker,
    searched_settings,
)
from headrace.diagnose.evaluate.tracks import Tracks, TrackScores
from headrace.media.frame import Frame
from headrace.meta import FrameMeta
from headrace.pipeline.track import open_tracker
from headrace.pipeline.track.open import settings_of_tracker, tracker_text
from tests.pipeline.track.scenes import IMAGE, meta, needs_library

LENGTH = 60


def play() -> Iterator[tuple[Frame, FrameMeta]]:
    """Two objects; every third frame lacks one of them."""
    for i in range(LENGTH):
        boxes = [(10 + 4 * i, 40, 40, 60), (500 - 4 * i, 200, 40, 60)]
        yield IMAGE, meta(i, boxes[: 1 if i % 3 == 2 else 2])


def truth() -> Tracks:
    ids = np.array([7, 9], np.int64)
    return {
        i + 1: (ids, np.array([(10 + 4 * i, 40, 40, 60), (500 - 4 * i, 200, 40, 60)], np.float64))
        for i in range(LENGTH)
    }


@pytest.mark.slow
@needs_library
def test_a_search_finds_a_better_set_and_holds_frames_out() -> None:
    settings = searched_settings("iou:max_age=0,min_hits=3", ["max_age", "min_hits"])
    search = search_tracker("iou:max_age=0,min_hits=3", play, truth(), settings, trials=12, seed=1)
    assert len(search.trials) == 13
    assert search.start.changes == {}
    assert search.split == 41
    assert search.best.tuned.hota > search.start.tuned.hota + 0.05
    assert search.best.held_out.hota >= search.start.held_out.hota
    assert search.best.tuned.frames == 40
    assert search.best.held_out.frames == 20
    again = search_tracker("iou:max_age=0,min_hits=3", play, truth(), settings, trials=12, seed=1)
    assert [t.changes for t in again.trials] == [t.changes for t in search.trials]


def trial(tuned: float, held: float, us: float, **changes: float) -> TrackTrial:
    def scores(hota: float) -> TrackScores:
        return TrackScores(hota, 0, 0, 0, 0, 0, 1, 1)

    return TrackTrial(changes, scores(tuned), scores(held), us)


def test_a_set_that_fits_the_search_alone_is_not_chosen() -> None:
    start, fits = trial(0.5, 0.5, 10), trial(0.9, 0.4, 10, a=1)
    fast, good = trial(0.6, 0.55, 4, a=2), trial(0.7, 0.6, 10, a=3)
    search = TrackSearch("iou", start, [start, fits, fast, good], 5)
    assert search.front == [fits, fast]
    assert search.best is fast
    assert TrackSearch("iou", start, [start, fits], 5).best is start


def test_settings_without_a_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="fill_gaps"):
        searched_settings("iou", ["fill_gaps"])
    names = {s.name for s in searched_settings("nvsort")}
    assert "minMatchingScore4Iou" in names
    assert "filterLr" not in names  # it looks at no image
    assert "filterLr" in {s.name for s in searched_settings("nvdcf-perf")}
    assert names <= RANGES.keys()


@needs_library
def test_a_truth_of_few_frames_is_refused() -> None:
    few = {1: truth()[1], 2: truth()[2]}
    with pytest.raises(ConfigError, match="has 2 frames"):
        search_tracker("iou", play, few, searched_settings("iou"), trials=1)


@pytest.mark.parametrize("spec", ["iou:max_age=9", "nvdcf-perf", "nvsort:probationAge=1", "file"])
def test_the_file_is_the_tracker_with_its_changes(spec: str, tmp_path: Path) -> None:
    if spec == "file":
        path = tmp_path / "config.yml"
        path.write_text("%YAML:1.0\nTargetManagement:\n  probationAge: 4\n  enableReAssoc: 1\n")
        spec = str(path)
    changes = {"max_age": 20} if spec.startswith("iou") else {"maxShadowTrackingAge": 20}
    written = tmp_path / "tracker.yml"
    written.write_text(tracker_text(spec, changes))
    _, before = settings_of_tracker(spec)
    _, after = settings_of_tracker(written)
    wanted = {s.name: changes.get(s.name, s.default) for s in before}
    assert {s.name: s.default for s in after} == wanted
    assert open_tracker(written).name == open_tracker(spec).name or "nvdcf" in spec
