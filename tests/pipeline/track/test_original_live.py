"""Keys of the original that change while a tracker runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace._core.errors import ConfigError
from headrace.pipeline.track import LiveTracker, open_tracker
from headrace.pipeline.track.original_keys import original_keys
from tests.pipeline.track.rule_cases import A, B
from tests.pipeline.track.scenes import ids, meta
from tests.pipeline.track.test_user_library import IMAGE


def play(tracker: Any, numbers: range, *boxes: Any, source_id: int = 0) -> list[Any]:
    got = []
    for number in numbers:
        m = meta(number, list(boxes), source_id=source_id)
        tracker.update(IMAGE, m)
        got.append(ids(m))
    return got


def changed(folder: Path, text: str) -> Path:
    path = folder / "changes.yml"
    path.write_text(f"%YAML:1.0\n---\n{text}")
    return path


def test_a_change_acts_from_the_next_frame_on_and_for_new_sources(tmp_path: Path) -> None:
    tracker: Any = open_tracker("nviou", probationAge=2)
    assert play(tracker, range(1, 4), A) == [[None], [None], [1]]
    path = changed(tmp_path, "TargetManagement:\n  probationAge: 0\n")
    assert list(tracker.change(path)) == []
    assert play(tracker, range(4, 6), A, B) == [[1, 2]] * 2
    assert play(tracker, range(1, 2), A, source_id=1) == [[3]]


def test_a_visual_tracker_keeps_its_targets(tmp_path: Path) -> None:
    tracker: Any = open_tracker("nvdcf-perf")
    assert play(tracker, range(1, 5), A)[-1] == [1]
    text = "VisualTracker: {filterLr: 0.2, gaussianSigma: 1.5}\n"
    assert list(tracker.change(changed(tmp_path, text))) == []
    assert play(tracker, range(5, 8), A) == [[1]] * 3


def test_a_reset_forgets_all_targets(tmp_path: Path) -> None:
    tracker: Any = open_tracker("nviou", probationAge=0)
    assert play(tracker, range(1, 3), A, B) == [[1, 2]] * 2
    assert list(tracker.change(changed(tmp_path, "Control:\n  tracker-reset: 0\n"))) == []
    assert play(tracker, range(3, 4), A, B) == [[1, 2]]
    tracker.change(changed(tmp_path, "Control:\n  tracker-reset: 1\n"))
    assert play(tracker, range(4, 6), A, B) == [[3, 4]] * 2


def test_what_does_not_change_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    tracker: Any = open_tracker("nviou", probationAge=2)
    text = "TargetManagement: {maxTargetsPerStream: 9, probationAge: 0, nonsense: 1}\n"
    found = tracker.change(changed(tmp_path, text))
    assert [n.code for n in found] == ["tracker-settings", "tracker-key-unknown"]
    assert ["maxTargetsPerStream" in f"{n:brief}" for n in found] == [True, False]
    assert play(tracker, range(1, 2), A) == [[1]]


@pytest.mark.parametrize(
    "text", ["BaseConfig: {minDetectorConfidence: high}", "TargetManagement: {probationAge: -1}"]
)
def test_a_value_that_cannot_be_changes_nothing(tmp_path: Path, text: str) -> None:
    tracker: Any = open_tracker("nviou", probationAge=0)
    first = "DataAssociator: {minMatchingScore4Iou: 0.9}"
    both = f"{first}\n{text}\nControl: {{tracker-reset: 1}}\n"
    with pytest.raises(ConfigError, match="is not possible"):
        tracker.change(changed(tmp_path, both))
    moved = (A[0] + 8, *A[1:])
    assert play(tracker, range(1, 2), A) == play(tracker, range(2, 3), moved) == [[1]]


def test_others_say_that_nothing_changes(tmp_path: Path) -> None:
    tracker = open_tracker("iou")
    assert isinstance(tracker, LiveTracker)
    with pytest.raises(ConfigError, match="nothing of the tracker iou changes"):
        tracker.change(changed(tmp_path, "BaseConfig: {}\n"))


def test_each_key_that_changes_is_one_of_the_core() -> None:
    live = [key for key in original_keys().values() if key.live]
    assert len(live) == 25
    for key in live:
        assert key.acts in ("applied", "near"), key.path
        assert key.to not in ("side", "motion", "visual", "max_targets"), key.path
