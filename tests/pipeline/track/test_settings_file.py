"""The config file of the original's tracker library."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.pipeline.track import Tracker, open_tracker
from headrace.pipeline.track.settings_file import KEYS_ACTED_ON
from tests.pipeline.track.scenes import meta, track

BOX = [100, 100, 50, 50]

# groups and keys as the original's generations write them; the values are ours
FILE = """%YAML:1.0
---
BaseConfig:
  minDetectorConfidence: 0.3   # comment
TargetManagement:
  enableBboxUnClipping: 1
  preserveStreamUpdateOrder: 0
  maxTargetsPerStream: 20
  minIouDiff4NewTarget: 0.6
  minTrackerConfidence: 0.2
  probationAge: 3
  maxShadowTrackingAge: 5
  earlyTerminationAge: 2
TrajectoryManagement:
  useUniqueID: 0
DataAssociator:
  dataAssociatorType: 0
  associationMatcherType: 1
  checkClassMatch: 1
  minMatchingScore4Overall: 0.1
  minMatchingScore4Iou: 0.25
  tentativeDetectorConfidence: 0.5
StateEstimator:
  stateEstimatorType: 1
  processNoiseVar4Loc: 2.0
VisualTracker:
  visualTrackerType: 1
ReID:
  inferDims: [3, 256, 128]
"""


@pytest.fixture
def opened(tmp_path: Path) -> Tracker:
    return from_text(tmp_path, FILE)


def from_text(folder: Path, text: str) -> Tracker:
    path = folder / "config_tracker.yml"
    path.write_text(text)
    return open_tracker(path)


def frames(tracker: Tracker, scores: list[float | None]) -> list[list[int | None]]:
    """Ids of one object that stands, found with these confidences or not at all."""
    return track(
        tracker,
        [
            meta(i, [] if s is None else [BOX], scores=[] if s is None else [s])
            for i, s in enumerate(scores)
        ],
    )


def test_probation_and_shadow_tracking(opened: Tracker) -> None:
    assert opened.name == "iou"
    # valid once its age exceeds 3, remembered for 5 frames
    assert frames(opened, [0.9] * 4 + [None] * 5 + [0.9]) == [[None]] * 3 + [[1]] + [[]] * 5 + [[1]]
    opened.close()
    assert frames(opened, [0.9] * 4 + [None] * 6 + [0.9] * 4)[-1] == [3]


def test_early_termination(opened: Tracker) -> None:
    assert frames(opened, [0.9, None, 0.9, 0.9, 0.9])[-1] == [1]
    opened.close()
    assert frames(opened, [0.9, None, None, 0.9, 0.9, 0.9])[-1] == [None]


def test_confidences(opened: Tracker, tmp_path: Path) -> None:
    assert frames(opened, [0.9] * 4 + [0.2, 0.4]) == [[None]] * 3 + [[1], [None], [1]]
    opened.close()
    assert frames(opened, [0.4] * 6) == [[None]] * 6  # tentative ones start no target
    greedy = FILE.replace("associationMatcherType: 1", "associationMatcherType: 0")
    assert frames(from_text(tmp_path, greedy), [0.4] * 6)[-1] == [1]


def test_one_notice_names_the_keys_without_effect(opened: Tracker) -> None:
    (notice,) = opened.notices
    assert notice.level == "warning"
    assert str(notice).startswith(notice.where or "-")
    named = notice.sentence.partition("without effect: ")[2].split(", ")
    assert named == [
        "enableBboxUnClipping",
        "minTrackerConfidence",
        "minMatchingScore4Overall",
        "processNoiseVar4Loc",
        "visualTrackerType",
        "inferDims",
    ]
    assert not set(named) & set(KEYS_ACTED_ON)


def test_old_files_have_other_groups_or_none(tmp_path: Path) -> None:
    for text in ("NvDCF:\n  probationAge: 0\n", "probationAge: 0\n"):
        tracker = from_text(tmp_path, text)
        assert frames(tracker, [0.9]) == [[1]]
        assert tracker.notices == []


@pytest.mark.parametrize(("kind", "same"), [(0, False), (1, True), (2, True)])
def test_without_a_state_estimator_nothing_is_predicted(
    tmp_path: Path, kind: int, same: bool
) -> None:
    text = f"StateEstimator: {{stateEstimatorType: {kind}}}\n"
    metas = [meta(i, [[20 * i, 9, 50, 50]] if i < 5 or i > 12 else []) for i in range(15)]
    got = track(from_text(tmp_path, text), metas)
    assert got[-1] == [1 if same else 2]


def test_limits_of_doubles_overlap_classes_and_targets(tmp_path: Path) -> None:
    near, apart = [110, 100, 50, 50], [300, 100, 50, 50]  # near: IoU 2/3
    head = "probationAge: 0\n"

    def last(text: str, boxes: list[list[float]], classes: list[int]) -> list[int | None]:
        metas = [meta(0, [BOX], classes=[0]), meta(1, boxes, classes=classes)]
        return track(from_text(tmp_path, head + text), metas)[-1]

    assert last("minIouDiff4NewTarget: 0.6", [BOX, near], [0, 0]) == [1, None]
    assert last("minIouDiff4NewTarget: 0.7", [BOX, near], [0, 0]) == [1, 2]
    assert last("maxTargetsPerStream: 1", [BOX, apart], [0, 0]) == [1, None]
    assert last("checkClassMatch: 0", [BOX], [1]) == [1]
    assert last("checkClassMatch: 1", [BOX], [1]) == [2]
    assert last("minMatchingScore4Iou: 0.7", [near], [0]) == [2]
    assert last("minMatchingScore4Iou: 0.6", [near], [0]) == [1]
